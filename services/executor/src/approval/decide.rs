//! Approves or refuses a held call.

use callbook_domain::caller::{Caller, May};
use callbook_domain::event::{Body, EventKind};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_domain::row::timestamp;
use uuid::Uuid;

use super::find::visible;
use super::held::id_text;
use super::rule::check_reason;
use super::{Approval, State};
use crate::App;
use crate::store::approval::{self, Decision};

/// Decides a held call, once. An approved call may be fired once by its caller until its time is over.
///
/// # Errors
/// `unauthorized`, `not found`; `forbidden` for callers without `approve` over the key, for the call's own caller and for
/// the principal that minted its token; `invalid_request` for the reason; `already_decided:<state>`.
pub async fn decide(app: &App, caller: &Caller, id: Uuid, approve: bool, reason: &str) -> Result<Approval> {
    let held = visible(app, caller, id).await?;
    check_decider(caller, &held)?;
    check_reason(reason)?;
    let (now, state) = (app.clock.now(), if approve { State::Approved } else { State::Refused });
    let event = Body::new(EventKind::Approve)
        .set("inv", held.invocation.to_string())
        .set("approval", id_text(held.id))
        .set("key", held.key.as_str())
        .set("contract", held.contract_hash.as_str())
        .set("actor", held.actor.as_str())
        .set("by", caller.actor())
        .set("decision", state.as_str())
        .set("reason", reason)
        .set("ts", timestamp(now));
    let decision = Decision {
        id,
        state: state.as_str(),
        by: caller.actor(),
        reason: reason.to_owned(),
        at: now,
        event: event.canonical(),
    };
    let decided = approval::decide(app.directory.pool(), caller, &decision).await?;
    let stands = visible(app, caller, id).await?;
    if decided {
        return Ok(stands);
    }
    Err(Fault::new(Reason::AlreadyDecided, "the call was decided before, or its time is over")
        .detail(stands.state.as_str())
        .with("approval", id_text(id)))
}

/// Refuses everybody who may not decide the call. Nobody but the owner decides what it asked for itself, or what was
/// asked for with a token that it minted.
fn check_decider(caller: &Caller, held: &Approval) -> Result<()> {
    let key = Key::parse(&held.key).map_err(|_| Fault::new(Reason::Internal, "the log names a key that is none"))?;
    caller.require(May::Approve, Some(&key))?;
    let is_own = match caller {
        Caller::Owner => false,
        Caller::Principal(principal) => held.principal == Some(principal.id) || held.caller == caller.identity(),
        Caller::Holder(_) | Caller::Anonymous => true,
    };
    if is_own {
        return Err(Fault::new(Reason::Forbidden, "nobody but the owner decides a call of its own")
            .with("needs", format!("{}:{}", May::Approve, held.key))
            .fix("ask another principal with `approve`, or the owner"));
    }
    Ok(())
}
