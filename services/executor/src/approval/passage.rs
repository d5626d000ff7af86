//! The watcher's step of admission: a call goes on, waits for a person, or is refused.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::event::{Body, EventKind, Sealed};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::{InvocationId, uuid_at};
use callbook_domain::row::{Risk, timestamp};
use callbook_store::fault::fault;
use uuid::Uuid;

use super::held::{LIFE, id_text};
use super::rule::Verdict;
use super::{Approval, State};
use crate::App;
use crate::admit::is_written;
use crate::call::{Call, Request, sent_json};
use crate::store::approval::{self, Held, New, Same};

/// How often a call that was decided between two looks is looked at again.
const TRIES: usize = 3;

/// What the watcher says to a call that it does not refuse.
#[derive(Clone, Debug)]
pub enum Passage {
    /// It goes on.
    Go,
    /// A person approved it: it goes on as this invocation, once. The commit point takes the approval.
    Approved {
        /// The approval.
        approval: Uuid,
        /// The id that the call has.
        invocation: InvocationId,
    },
    /// It waits for a person.
    Held(Box<Approval>),
}

/// Decides whether a call that passed the other checks may go to the commit point. The owner's calls do, and those of
/// rows that are not sensitive, unless their token waits for a person always. What a rule refuses is refused, also as a
/// step that a flow has written; no person is asked about such a step, as the flow itself was.
///
/// # Errors
/// `denied:<reason>` where a rule or a person refused it, `denied:watcher_error` where nobody could be asked,
/// `idempotency_mismatch` where its idempotency key waits for another call, `overloaded` where 100 calls of the caller wait.
pub async fn passage(app: &Arc<App>, caller: &Caller, request: &Request, call: &Call) -> Result<Passage> {
    match verdict(app, caller, request, call).await? {
        Verdict::Allow => Ok(Passage::Go),
        Verdict::Deny(reason) => Err(denied(reason)),
        Verdict::Hold(reason) => held(app, caller, request, call, reason).await,
    }
}

/// What the watcher says to a call by itself, before a person is asked. Nothing is written.
///
/// # Errors
/// `denied:watcher_error` where it could not be asked.
pub async fn verdict(app: &App, caller: &Caller, request: &Request, call: &Call) -> Result<Verdict> {
    if *caller == Caller::Owner {
        return Ok(Verdict::Allow);
    }
    let ruled = match call.entry.row.risk {
        Risk::High => app.watcher.verdict(app, call.entry.key(), &request.sent, &call.bound).await.map_err(closed)?,
        Risk::Low => Verdict::Allow,
    };
    let waits_always = matches!(caller, Caller::Holder(holder) if holder.cap().owner_gate);
    Ok(match ruled {
        Verdict::Deny(reason) => Verdict::Deny(reason),
        Verdict::Allow | Verdict::Hold(_) if is_written(request) => Verdict::Allow,
        Verdict::Allow | Verdict::Hold(_) if waits_always => Verdict::Hold("owner_gate".to_owned()),
        ruled @ (Verdict::Allow | Verdict::Hold(_)) => ruled,
    })
}

/// What a person said to this very call; where nobody was asked yet, it is held from now on.
async fn held(app: &App, caller: &Caller, request: &Request, call: &Call, reason: String) -> Result<Passage> {
    let (pool, row) = (app.directory.pool(), &call.entry.row);
    let same = Same {
        caller: caller.identity(),
        key: call.entry.key().to_string(),
        contract_hash: row.contract_hash.clone(),
        argument_hash: request.argument_hash(),
    };
    if let Some(key) = &request.idempotency_key {
        let other = approval::other_under(pool, &same.caller, key, &same.argument_hash, app.clock.now()).await;
        if let Some(other) = other.map_err(|error| closed(fault(error)))? {
            return Err(Fault::new(Reason::IdempotencyMismatch, "the idempotency key was used for another call")
                .with("invocation_id", InvocationId(other).to_string()));
        }
    }
    for _ in 0..TRIES {
        let now = app.clock.now();
        let standing = approval::standing(pool, &same, now).await.map_err(|error| closed(fault(error)))?;
        if let Some(standing) = standing {
            return decided(Approval::of(standing, now));
        }
        let new = new(caller, request, call, same.clone(), &reason, now);
        match approval::hold(pool, &new).await.map_err(|error| closed(fault(error)))? {
            // another replica may have held it first: the next look finds its approval
            Held::Now | Held::Already => {}
            Held::Full => {
                return Err(Fault::new(Reason::Overloaded, "as many calls of this caller wait for a person as may")
                    .fix("have some of them decided first")
                    .retry_after_ms(60_000));
            }
        }
    }
    Err(closed("the approval ends before it can be read"))
}

fn decided(approval: Approval) -> Result<Passage> {
    match approval.state {
        State::Held => Ok(Passage::Held(Box::new(approval))),
        State::Approved => Ok(Passage::Approved { approval: approval.id, invocation: approval.invocation }),
        State::Refused if approval.decision_reason.is_empty() => Err(denied("refused".to_owned())),
        State::Refused => Err(denied(approval.decision_reason)),
        State::Used | State::Expired => Err(closed("an approval that is over was taken for a standing one")),
    }
}

fn new(caller: &Caller, request: &Request, call: &Call, same: Same, reason: &str, now: time::OffsetDateTime) -> New {
    let (row, id, invocation) = (&call.entry.row, uuid_at(now), InvocationId::new(now));
    let input = Sealed::new(sent_json(&request.sent).into_bytes());
    let event = Body::new(EventKind::Hold)
        .set("inv", invocation.to_string())
        .set("approval", id_text(id))
        .set("key", same.key.as_str())
        .set("revision", row.revision)
        .set("contract", same.contract_hash.as_str())
        .set("text", row.text_hash.as_str())
        .set("actor", caller.actor())
        .set("risk", row.risk.as_str())
        .set("effect", row.effect.as_str())
        .set("in", input.commitment())
        .set("parent", request.place.as_ref().map(|place| place.parent.to_string()))
        .set("reason", reason)
        .set("ts", timestamp(now));
    let principal = match caller {
        Caller::Principal(principal) => Some(principal.id),
        Caller::Holder(holder) => holder.principal,
        Caller::Owner | Caller::Anonymous => None,
    };
    New {
        id,
        invocation: invocation.0,
        same,
        actor: caller.actor(),
        principal,
        text_hash: row.text_hash.clone(),
        idempotency_key: request.idempotency_key.clone(),
        input,
        reason: reason.to_owned(),
        at: now,
        expires_at: now + LIFE,
        event: event.canonical(),
    }
}

fn denied(reason: String) -> Fault {
    Fault::new(Reason::Denied, "a rule or a person refused the call").detail(reason)
}

/// The answer where nobody could be asked: the call is refused.
fn closed(why: impl std::fmt::Display) -> Fault {
    tracing::error!(%why, "the watcher could not decide");
    denied("watcher_error".to_owned())
}
