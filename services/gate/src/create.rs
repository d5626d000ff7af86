//! Add a principal and give its key, once.

use callbook_caller::{hash, new_api_key};
use callbook_domain::caller::{Caller, Grant};
use callbook_domain::event::EventKind;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::uuid_at;
use callbook_store::fault::{constraint, fault};

use crate::App;
use crate::principal::{Kept, check_grants, check_name};
use crate::store::principal as store;

/// The principal and its API key, of which only the hash is kept.
///
/// # Errors
/// `unauthorized`, `forbidden`, `invalid_request`; `already_exists` also for the name of one that was ended.
pub(crate) async fn create(app: &App, caller: &Caller, name: String, grants: Vec<Grant>) -> Result<(Kept, String)> {
    caller.require_owner()?;
    check_name(&name)?;
    check_grants(&grants)?;
    let now = app.clock.now();
    let key = new_api_key();
    let kept = Kept { id: uuid_at(now), name, grants, created_at: now, revoked_at: None };
    let mut transaction = app.pool.begin().await.map_err(fault)?;
    store::insert(&mut transaction, &kept, &hash(&key), caller).await.map_err(|error| match constraint(&error) {
        Some("principal_name") => taken(&kept.name),
        Some(_) | None => fault(error),
    })?;
    store::record(&mut transaction, &kept, EventKind::Mint, caller, now).await.map_err(fault)?;
    transaction.commit().await.map_err(fault)?;
    Ok((kept, key))
}

fn taken(name: &str) -> Fault {
    Fault::new(Reason::AlreadyExists, format!("a principal `{name}` exists or existed"))
        .fix("choose another name, names are never used again")
        .with("name", name)
}
