//! Lists held calls.

use callbook_domain::caller::{Caller, May};
use callbook_domain::fault::Result;
use callbook_store::fault::fault;
use uuid::Uuid;

use super::{Approval, State};
use crate::App;
use crate::store::approval::{self, Filter};

/// A page of approvals, newest first: the owner sees all, others their own calls and those of rows that they may approve.
///
/// # Errors
/// `unauthorized`.
pub async fn list(
    app: &App,
    caller: &Caller,
    state: Option<State>,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Approval>> {
    caller.require_credential()?;
    let state = state.map(State::as_str);
    let filter = match caller {
        Caller::Owner => Filter { caller: None, prefixes: Vec::new(), state },
        Caller::Principal(principal) => {
            let grants = principal.grants.iter().filter(|grant| grant.may == May::Approve);
            let prefixes = grants.map(|grant| grant.prefix.clone()).collect();
            Filter { caller: Some(caller.identity()), prefixes, state }
        }
        Caller::Holder(_) | Caller::Anonymous => {
            Filter { caller: Some(caller.identity()), prefixes: Vec::new(), state }
        }
    };
    let now = app.clock.now();
    let found = approval::list(app.directory.pool(), &filter, before, limit, now).await.map_err(fault)?;
    Ok(found.into_iter().map(|record| Approval::of(record, now)).collect())
}
