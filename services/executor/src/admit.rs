//! Admission: everything that can refuse a call before it is committed, cheap checks first.

use std::sync::Arc;

use callbook_domain::arguments::Bound;
use callbook_domain::caller::{Caller, May};
use callbook_domain::compile::{Compiled, Plan};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_domain::row::DEFAULT_POOL;
use callbook_domain::token::argument_hash;
use callbook_store::snapshot::{Entry, Snapshot};
use tokio::sync::OwnedSemaphorePermit;

use crate::App;
use crate::call::{Call, Request, Work};
use crate::config::MIN_DEADLINE;
use crate::origin;
use crate::tree::{Authority, Place};

/// Decides a call against the snapshot; where the snapshot may be the reason of a refusal, looks again at a fresh one.
/// These are the steps 11 to 15 of the check order, and what of 17 hangs on the row: nobody is asked to approve what
/// cannot run here.
///
/// # Errors
/// In this order: `unauthorized`; `scope_mismatch` or `forbidden`; `unknown_key`, `runner_not_available`;
/// `contract_changed`, `risk_ceiling`, `effect_ceiling`, `body_not_allowed`, `payload_ceiling`; `args_invalid` and its
/// kin; `no_executor_for_pool`.
pub async fn admit(app: &App, caller: &Caller, request: &Request) -> Result<Call> {
    caller.require_credential()?;
    // what a flow has written runs the rows that it was admitted with
    if let Some(Place { authority: Authority::Written, book, .. }) = &request.place {
        return against(app, caller, request, book);
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
    !matches!(fault.reason(), Reason::Unauthorized | Reason::Forbidden | Reason::ScopeMismatch)
}

fn against(app: &App, caller: &Caller, request: &Request, snapshot: &Arc<Snapshot>) -> Result<Call> {
    let entry = find(caller, request, snapshot)?;
    check_token(caller, request, &entry)?;
    build(app, caller, request, &entry, snapshot)
}

/// The call against a fresh snapshot whatever its token says to the row, and what the token says.
pub async fn look(app: &App, caller: &Caller, request: &Request) -> Result<(Call, Result<()>)> {
    caller.require_credential()?;
    // without a database the book of this process is all that there is, and nothing runs
    let snapshot = app.directory.fresh().await.unwrap_or_else(|_| app.directory.snapshot());
    let entry = find(caller, request, &snapshot)?;
    let call = build(app, caller, request, &entry, &snapshot)?;
    Ok((call, check_token(caller, request, &entry)))
}

/// Steps 11 and 12.
fn find(caller: &Caller, request: &Request, snapshot: &Snapshot) -> Result<Arc<Entry>> {
    check_scope(caller, request, snapshot)?;
    let sight = if is_written(request) { &Caller::Owner } else { caller };
    callable(snapshot, sight, &request.key).map(|(entry, _)| entry)
}

/// Step 11, asked before whether the row exists, so that a refusal says nothing about it. What a flow has written runs by
/// the flow's authority.
pub fn check_scope(caller: &Caller, request: &Request, snapshot: &Snapshot) -> Result<()> {
    if is_written(request) {
        return Ok(());
    }
    let key = Key::parse(&request.key).ok();
    match (caller, &key) {
        (Caller::Owner, _) => Ok(()),
        (Caller::Holder(_), None) if !caller.sees_all() => {
            Err(Fault::new(Reason::ScopeMismatch, "the token does not cover this key"))
        }
        (Caller::Holder(_) | Caller::Principal(_) | Caller::Anonymous, _) => {
            caller.require(May::Invoke, key.as_ref())?;
            if key.is_some() { Ok(()) } else { Err(snapshot.unknown_key(caller, &request.key)) }
        }
    }
}

/// Steps 13 and 14. What a flow has written keeps the ceilings and needs no scope; fixed arguments are those of the
/// call that the caller makes, not of the calls that come of it.
fn check_token(caller: &Caller, request: &Request, entry: &Entry) -> Result<()> {
    let Caller::Holder(holder) = caller else { return Ok(()) };
    let (row, chain) = (&entry.row, &holder.chain);
    let bytes = u64::try_from(request.sent.bytes()).unwrap_or(u64::MAX);
    match authority(request) {
        Some(Authority::Written) => {
            chain.check_ceilings(row.risk, row.effect)?;
            chain.check_size(bytes)
        }
        Some(Authority::Own) => {
            chain.check_row(entry.key(), &row.contract_hash, row.risk, row.effect)?;
            chain.check_size(bytes)
        }
        None => {
            chain.check_row(entry.key(), &row.contract_hash, row.risk, row.effect)?;
            match holder.cap().body {
                Some(_) => chain.check_call(argument_hash(&request.sent)?, bytes),
                None => chain.check_size(bytes),
            }
        }
    }
}

/// Whether a flow has written it.
pub fn is_written(request: &Request) -> bool {
    authority(request) == Some(Authority::Written)
}

fn authority(request: &Request) -> Option<Authority> {
    request.place.as_ref().map(|place| place.authority)
}

/// Step 15, and the pool.
fn build(app: &App, caller: &Caller, request: &Request, entry: &Arc<Entry>, snapshot: &Arc<Snapshot>) -> Result<Call> {
    let compiled = entry.compiled.as_ref().map_err(Clone::clone)?;
    let bound = compiled.signature.bind(&request.sent)?;
    let work = work(compiled, &bound)?;
    check_pool(app, entry, request.place.is_some())?;
    Ok(Call {
        caller: caller.clone(),
        entry: entry.clone(),
        bound,
        work,
        place: request.place.clone(),
        book: snapshot.clone(),
    })
}

/// Whether the row runs here. What a flow, an agent or a function calls runs where they do, so a row that names no pool
/// runs in any.
pub fn check_pool(app: &App, entry: &Entry, is_called_by_a_call: bool) -> Result<()> {
    let pool = entry.row.definition.pool();
    let may_run = is_called_by_a_call && pool == DEFAULT_POOL || app.config.pools.iter().any(|served| served == pool);
    if may_run {
        return Ok(());
    }
    let fault = Fault::new(Reason::NoExecutorForPool, format!("this executor does not serve the pool `{pool}`"));
    Err(fault.detail(pool).with("pool", pool))
}

/// A call's room, given back when it is dropped.
#[derive(Debug)]
pub struct Room {
    _slot: Option<OwnedSemaphorePermit>,
    _origin: Option<origin::Held>,
}

/// Step 17, without what hangs on the row: a place among the calls in flight, which a call that another one makes has
/// already, a place at its upstream, time to run, and a credential that is not dead.
///
/// # Errors
/// `overloaded`, `deadline_too_short`, `breaker_open`.
pub async fn enter(app: &App, request: &Request, call: &Call) -> Result<Room> {
    let slot = if request.place.is_none() { app.slot()? } else { None };
    let origin = match &call.work {
        Work::Http(request) => Some(app.origins.enter(&request.url.origin().ascii_serialization())?),
        Work::Fn(_) | Work::Flow | Work::Agent | Work::Turn(_) => None,
    };
    if request.deadline.left() < MIN_DEADLINE {
        return Err(Fault::new(Reason::DeadlineTooShort, "the deadline leaves no time to run"));
    }
    app.check_breaker(call).await?;
    Ok(Room { _slot: slot, _origin: origin })
}

/// What runs with these arguments.
pub fn work(compiled: &Compiled, bound: &Bound) -> Result<Work> {
    match &compiled.plan {
        Plan::Http(plan) => plan.fill(bound).map(Work::Http),
        Plan::Fn(plan) => plan.arguments.fill(bound).map(Work::Fn),
        Plan::Flow(_) => Ok(Work::Flow),
        Plan::Agent(_) => Ok(Work::Agent),
        Plan::Block => Err(no_runner()),
    }
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
        Plan::Block => Err(no_runner()),
    }
}

/// A prompt block is the only row without a runner.
fn no_runner() -> Fault {
    Fault::new(Reason::RunnerNotAvailable, "a prompt block is text for agents and cannot be called")
        .detail("prompt_block")
}
