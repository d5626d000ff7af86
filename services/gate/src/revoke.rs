//! End a principal, with every token that it minted.

use callbook_domain::caller::Caller;
use callbook_domain::event::EventKind;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_store::fault::fault;
use callbook_store::lock;

use crate::App;
use crate::principal::Kept;
use crate::store::{principal as store, token};

/// The principal with the time of its end, and whether this call ended it.
///
/// The lock is exclusive: what commits after the answer began after the end, and sees it.
///
/// # Errors
/// `unauthorized`, `forbidden`, `not found`.
pub(crate) async fn revoke(app: &App, caller: &Caller, name: &str) -> Result<(Kept, bool)> {
    caller.require_owner()?;
    let now = app.clock.now();
    let mut transaction = app.pool.begin().await.map_err(fault)?;
    lock::exclusive(&mut transaction).await.map_err(fault)?;
    let kept = store::find(&mut transaction, name).await.map_err(fault)?.ok_or_else(unknown)?;
    if kept.revoked_at.is_some() {
        return Ok((kept, false));
    }
    let kept = Kept { revoked_at: Some(now), ..kept };
    store::end(&mut transaction, &kept, now).await.map_err(fault)?;
    let tokens = format!("principal:{}", kept.id);
    token::revoke(&mut transaction, &tokens, &caller.actor(), "", now).await.map_err(fault)?;
    store::record(&mut transaction, &kept, EventKind::Revoke, caller, now).await.map_err(fault)?;
    transaction.commit().await.map_err(fault)?;
    Ok((kept, true))
}

fn unknown() -> Fault {
    Fault::new(Reason::NotFound, "no principal of this name")
}
