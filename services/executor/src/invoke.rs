//! The walk of a call: admission, commit point, run, result, answer.
//!
//! The walk belongs to a task of its own: a client that hangs up changes nothing.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::event::{Body, EventKind, Sealed};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::{InvocationId, Mode, State, check_idempotency_key};
use callbook_domain::row::{Effect, timestamp};
use callbook_store::fault::fault;
use time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tracing::Instrument as _;

use crate::App;
use crate::admit::admit;
use crate::call::{Answer, Call, Request, sent_json};
use crate::config::LEASE_AFTER_DEADLINE;
use crate::finish::run_to_the_end;
use crate::group::Refused;
use crate::store::commit::{self, Candidate, Earlier, Held};
use crate::stored_answer;

/// A row that moves is read again this often before the caller hears of it.
const TRIES: usize = 3;

/// Runs a row once, with a receipt. All of it belongs to a task of its own from the start: a client that hangs up while
/// the intent is being committed must not leave a committed call that nobody runs.
///
/// # Errors
/// Whatever admission or the commit point refuses. A run that failed is no error: it is in the answer.
pub async fn invoke(app: &Arc<App>, caller: &Caller, request: Request) -> Result<Answer> {
    caller.require_credential()?;
    if let Some(key) = &request.idempotency_key {
        check_idempotency_key(key)?;
        // the earlier answer comes first, whatever has become of the row
        if let Some(earlier) = commit::earlier(app.directory.pool(), &caller.identity(), key).await?
            && let Some(answer) = repeat(app, &request.argument_hash(), earlier).await?
        {
            return Ok(answer);
        }
    }
    let slot = app.slot()?;
    walk_aside(app, caller, request, slot).await
}

/// Walks a call in a task of its own, which holds its place among the calls in flight, and waits for the answer.
pub async fn walk_aside(
    app: &Arc<App>,
    caller: &Caller,
    request: Request,
    slot: Option<OwnedSemaphorePermit>,
) -> Result<Answer> {
    let (id, deadline) = (InvocationId::new(app.clock.now()), request.deadline);
    let (reply, answer) = oneshot::channel();
    let walk = walk(app.clone(), caller.clone(), request, id, reply);
    app.tasks.spawn(
        async move {
            walk.await;
            drop(slot);
        }
        .in_current_span(),
    );
    match tokio::time::timeout(deadline.left() + LEASE_AFTER_DEADLINE, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Err(lost(id)),
    }
}

async fn walk(
    app: Arc<App>,
    caller: Caller,
    request: Request,
    id: InvocationId,
    reply: oneshot::Sender<Result<Answer>>,
) {
    match pass(&app, &caller, &request, id).await {
        Ok(Passed::Fires(call, candidate)) => run_to_the_end(app, *call, *candidate, request.deadline, reply).await,
        Ok(Passed::Answered(answer)) => drop(reply.send(Ok(*answer))), // the caller may have gone
        Err(fault) => drop(reply.send(Err(fault))),
    }
}

/// What became of a call at the commit point.
enum Passed {
    /// It is committed, or needs no commit before it runs.
    Fires(Box<Call>, Box<Candidate>),
    /// An earlier call answers for it.
    Answered(Box<Answer>),
}

async fn pass(app: &Arc<App>, caller: &Caller, request: &Request, id: InvocationId) -> Result<Passed> {
    let mut moved = 0;
    loop {
        let call = admit(app, caller, request).await?;
        app.check_breaker(&call).await?;
        let mode = mode(app, &call, request);
        let candidate = candidate(app, caller, request, &call, id, mode);
        let passes = match mode {
            Mode::Read => commit::still_true(app.directory.pool(), &candidate).await?,
            Mode::Durable => app.committer.admit(candidate.clone()).await.map_err(refused)?,
        };
        if passes {
            return Ok(Passed::Fires(Box::new(call), Box::new(candidate)));
        }
        match commit::why_held(app.directory.pool(), &candidate).await? {
            Held::Earlier(earlier) => {
                if let Some(answer) = repeat(app, &candidate.argument_hash, *earlier).await? {
                    return Ok(Passed::Answered(Box::new(answer)));
                } // else the key's day was over and it is free again
            }
            Held::Revoked => return Err(callbook_domain::caller::unauthorized()),
            Held::Moved if moved + 1 < TRIES => {
                moved += 1;
                app.directory.fresh().await?;
            }
            Held::Moved => {
                return Err(Fault::new(Reason::RowMoved, "the row changes faster than it can be called")
                    .fix("read the contract again and repeat the call"));
            }
        }
    }
}

/// What a full or failing group tells a caller.
fn refused(refused: Refused) -> Fault {
    match refused {
        Refused::Full => overloaded(),
        Refused::Sql(error) => fault(error),
        Refused::Stopped => Fault::new(Reason::ShuttingDown, "the executor is stopping").retry_after_ms(1_000),
        Refused::Lost => Fault::new(Reason::Internal, "the commit ended without an answer").with("fired", "false"),
    }
}

