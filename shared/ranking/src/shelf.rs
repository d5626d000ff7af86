//! The index as the roles of one process share it.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use callbook_domain::key::Key;

use crate::entry::{Entry, Recommendation};
use crate::index::Index;
use crate::question::{Question, Ranked};

/// The current index. Changes are made to a copy beside it and appear all at once, so no question waits for a write
/// or sees half of one.
#[derive(Default)]
pub struct Shelf {
    current: RwLock<Arc<Index>>,
    /// Held while a copy is made and changed: two changes must not start from the same index.
    changing: Mutex<()>,
}

impl Shelf {
    /// Puts rows in, in place of those that have their keys, and takes rows out. `recommended` replaces all
    /// recommendations; absent leaves them. A key that is in both lists is in the index afterwards.
    pub fn apply(&self, changed: Vec<Entry>, removed: &[Key], recommended: Option<Vec<Recommendation>>) {
        let _alone = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Index::clone(&self.current());
        for key in removed {
            next.remove(key);
        }
        for entry in &changed {
            next.upsert(entry);
        }
        if let Some(recommended) = recommended {
            next.set_recommended(recommended);
        }
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
    }

    /// The rows that fit, among those that `visible` lets through.
    pub fn ask(&self, question: &Question<'_>, visible: &dyn Fn(&Key) -> bool) -> Ranked {
        self.current().ask(question, visible)
    }

    /// How many rows it holds.
    pub fn len(&self) -> usize {
        self.current().len()
    }

    /// Whether it holds no row.
    pub fn is_empty(&self) -> bool {
        self.current().is_empty()
    }

    /// The lock is held for the copy of a pointer only.
    fn current(&self) -> Arc<Index> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Shelf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shelf").field("rows", &self.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use callbook_domain::row::{Effect, Risk, RowType};

    use super::*;

    fn entry(key: &str, what: &str) -> Entry {
        Entry {
            key: Key::parse(key).unwrap(),
            category: None,
            row_type: RowType::Fn,
            effect: Effect::Read,
            risk: Risk::Low,
            planner_rank: 100,
            what: what.to_owned(),
            when_to_use: String::new(),
            arguments: Vec::new(),
            notes: String::new(),
            third_party: false,
        }
    }

    fn first(shelf: &Shelf, question: &str) -> Option<String> {
        let ranked = shelf.ask(&Question::new(question), &|_| true);
        ranked.hits.first().map(|hit| hit.key.to_string())
    }

    #[test]
    fn a_change_is_found_by_the_next_question() {
        let shelf = Shelf::default();
        assert!(shelf.is_empty());
        shelf.apply(vec![entry("NOW", "Tell the current time"), entry("MAIL", "Send a letter")], &[], None);
        assert_eq!(first(&shelf, "current time").as_deref(), Some("NOW"));
        let pinned = Recommendation { pattern: "letter".to_owned(), key: Key::parse("NOW").unwrap(), demote: false };
        shelf.apply(Vec::new(), &[], Some(vec![pinned]));
        assert_eq!(first(&shelf, "send a letter").as_deref(), Some("NOW"));
        shelf.apply(vec![entry("CLOCK", "Tell the current time")], &[Key::parse("NOW").unwrap()], None);
        assert_eq!(first(&shelf, "current time").as_deref(), Some("CLOCK"));
        assert_eq!(shelf.len(), 2);
    }

    #[test]
    fn a_key_that_is_removed_and_changed_is_kept() {
        let shelf = Shelf::default();
        let now = Key::parse("NOW").unwrap();
        shelf.apply(vec![entry("NOW", "Tell the current time")], &[now], None);
        assert_eq!(shelf.len(), 1);
    }
}
