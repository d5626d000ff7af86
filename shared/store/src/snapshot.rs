//! The book as one process holds it: immutable, compiled, replaced as a whole.

use std::collections::HashMap;
use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::compile::Compiled;
use callbook_domain::fault::{Fault, Reason};
use callbook_domain::key::{Key, MAX_KEY};
use callbook_domain::nearest::nearest;
use callbook_domain::row::Row;

/// A row with its compiled form. A row that was written under other settings may no longer compile; it is listed and
/// not callable.
#[derive(Debug)]
pub struct Entry {
    /// As stored.
    pub row: Row,
    /// Ready to bind and run, or why not.
    pub compiled: Result<Compiled, Fault>,
}

impl Entry {
    /// The row's key.
    pub fn key(&self) -> &Key {
        &self.row.definition.key
    }

    /// Whether planners and models are shown the row.
    pub fn is_planner_visible(&self) -> bool {
        let definition = &self.row.definition;
        definition.enabled && definition.planner_visible && !definition.is_prompt_block()
    }

    /// Whether the registry shows the row: enabled, and not shaped like a test's.
    pub fn is_registered(&self) -> bool {
        self.row.definition.enabled && !self.key().is_test_shaped()
    }

    fn order(&self) -> (bool, i32, &Key) {
        let seq = self.row.definition.seq;
        (seq.is_none(), seq.unwrap_or_default(), self.key())
    }
}

/// The operator's standing answer to a kind of question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recommended {
    /// Words that the question must hold.
    pub pattern: String,
    /// The row that is the answer, or is not.
    pub key: Key,
    /// Pushes the row down instead of up.
    pub demote: bool,
    /// Why, for the next operator.
    pub reason: String,
    /// Who said so.
    pub actor: String,
    /// When.
    pub created_at: time::OffsetDateTime,
}

/// The whole book at one revision.
#[derive(Debug, Default)]
pub struct Snapshot {
    /// The last write that is in it.
    pub revision: i64,
    /// Standing answers.
    pub recommended: Arc<Vec<Recommended>>,
    rows: HashMap<Key, Arc<Entry>>,
    ordered: Vec<Arc<Entry>>,
}

/// What a newer revision changed.
#[derive(Debug, Default)]
pub struct Change {
    /// Rows that are new or different.
    pub changed: Vec<Arc<Entry>>,
    /// Keys that are gone.
    pub removed: Vec<Key>,
    /// The standing answers, where they changed.
    pub recommended: Option<Arc<Vec<Recommended>>>,
}

impl Snapshot {
    /// The row of this key, disabled ones too.
    pub fn get(&self, key: &str) -> Option<&Arc<Entry>> {
        self.rows.get(key)
    }

    /// Every row in the canonical order: those with `seq` first, by it, then by key.
    pub fn rows(&self) -> &[Arc<Entry>] {
        &self.ordered
    }

    /// The row's 1-based place in the canonical order.
    pub fn row_num(&self, entry: &Entry) -> usize {
        self.ordered.partition_point(|other| other.order() < entry.order()) + 1
    }

    /// The same book with a change applied.
    pub fn with(&self, change: &Change, revision: i64) -> Snapshot {
        let mut rows = self.rows.clone();
        for key in &change.removed {
            rows.remove(key);
        }
        for entry in &change.changed {
            rows.insert(entry.key().clone(), entry.clone());
        }
        let ordered = self.reordered(change, &rows);
        let recommended = change.recommended.clone().unwrap_or_else(|| self.recommended.clone());
        Snapshot { revision, recommended, rows, ordered }
    }

    /// A few changes are put in place; many are sorted afresh.
    fn reordered(&self, change: &Change, rows: &HashMap<Key, Arc<Entry>>) -> Vec<Arc<Entry>> {
        if change.changed.len() + change.removed.len() > 64 {
            let mut ordered: Vec<_> = rows.values().cloned().collect();
            ordered.sort_by(|a, b| a.order().cmp(&b.order()));
            return ordered;
        }
        let mut ordered = self.ordered.clone();
        let gone = change.removed.iter().chain(change.changed.iter().map(|entry| entry.key()));
        for entry in gone.filter_map(|key| self.rows.get(key)) {
            ordered.remove(self_position(&ordered, entry));
        }
        for entry in &change.changed {
            ordered.insert(self_position(&ordered, entry), entry.clone());
        }
        ordered
    }

    /// The answer for a key that no row has, or none that this caller may see, with the keys that may have been meant.
    pub fn unknown_key(&self, caller: &Caller, attempted: &str) -> Fault {
        let visible = self.ordered.iter().filter(|entry| entry.is_planner_visible() && caller.sees(entry.key()));
        let near: Vec<String> =
            nearest(attempted, visible.map(|entry| entry.key())).iter().map(Key::to_string).collect();
        let shown: String = attempted.chars().take(MAX_KEY).collect();
        Fault::new(Reason::UnknownKey, "no row of this key")
            .with("attempted", shown)
            .with("did_you_mean", serde_json::json!(near).to_string())
            .fix("use a key of did_you_mean, or ask for the capability in plain words")
    }
}

fn self_position(ordered: &[Arc<Entry>], entry: &Entry) -> usize {
    ordered.partition_point(|other| other.order() < entry.order())
}
