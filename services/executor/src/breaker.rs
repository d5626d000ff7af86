//! Clear a breaker by hand.

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;
use callbook_store::fault::fault;

use crate::App;
use crate::store;

/// Forgets the refusals of the row's credential. Gives how many records there were.
///
/// # Errors
/// `unauthorized` and `forbidden` for everybody but the owner, `unknown_key`.
pub async fn reset(app: &App, caller: &Caller, key: &str) -> Result<u64> {
    caller.require_owner()?;
    let snapshot = app.directory.fresh().await?;
    let entry = snapshot.get(key).ok_or_else(|| snapshot.unknown_key(caller, key))?;
    let compiled = entry.compiled.as_ref().map_err(Clone::clone)?;
    let secret = compiled.auth.secret_names().join("+");
    store::breaker::reset(app.directory.pool(), &secret).await.map_err(fault)
}
