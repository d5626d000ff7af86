//! Admission: everything that can refuse a call before it is committed, cheap checks first.

use std::sync::Arc;

use callbook_domain::caller::{Caller, May};
use callbook_domain::compile::{Compiled, Plan};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_domain::row::Risk;
use callbook_store::snapshot::{Entry, Snapshot};

use crate::App;
use crate::call::{Call, Request, Work};
use crate::config::MIN_DEADLINE;
use crate::tree::{Authority, Place};

/// Decides a call against the snapshot; where the snapshot may be the reason of a refusal, looks again at a fresh one.
///
/// # Errors
/// In this order: `unauthorized`, `forbidden`, `unknown_key`, `runner_not_available`, `owner_gate_required`,
/// `args_invalid` and its kin, `no_executor_for_pool`, `deadline_too_short`.
pub async fn admit(app: &App, caller: &Caller, request: &Request) -> Result<Call> {
    caller.require_credential()?;
    // what a flow has written runs the rows that it was admitted with
    if let Some(Place { authority: Authority::Written, tree, .. }) = &request.place {
        return against(app, caller, request, &tree.book);
    }
    let held = app.directory.snapshot();
    match against(app, caller, request, &held) {
        Err(fault) if hangs_on_the_row(&fault) => {
            let fresh = app.directory.fresh().await?;
            if fresh.revision == held.revision { Err(fault) } else { against(app, caller, request, &fresh) }
        }
        decided => decided,
    }
}

/// A refusal that an edit of the row since could have lifted.
fn hangs_on_the_row(fault: &Fault) -> bool {
    !matches!(fault.reason(), Reason::Unauthorized | Reason::Forbidden | Reason::DeadlineTooShort)
}

fn against(app: &App, caller: &Caller, request: &Request, snapshot: &Arc<Snapshot>) -> Result<Call> {
    // asked before whether the row exists, so that a refusal says nothing about it
    let key = Key::parse(&request.key).ok();
    let is_written = request.place.as_ref().is_some_and(|place| place.authority == Authority::Written);
    let may = |key: &Key| is_written || caller.may(May::Invoke, Some(key));
    if !key.as_ref().is_some_and(may) && *caller != Caller::Owner {
        return caller.require(May::Invoke, key.as_ref()).and(Err(snapshot.unknown_key(caller, &request.key)));
    }
    let sight = if is_written { &Caller::Owner } else { caller };
    let (entry, compiled) = callable(snapshot, sight, &request.key)?;
    if entry.row.risk == Risk::High && *caller != Caller::Owner && !is_written {
        return Err(Fault::new(Reason::OwnerGateRequired, "the row is sensitive, only the owner may call it"));
    }
    let bound = compiled.signature.bind(&request.sent)?;
    let work = match &compiled.plan {
        Plan::Http(plan) => Work::Http(plan.fill(&bound)?),
        Plan::Fn(plan) => Work::Fn(plan.arguments.fill(&bound)?),
        Plan::Flow(_) => Work::Flow,
        Plan::Agent(_) => Work::Agent,
        Plan::Block => return Err(no_runner(&entry)),
    };
    let pool = entry.row.definition.pool();
    if !app.config.pools.iter().any(|served| served == pool) {
        return Err(Fault::new(Reason::NoExecutorForPool, format!("this executor does not serve the pool `{pool}`"))
            .detail(pool)
            .with("pool", pool));
    }
    if request.deadline.left() < MIN_DEADLINE {
        return Err(Fault::new(Reason::DeadlineTooShort, "the deadline leaves no time to run"));
    }
    Ok(Call { caller: caller.clone(), entry, bound, work, place: request.place.clone(), book: snapshot.clone() })
}

/// The row that this caller may call, enabled and compiled, of a type that has a runner.
pub fn callable<'a>(snapshot: &'a Snapshot, caller: &Caller, key: &str) -> Result<(Arc<Entry>, &'a Compiled)> {
    let entry = snapshot
        .get(key)
        .filter(|entry| entry.row.definition.enabled && caller.sees(entry.key()))
        .ok_or_else(|| snapshot.unknown_key(caller, key))?;
    let compiled = entry.compiled.as_ref().map_err(Clone::clone)?;
    match &compiled.plan {
        Plan::Http(_) | Plan::Fn(_) | Plan::Flow(_) | Plan::Agent(_) => Ok((entry.clone(), compiled)),
        Plan::Block => Err(no_runner(entry)),
    }
}

fn no_runner(entry: &Entry) -> Fault {
    let definition = &entry.row.definition;
    let kind = if definition.is_prompt_block() { "prompt_block" } else { definition.row_type.as_str() };
    Fault::new(Reason::RunnerNotAvailable, format!("this build has no runner for rows of type `{kind}`")).detail(kind)
}
