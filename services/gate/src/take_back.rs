//! Take tokens back.

use callbook_domain::caller::Caller;
use callbook_domain::event::EventKind;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_store::fault::fault;
use callbook_store::lock;
use sqlx::PgConnection;

use crate::App;
use crate::store::token as store;
use crate::target::{self, Target};
use crate::token::check_words;

/// Whether this call took it back, or another one did before.
///
/// The lock is exclusive: what commits after the answer began after the revocation, and sees it.
///
/// # Errors
/// `unauthorized`; `forbidden` for a principal that did not mint the token, and for a holder of another one; `not found`
/// for a root or a key that the gate has no record of; `invalid_request`.
pub(crate) async fn revoke(app: &App, caller: &Caller, what: &Target, reason: &str) -> Result<bool> {
    caller.require_credential()?;
    what.check()?;
    check_words("reason", reason)?;
    let now = app.clock.now();
    let mut transaction = app.pool.begin().await.map_err(fault)?;
    lock::exclusive(&mut transaction).await.map_err(fault)?;
    let name = allowed(&mut transaction, caller, what).await?;
    let is_new = store::revoke(&mut transaction, &name, &caller.actor(), reason, now).await.map_err(fault)?;
    if is_new {
        let body = target::event(&name, reason, caller, now);
        store::log(&mut transaction, EventKind::Revoke, &caller.actor(), &body, now).await.map_err(fault)?;
    }
    transaction.commit().await.map_err(fault)?;
    Ok(is_new)
}

/// The name of the revocation, where the caller may make it.
async fn allowed(connection: &mut PgConnection, caller: &Caller, what: &Target) -> Result<String> {
    match caller {
        Caller::Holder(holder) => what.own(holder),
        Caller::Principal(principal) => {
            let minted = match what {
                Target::Link(jti) | Target::Root(jti) => store::principal(connection, *jti).await.map_err(fault)?,
                Target::Holder(_) | Target::Subject(_) | Target::Kid(_) => None,
            };
            if minted.flatten() == Some(principal.id) { Ok(what.name()) } else { Err(forbidden()) }
        }
        Caller::Owner | Caller::Anonymous => {
            caller.require_owner()?;
            let is_known = match what {
                Target::Root(jti) => store::principal(connection, *jti).await.map_err(fault)?.is_some(),
                Target::Kid(kid) => crate::store::key::is_known(connection, kid).await.map_err(fault)?,
                Target::Link(_) | Target::Holder(_) | Target::Subject(_) => true,
            };
            if is_known { Ok(what.name()) } else { Err(unknown()) }
        }
    }
}

fn forbidden() -> Fault {
    Fault::new(Reason::Forbidden, "a principal takes back the tokens that it minted").with("needs", "owner")
}

fn unknown() -> Fault {
    Fault::new(Reason::NotFound, "no token and no key of this id was issued here")
}
