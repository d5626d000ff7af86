//! The walk of a call: admission, commit point, run, result, answer.
//!
//! The walk belongs to a task of its own: a client that hangs up takes back what is not committed and changes nothing
//! of what is.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use callbook_domain::caller::Caller;
use callbook_domain::event::{Body, EventKind, Sealed};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::{IDEMPOTENCY_HOURS, InvocationId, Mode, State, check_idempotency_key};
use callbook_domain::row::{Effect, timestamp};
use callbook_store::fault::fault;
use tokio::sync::oneshot;
use tracing::Instrument as _;

use crate::admit::{Room, admit, check_scope, enter};
use crate::approval::{self, Approval, Passage, passage};
use crate::call::{Answer, Call, Deadline, Request, Work, sent_json};
use crate::config::LEASE_AFTER_DEADLINE;
use crate::credential::Credential;
use crate::finish::run_to_the_end;
use crate::group::Refused;
use crate::store::commit::{self, Candidate};
use crate::store::stopped::{self, Earlier, Stopped};
use crate::{App, denied, stored_answer};

/// A row that moves is read again this often before the caller hears of it.
const TRIES: usize = 3;

/// What a call that waits for its decision leaves of its deadline, so that its caller hears that nobody has decided.
const ANSWERING: Duration = Duration::from_millis(500);

/// When a caller is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Once the call ended.
    Ended,
    /// Once it is committed; it runs on without a listener.
    Committed,
}

/// Runs a row once, with a receipt. All of it belongs to a task of its own from the start: a client that hangs up while
/// the intent is being committed must not leave a committed call that nobody runs. One that hangs up before, while its
/// call waits for a decision for example, has taken it back.
///
/// Where an earlier call answers for it, or where it waits for a person, that is the answer, whenever the caller wants
/// one.
///
/// # Errors
/// Whatever admission or the commit point refuses. A run that failed is no error: it is in the answer.
pub async fn invoke(app: &Arc<App>, caller: &Caller, request: Request, until: Until) -> Result<Answer> {
    caller.require_credential()?;
    if let Some(key) = &request.idempotency_key {
        check_idempotency_key(key)?;
    }
    app.check_open()?;
    walk_aside(app, caller, request, until).await
}

/// The same for the caller that a credential shows.
///
/// # Errors
/// Those of the credential, then as [`invoke`].
pub async fn prove_and_invoke(
    app: &Arc<App>,
    credential: Credential<'_>,
    request: Request,
    until: Until,
) -> Result<Answer> {
    let (caller, request) = credential.prove(request).await?;
    invoke(app, &caller, request, until).await
}

/// Walks a call in a task of its own and waits for the answer.
pub async fn walk_aside(app: &Arc<App>, caller: &Caller, request: Request, until: Until) -> Result<Answer> {
    let (name, deadline) = (Arc::new(OnceLock::new()), request.deadline);
    let (reply, answer) = oneshot::channel();
    let walk = walk(app.clone(), caller.clone(), request, name.clone(), Reply { until, answer: reply });
    app.tasks.spawn(walk.in_current_span());
    match tokio::time::timeout(deadline.left() + LEASE_AFTER_DEADLINE, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Err(lost(name.get().copied())),
    }
}

/// Where an answer goes, and when.
struct Reply {
    until: Until,
    answer: oneshot::Sender<Result<Answer>>,
}

async fn walk(app: Arc<App>, caller: Caller, request: Request, name: Arc<OnceLock<InvocationId>>, mut reply: Reply) {
    match pass(&app, &caller, &request, &name, &mut reply).await {
        Ok(Passed::TakenBack) => {}
        Ok(Passed::Fires(fires)) => {
            let Fires { call, candidate, room } = *fires;
            let answer = match reply.until {
                Until::Ended => reply.answer,
                Until::Committed => {
                    let accepted = Answer { accepted: true, ..Answer::before_it_runs(&call, candidate.id) };
                    let _ = reply.answer.send(Ok(accepted)); // the caller may have gone
                    oneshot::channel().0
                }
            };
            run_to_the_end(app, call, candidate, request.deadline, answer).await;
            drop(room);
        }
        Ok(Passed::Answered(answer)) => drop(reply.answer.send(Ok(*answer))), // the caller may have gone
        Err(fault) => {
            denied::record(&app, &caller, &request.key, &fault);
            drop(reply.answer.send(Err(fault)));
        }
    }
}

