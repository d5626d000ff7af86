//! Tell a holder what its token can do, and what is left of it.

use std::sync::Arc;

use callbook_domain::caller::{Caller, Holder};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_domain::row::Risk;
use callbook_store::fault::fault;
use callbook_store::snapshot::Snapshot;

use crate::App;
use crate::narrow::presented;
use crate::store::token as store;

/// What a call of a row would meet.
pub(crate) const ALLOWED: &str = "allowed";
/// A person would decide first.
pub(crate) const HELD: &str = "held";

/// What a token can do.
pub(crate) struct Explained {
    /// It, as it stands.
    pub(crate) holder: Arc<Holder>,
    /// Calls that are left, where they are counted.
    pub(crate) uses_left: Option<i64>,
    /// `allowed`, `held`, or the reason of a refusal; empty where no key was asked about.
    pub(crate) verdict: String,
}

/// What the presented token can do; about a key, where one is named.
///
/// # Errors
/// `unauthorized`, `forbidden` where no token is presented, `database_unavailable`.
pub(crate) async fn explain(app: &App, caller: &Caller, key: &str) -> Result<Explained> {
    let holder = presented(caller)?.clone();
    let mut connection = app.pool.acquire().await.map_err(fault)?;
    let links: Vec<String> = holder.counters.iter().map(|counter| counter.link.clone()).collect();
    let used = store::used(&mut connection, &links).await.map_err(fault)?;
    drop(connection);
    let left = |counter: &callbook_domain::caller::Counter| {
        counter.limit.saturating_sub(used.get(&counter.link).copied().unwrap_or(0)).max(0)
    };
    let uses_left = holder.counters.iter().map(left).min();
    let verdict = match key {
        "" => String::new(),
        key => {
            let snapshot = app.directory.fresh().await?;
            verdict(&snapshot, caller, &holder, key, uses_left).unwrap_or_else(|refusal| refusal.error_text())
        }
    };
    Ok(Explained { holder, uses_left, verdict })
}

/// Steps 11 to 18 as far as they hang on the row and not on arguments.
fn verdict(snapshot: &Snapshot, caller: &Caller, holder: &Holder, key: &str, uses_left: Option<i64>) -> Result<String> {
    let parsed = Key::parse(key).map_err(|_| Fault::new(Reason::ScopeMismatch, "the token does not cover this key"))?;
    holder.chain.check_scope(&parsed)?;
    let found = snapshot.get(key).filter(|entry| entry.row.definition.enabled);
    let row = &found.ok_or_else(|| snapshot.unknown_key(caller, key))?.row;
    holder.chain.check_row(&parsed, &row.contract_hash, row.risk, row.effect)?;
    if uses_left == Some(0) {
        return Err(Fault::new(Reason::TokenExhausted, "every call that the token allows was made"));
    }
    let waits = holder.chain.owner_gate() || row.risk == Risk::High;
    Ok(if waits { HELD } else { ALLOWED }.to_owned())
}
