//! The book as an agent sees it: rows that planners see, of its allowed categories, as far as its caller sees them.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::key::Key;
use callbook_domain::outcome::{Failure, Output};
use callbook_ranking::Question;
use callbook_store::snapshot::{Entry, Snapshot};

use crate::child::Running;
use crate::runner::function::book;

/// The row of this key, if the agent sees it.
pub fn seen<'a>(running: &Running<'_>, snapshot: &'a Snapshot, key: &str) -> Option<&'a Arc<Entry>> {
    let allowed = &running.call.entry.row.definition.allowed_categories;
    snapshot.get(key).filter(|entry| sees(&running.call.caller, allowed, entry))
}

/// Whether an agent of these categories sees a row on behalf of this caller. `*` is every category and those that have
/// none.
pub fn sees(caller: &Caller, allowed: &[String], entry: &Entry) -> bool {
    let category = entry.row.definition.category.as_deref();
    let is_allowed = allowed.iter().any(|name| name == "*" || Some(name.as_str()) == category);
    is_allowed && entry.is_planner_visible() && caller.sees(entry.key())
}

/// Rows that fit a question, best first.
pub fn ask(running: Running<'_>, question: &str, limit: usize) -> Output {
    let snapshot = running.app.directory.snapshot();
    let mut asked = Question::new(question);
    asked.limit = limit;
    book::matches(running.app, &snapshot, &asked, &|key: &Key| seen(&running, &snapshot, key.as_str()).is_some())
}

/// The contract of a row, at the newest revision.
pub async fn contract(running: Running<'_>, key: &str) -> Result<Output, Failure> {
    let snapshot = running.app.directory.fresh().await.map_err(|fault| super::turn::failed(&fault))?;
    let entry = seen(&running, &snapshot, key).ok_or_else(|| unknown(key))?;
    let compiled = entry.compiled.as_ref().map_err(super::turn::failed)?;
    Ok(book::compact(entry, compiled, &running.call.caller))
}

/// The answer for a key that no row has, or none that the agent may see.
pub fn unknown(key: &str) -> Failure {
    let shown: String = key.chars().take(callbook_domain::key::MAX_KEY).collect();
    Failure::new("unknown_key", format!("no row of the key `{shown}`: find one with ask"))
}