/// The answer of an executor at its limit.
pub fn overloaded() -> Fault {
    Fault::new(Reason::Overloaded, "the executor is at its limit").retry_after_ms(1_000)
}

/// The operator's switch: rows that read, called without an idempotency key, are committed after their call.
fn mode(app: &App, call: &Call, request: &Request) -> Mode {
    let linked = request.idempotency_key.is_some()
        || request.repairs.is_some()
        || request.replay_of.is_some()
        || request.place.is_some();
    let reads = app.config.read_mode && call.entry.row.effect == Effect::Read && !linked;
    if reads { Mode::Read } else { Mode::Durable }
}

fn candidate(app: &App, caller: &Caller, request: &Request, call: &Call, id: InvocationId, mode: Mode) -> Candidate {
    let (now, row) = (app.clock.now(), &call.entry.row);
    let input = Sealed::new(sent_json(&request.sent).into_bytes());
    let lease = request.deadline.left() + LEASE_AFTER_DEADLINE;
    let event = Body::new(EventKind::Intent)
        .set("inv", id.to_string())
        .set("key", row.definition.key.as_str())
        .set("revision", row.revision)
        .set("contract", row.contract_hash.as_str())
        .set("text", row.text_hash.as_str())
        .set("actor", caller.actor())
        .set("risk", row.risk.as_str())
        .set("effect", row.effect.as_str())
        .set("in", input.commitment())
        .set("parent", request.place.as_ref().map(|place| place.parent.to_string()))
        .set("repairs", request.repairs.map(|id| id.to_string()))
        .set("replay_of", request.replay_of.map(|id| id.to_string()))
        .set("mode", mode.as_str())
        .set("ts", timestamp(now));
    Candidate {
        id,
        caller: caller.identity(),
        principal: match caller {
            Caller::Principal(principal) => (!principal.is_outside).then_some(principal.id),
            Caller::Owner | Caller::Holder(_) | Caller::Anonymous => None,
        },
        actor: caller.actor(),
        idempotency_key: request.idempotency_key.clone(),
        argument_hash: request.argument_hash(),
        key: row.definition.key.to_string(),
        row_type: row.definition.row_type.as_str(),
        row_revision: row.revision,
        contract_hash: row.contract_hash.clone(),
        text_hash: row.text_hash.clone(),
        effect: row.effect.as_str(),
        risk: row.risk.as_str(),
        runner: row.definition.row_type.as_str(),
        mode,
        pool: row.definition.pool().to_owned(),
        executor: app.id,
        lease_seconds: lease.as_secs_f64(),
        parent: request.place.as_ref().map(|place| place.parent.0),
        repairs: request.repairs.map(|id| id.0),
        replay_of: request.replay_of.map(|id| id.0),
        trace: callbook_runtime::telemetry::trace_id(),
        started_at: now,
        warnings: call.bound.warnings.clone(),
        input,
        event: event.canonical(),
    }
}

/// The answer when a call was fired and its result is not committed: it may have happened, and must not be repeated
/// blindly.
pub fn not_stored(id: InvocationId) -> Fault {
    Fault::new(Reason::ResultNotStored, "the call was fired and its result is not stored yet")
        .with("invocation_id", id.to_string())
        .with("fired", "true")
        .fix("look at the receipt before you repeat the call")
}

/// The answer when the call's own task came to no end in time: it may have fired.
fn lost(id: InvocationId) -> Fault {
    Fault::new(Reason::ResultNotStored, "the call came to no end in time and may have been fired")
        .with("invocation_id", id.to_string())
        .with("fired", "unknown")
        .fix("look at the receipt before you repeat the call")
}

/// The answer to a call whose idempotency key was used before; none where the key's day is over.
async fn repeat(app: &App, argument_hash: &[u8], earlier: Earlier) -> Result<Option<Answer>> {
    let id = InvocationId(earlier.id);
    if earlier.started_at + Duration::hours(callbook_domain::invocation::IDEMPOTENCY_HOURS) <= app.clock.now() {
        commit::release_key(app.directory.pool(), earlier.id).await?;
        return Ok(None);
    }
    if earlier.argument_hash != argument_hash {
        return Err(Fault::new(Reason::IdempotencyMismatch, "the idempotency key was used for another call")
            .with("invocation_id", id.to_string()));
    }
    if State::parse(&earlier.state) == Some(State::Running) {
        return Err(Fault::new(Reason::InProgress, "a call with this idempotency key is running")
            .with("invocation_id", id.to_string())
            .retry_after_ms(1_000));
    }
    stored_answer::load(app, id).await.map(Some)
}