/// What became of a call at the commit point.
enum Passed {
    /// It is committed, or needs no commit before it runs.
    Fires(Box<Fires>),
    /// An earlier call answers for it, or it waits for a person.
    Answered(Box<Answer>),
    /// Its caller has gone before.
    TakenBack,
}

/// A call that fires, with its room.
struct Fires {
    call: Call,
    candidate: Candidate,
    room: Room,
}

async fn pass(
    app: &Arc<App>,
    caller: &Caller,
    request: &Request,
    name: &OnceLock<InvocationId>,
    reply: &mut Reply,
) -> Result<Passed> {
    check_scope(caller, request, &app.directory.snapshot())?;
    // the earlier answer comes first, whatever has become of the row
    if let Some(answer) = earlier(app, caller, request).await? {
        return Ok(Passed::Answered(Box::new(answer)));
    }
    let (own, mut moved) = (InvocationId::new(app.clock.now()), 0);
    let left = request.deadline.left();
    let mut until = Deadline::after(request.wait.min(left.saturating_sub(ANSWERING.min(left / 4))));
    loop {
        let call = admit(app, caller, request).await?;
        let (id, approval) = match passage(app, caller, request, &call).await? {
            Passage::Go => (own, None),
            Passage::Approved { approval, invocation } => (invocation, Some(approval)),
            Passage::Held(held) if until.left().is_zero() => {
                let id = held.invocation;
                let answer = Answer { held: Some(*held), ..Answer::before_it_runs(&call, id) };
                return Ok(Passed::Answered(Box::new(answer)));
            }
            Passage::Held(held) => {
                let Ok(_waits) = app.waiters.try_acquire() else {
                    until = Deadline::after(Duration::ZERO);
                    continue;
                };
                tokio::select! {
                    waited = wait(app, &held, until) => until = waited?,
                    () = reply.answer.closed() => return Ok(Passed::TakenBack),
                }
                continue;
            }
        };
        let room = enter(app, request, &call).await?;
        if reply.answer.is_closed() {
            return Ok(Passed::TakenBack);
        }
        let mode = mode(app, &call, request, reply.until, approval.is_some());
        let candidate = Candidate { approval, ..candidate(app, caller, request, &call, id, mode) };
        let _ = name.set(id); // set before, where the row moved meanwhile
        let passes = match mode {
            Mode::Read => still_true(app, &candidate).await?,
            Mode::Durable => app.committer.admit(candidate.clone()).await.map_err(refused)?,
        };
        if passes {
            return Ok(Passed::Fires(Box::new(Fires { call, candidate, room })));
        }
        match stopped::why(app.directory.pool(), &candidate, app.clock.now()).await? {
            Stopped::Earlier(earlier) => {
                if let Some(answer) = repeat(app, &candidate.argument_hash, *earlier).await? {
                    return Ok(Passed::Answered(Box::new(answer)));
                } // else the key's day was over and it is free again
            }
            Stopped::Moved | Stopped::Unapproved if moved + 1 < TRIES => {
                moved += 1;
                app.directory.fresh().await?;
            }
            stopped => return Err(refusal(&stopped)),
        }
    }
}

/// The answer of the call that used the idempotency key before.
async fn earlier(app: &App, caller: &Caller, request: &Request) -> Result<Option<Answer>> {
    let Some(key) = &request.idempotency_key else { return Ok(None) };
    match stopped::earlier(app.directory.pool(), &caller.identity(), key).await? {
        Some(earlier) => repeat(app, &request.argument_hash(), earlier).await,
        None => Ok(None),
    }
}

/// Waits for a decision, and gives how long the caller waits for the next one. An executor that stops lets nobody wait.
async fn wait(app: &App, held: &Approval, until: Deadline) -> Result<Deadline> {
    tokio::select! {
        waited = approval::wait(app, held.id, until) => waited.map(|()| until),
        () = app.closing() => Ok(Deadline::after(Duration::ZERO)),
    }
}

