//! Watch: the revisions of the directory, as this process takes them in.

use std::collections::VecDeque;
use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_store::fault::fault;
use serde::Deserialize;
use tokio::sync::watch::Receiver;

use crate::App;
use crate::store::{self, Touched};

/// Entries of the history that are read at once; each may hold two times 64 KiB and more.
const BATCH: i64 = 100;

/// One caller's place in the history.
pub(crate) struct Watch {
    app: Arc<App>,
    revisions: Receiver<i64>,
    /// The last entry that was read: all before it were.
    read: (i64, String),
    /// The last revision that was told.
    told: i64,
    waiting: VecDeque<Touched>,
}

/// What one revision changed for one caller.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changed {
    /// The revision.
    pub(crate) revision: i64,
    /// Rows of the caller's catalogue that were written, or reached by a write.
    pub(crate) changed: Vec<String>,
    /// Rows that were in the caller's catalogue before and are not any more.
    pub(crate) removed: Vec<String>,
}

impl Watch {
    /// Watches what comes after a revision; absent is what comes from now on.
    ///
    /// # Errors
    /// `invalid_request` for a revision below 0.
    pub(crate) fn begin(app: Arc<App>, since: Option<i64>) -> Result<Watch> {
        let since = since.unwrap_or_else(|| app.directory.snapshot().revision);
        if since < 0 {
            return Err(Fault::new(Reason::InvalidRequest, "revisions begin at 0").with("field", "since_revision"));
        }
        let revisions = app.directory.revisions();
        // No key is longer or later than this, so the revision itself is passed over.
        let read = (since, "\u{10ffff}".to_owned());
        Ok(Watch { app, revisions, read, told: since, waiting: VecDeque::new() })
    }

    /// Waits until there is a revision to tell. False: there will be none, the process ends.
    pub(crate) async fn moved(&mut self) -> bool {
        let told = self.told;
        tokio::select! {
            () = self.app.stop.cancelled() => false,
            moved = self.revisions.wait_for(|newest| *newest > told) => moved.is_ok(),
        }
    }

    /// The next revision; nothing where all are told.
    ///
    /// # Errors
    /// `database_unavailable`.
    pub(crate) async fn next(&mut self, caller: &Caller) -> Result<Option<Changed>> {
        let newest = *self.revisions.borrow();
        let mut change: Option<Changed> = None;
        loop {
            if self.waiting.is_empty() && !self.read_more(newest).await? {
                break;
            }
            let Some(entry) = self.waiting.front() else { break };
            if change.as_ref().is_some_and(|change| change.revision != entry.revision) {
                break;
            }
            let change = change.get_or_insert_with(|| Changed { revision: entry.revision, ..Changed::default() });
            change.take(entry, caller);
            self.waiting.pop_front();
        }
        self.told = change.as_ref().map_or(newest, |change| change.revision);
        Ok(change)
    }

    /// Whether there was more. No connection is held while the client reads.
    async fn read_more(&mut self, newest: i64) -> Result<bool> {
        let mut connection = self.app.directory.pool().acquire().await.map_err(fault)?;
        let (revision, key) = (self.read.0, self.read.1.as_str());
        let found = store::touched(&mut connection, (revision, key), newest, BATCH).await.map_err(fault)?;
        if let Some(last) = found.last() {
            self.read = (last.revision, last.key.clone());
        }
        self.waiting.extend(found);
        Ok(!self.waiting.is_empty())
    }
}

impl Changed {
    fn take(&mut self, entry: &Touched, caller: &Caller) {
        if !Key::parse(&entry.key).is_ok_and(|key| caller.sees(&key)) {
            return;
        }
        match (is_shown(entry.before.as_deref()), is_shown(entry.after.as_deref())) {
            (_, true) => self.changed.push(entry.key.clone()),
            (true, false) => self.removed.push(entry.key.clone()),
            (false, false) => {}
        }
    }
}

/// Whether planners were shown the row when its columns were these: the rule of `Entry::is_planner_visible`.
fn is_shown(columns: Option<&str>) -> bool {
    #[derive(Deserialize)]
    struct Columns<'a> {
        r#type: &'a str,
        #[serde(borrow)]
        target: std::borrow::Cow<'a, str>,
        enabled: bool,
        planner_visible: bool,
    }
    let Some(columns) = columns.and_then(|text| serde_json::from_str::<Columns<'_>>(text).ok()) else { return false };
    let is_block = columns.r#type == "fn" && columns.target == "prompt_block";
    columns.enabled && columns.planner_visible && !is_block
}

#[cfg(test)]
mod tests {
    use callbook_domain::row::{Definition, RowType};

    use super::*;
    use crate::sight::narrowed;

    fn columns(edit: impl FnOnce(&mut Definition)) -> Option<String> {
        let mut definition = Definition::new(Key::parse("A.a").unwrap(), RowType::Fn);
        definition.target = "say \"\u{e9}\\n\"".to_owned();
        edit(&mut definition);
        Some(serde_json::Value::Object(definition.to_json()).to_string())
    }

    fn told(before: Option<String>, after: Option<String>, caller: &Caller) -> (usize, usize) {
        let mut change = Changed::default();
        change.take(&Touched { revision: 1, key: "A.a".to_owned(), before, after }, caller);
        (change.changed.len(), change.removed.len())
    }

    #[test]
    fn a_row_is_changed_while_it_is_shown_and_removed_once_it_is_not() {
        let shown = || columns(|_| ());
        let off = || columns(|row| row.enabled = false);
        let hidden = || columns(|row| row.planner_visible = false);
        let block = || columns(|row| row.target = "prompt_block".to_owned());
        let all = Caller::Anonymous;
        assert_eq!(told(None, shown(), &all), (1, 0));
        assert_eq!(told(shown(), shown(), &all), (1, 0));
        assert_eq!(told(off(), shown(), &all), (1, 0));
        for gone in [off(), hidden(), block(), None] {
            assert_eq!(told(shown(), gone.clone(), &all), (0, 1));
            assert_eq!(told(hidden(), gone, &all), (0, 0));
        }
        assert_eq!(told(None, None, &all), (0, 0), "a recommendation changes no row");
    }

    #[test]
    fn a_narrowed_caller_is_told_of_its_own_keys_alone() {
        assert_eq!(told(None, columns(|_| ()), &narrowed("A.")), (1, 0));
        assert_eq!(told(None, columns(|_| ()), &narrowed("B.")), (0, 0));
        assert_eq!(told(columns(|_| ()), None, &narrowed("B.")), (0, 0));
    }
}
