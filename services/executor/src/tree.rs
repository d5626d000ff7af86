//! The tree of calls that one call of a caller grows: where a call stands in it, and what all of them share.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::InvocationId;
use callbook_store::snapshot::Snapshot;

use crate::runner::Frame;

/// The most calls of one tree, its root not counted.
pub const MAX_CALLS: u32 = 64;
/// The greatest depth of a call; the root's is 0.
pub const MAX_DEPTH: u8 = 8;

/// By whose right a call is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// A step that a flow has written: who may call the flow may run its steps, within the ceilings of a token.
    Written,
    /// A call that was decided on the way: the caller's own scope covers it or it is refused.
    Own,
}

/// Where a call stands that another one made.
#[derive(Clone, Debug)]
pub struct Place {
    /// The call that made it.
    pub parent: InvocationId,
    /// How many calls stand above it.
    pub depth: u8,
    /// By whose right it is made.
    pub authority: Authority,
    /// The book that its maker was admitted against: written steps run the rows of this one or not at all.
    pub book: Arc<Snapshot>,
    /// What it shares with the others.
    pub tree: Arc<Tree>,
    /// The agent that it runs in, itself not counted.
    pub agent: Option<Arc<Frame>>,
}

/// What the calls of one tree share.
#[derive(Debug)]
pub struct Tree {
    /// The caller's own call.
    pub root: InvocationId,
    calls: AtomicU32,
    /// What the calls below each call cost, each with all below it, until that call ends.
    spent: Mutex<HashMap<InvocationId, f64>>,
}

impl Tree {
    /// A tree of its root alone.
    pub fn new(root: InvocationId) -> Arc<Tree> {
        Arc::new(Tree { root, calls: AtomicU32::new(0), spent: Mutex::default() })
    }

    /// Adds what a call below `parent` cost, in US dollars. One that ends after its parent is in its own receipt alone.
    pub fn spend(&self, parent: InvocationId, cost_usd: f64) {
        *self.spent.lock().unwrap_or_else(PoisonError::into_inner).entry(parent).or_default() += cost_usd;
    }

    /// What the calls below this one cost, which has ended.
    pub fn spent_below(&self, id: InvocationId) -> f64 {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner).remove(&id).unwrap_or_default()
    }

    /// The place of one more call below `parent`, counted whether or not it will run.
    ///
    /// # Errors
    /// `budget_exhausted:calls`, `budget_exhausted:depth`.
    pub fn grow(
        self: &Arc<Tree>,
        parent: InvocationId,
        above: u8,
        authority: Authority,
        book: Arc<Snapshot>,
    ) -> Result<Place> {
        let depth = above.saturating_add(1);
        if depth > MAX_DEPTH {
            return Err(exhausted("depth", u32::from(MAX_DEPTH)));
        }
        if self.calls.fetch_add(1, Ordering::Relaxed) >= MAX_CALLS {
            return Err(exhausted("calls", MAX_CALLS));
        }
        Ok(Place { parent, depth, authority, book, tree: self.clone(), agent: None })
    }
}

fn exhausted(what: &str, most: u32) -> Fault {
    Fault::new(Reason::BudgetExhausted, format!("one call of a caller may grow to {most} {what} and no more"))
        .detail(what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_counted_once_on_each_level() {
        let id = |at| InvocationId::new(time::OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(at));
        let (root, middle) = (id(1), id(2));
        let tree = Tree::new(root);
        tree.spend(middle, 0.25);
        tree.spend(middle, 0.5);
        tree.spend(root, 1.0 + tree.spent_below(middle));
        assert_eq!((tree.spent_below(root), tree.spent_below(middle)), (1.75, 0.0));
    }

    #[test]
    fn a_tree_grows_to_its_bounds_and_no_further() {
        let root = InvocationId::new(time::OffsetDateTime::UNIX_EPOCH);
        let tree = Tree::new(root);
        let reason = |above| {
            tree.grow(root, above, Authority::Own, Arc::default()).map(|place| place.depth).map_err(|f| f.error_text())
        };
        assert_eq!(reason(MAX_DEPTH), Err("budget_exhausted:depth".to_owned()));
        for _ in 0..MAX_CALLS {
            assert_eq!(reason(0), Ok(1));
        }
        assert_eq!(reason(0), Err("budget_exhausted:calls".to_owned()));
    }
}