/// What a caller is told of a call that was stopped at the commit point.
pub fn refusal(stopped: &Stopped) -> Fault {
    match stopped {
        Stopped::Ended => callbook_domain::caller::unauthorized(),
        Stopped::Revoked(name) => {
            Fault::new(Reason::Revoked, "the token was taken back").detail(name).fix("ask for a new token")
        }
        Stopped::Over => Fault::new(Reason::Expired, "the time of the credential is over").fix("ask for a new one"),
        Stopped::Exhausted => {
            Fault::new(Reason::TokenExhausted, "the token was used as often as it may be").fix("ask for a new token")
        }
        Stopped::Earlier(_) | Stopped::Unapproved | Stopped::Moved => {
            Fault::new(Reason::RowMoved, "the row changes faster than it can be called")
                .fix("read the contract again and repeat the call")
        }
    }
}

/// What a full or failing group tells a caller.
pub fn refused(refused: Refused) -> Fault {
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

/// The operator's switch: rows that read, called without an idempotency key, are committed after their call. A call that
/// is counted or approved is not, nor is one that is answered once it is committed.
fn mode(app: &App, call: &Call, request: &Request, until: Until, is_approved: bool) -> Mode {
    let is_counted = matches!(&call.caller, Caller::Holder(holder) if !holder.counters.is_empty());
    let linked = is_counted
        || is_approved
        || matches!(until, Until::Committed)
        || request.idempotency_key.is_some()
        || request.repairs.is_some()
        || request.replay_of.is_some()
        || request.place.is_some();
    let reads = app.config.read_mode && call.entry.row.effect == Effect::Read && !linked;
    if reads { Mode::Read } else { Mode::Durable }
}

/// Whether a call of read mode, which passes no commit point, may run all the same. The book is followed, so while the
/// database answers there is nothing to ask for a credential that it cannot take back; every other one is asked for anew.
async fn still_true(app: &App, candidate: &Candidate) -> Result<bool> {
    if candidate.is_over(app.clock.now()) {
        return Ok(false);
    }
    let cannot_end = candidate.principal.is_none() && candidate.names().is_empty();
    if cannot_end && !app.directory.is_stale() {
        return Ok(true);
    }
    commit::still_true(app.directory.pool(), candidate).await
}

/// What the commit point looks at and writes.
pub fn candidate(
    app: &App,
    caller: &Caller,
    request: &Request,
    call: &Call,
    id: InvocationId,
    mode: Mode,
) -> Candidate {
    let (now, row) = (app.clock.now(), &call.entry.row);
    let input = Sealed::new(sent_json(&request.sent).into_bytes());
    let lease = request.deadline.left() + LEASE_AFTER_DEADLINE;
    let holder = match caller {
        Caller::Holder(holder) => Some(holder.clone()),
        Caller::Owner | Caller::Principal(_) | Caller::Anonymous => None,
    };
    let event = Body::new(EventKind::Intent)
        .set("inv", id.to_string())
        .set("key", row.definition.key.as_str())
        .set("revision", row.revision)
        .set("contract", row.contract_hash.as_str())
        .set("text", row.text_hash.as_str())
        .set("actor", caller.actor())
        .set("lineage", holder.as_ref().map(|holder| commit::lineage_ids(holder)))
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
        principal: caller.recorded_principal(),
        holder,
        credential_ends: caller.ends(),
        is_counted: !matches!(call.work, Work::Turn(_)),
        approval: None,
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
fn lost(id: Option<InvocationId>) -> Fault {
    let fault = Fault::new(Reason::ResultNotStored, "the call came to no end in time and may have been fired")
        .with("fired", "unknown")
        .fix("look at the receipt before you repeat the call");
    match id {
        Some(id) => fault.with("invocation_id", id.to_string()),
        None => fault,
    }
}

/// The answer to a call whose idempotency key was used before; none where the key's day is over.
async fn repeat(app: &App, argument_hash: &[u8], earlier: Earlier) -> Result<Option<Answer>> {
    let id = InvocationId(earlier.id);
    if earlier.started_at + time::Duration::hours(IDEMPOTENCY_HOURS) <= app.clock.now() {
        stopped::release_key(app.directory.pool(), earlier.id).await?;
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
