//! Finds held calls, and waits for their decision.

use std::time::Duration;

use callbook_domain::caller::{Caller, May};
use callbook_domain::fault::Result;
use callbook_domain::invocation::InvocationId;
use callbook_domain::key::Key;
use callbook_store::fault::fault;
use uuid::Uuid;

use super::held::unknown;
use super::{Approval, State};
use crate::App;
use crate::call::Deadline;
use crate::store::approval;

/// How often a call that waits looks whether it was decided.
const EVERY: Duration = Duration::from_millis(200);

/// The approval of the call that has, or will have, this id.
pub async fn of_invocation(app: &App, id: InvocationId) -> Result<Option<Approval>> {
    let found = approval::of_invocation(app.directory.pool(), id.0).await.map_err(fault)?;
    Ok(found.map(|record| Approval::of(record, app.clock.now())))
}

/// Waits until the call is decided, its time is over, or `until` has come. It looks again and again and keeps no
/// connection between two looks: those who wait are many and wait for minutes.
pub async fn wait(app: &App, id: Uuid, until: Deadline) -> Result<()> {
    loop {
        if load(app, id).await?.state != State::Held || until.left().is_zero() {
            return Ok(());
        }
        tokio::time::sleep(EVERY.min(until.left())).await;
    }
}

/// The approval, if the caller may see it: its own call, or one that it may decide by the row.
///
/// # Errors
/// `unauthorized`; `not found` for what is hidden and what is not there alike.
pub(super) async fn visible(app: &App, caller: &Caller, id: Uuid) -> Result<Approval> {
    caller.require_credential()?;
    let approval = load(app, id).await?;
    if approval.caller == caller.identity() || may_approve(caller, &approval.key) {
        Ok(approval)
    } else {
        Err(unknown())
    }
}

async fn load(app: &App, id: Uuid) -> Result<Approval> {
    let record = approval::load(app.directory.pool(), id).await.map_err(fault)?.ok_or_else(unknown)?;
    Ok(Approval::of(record, app.clock.now()))
}

/// Whether the caller may approve calls of this row.
pub(super) fn may_approve(caller: &Caller, key: &str) -> bool {
    Key::parse(key).is_ok_and(|key| caller.may(May::Approve, Some(&key)))
}
