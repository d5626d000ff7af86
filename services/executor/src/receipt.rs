//! Read receipts: the public confirmation, the full record, listings and figures.

use callbook_domain::caller::{Caller, May};
use callbook_domain::event::commitment;
use callbook_domain::fault::Result;
use callbook_domain::invocation::{InvocationId, Mode, State, Status, unknown};
use callbook_domain::key::Key;
use callbook_store::fault::fault;
use time::OffsetDateTime;

use crate::App;
use crate::approval::{self, Approval};
use crate::credential::Credential;
use crate::store::receipt::{self, Figures, Filter, Logged, Payload, Record};

/// An invocation with everything that is known of it.
#[derive(Clone, Debug)]
pub struct Full {
    /// The invocation.
    pub record: Record,
    /// What is kept; empty once it was erased.
    pub payload: Vec<Payload>,
    /// Its log.
    pub events: Vec<Logged>,
    /// What it started.
    pub children: Vec<InvocationId>,
    /// What mends it.
    pub repaired_by: Vec<InvocationId>,
}

impl Full {
    /// The kept part of this name.
    pub fn part(&self, name: &str) -> Option<&Payload> {
        self.payload.iter().find(|kept| kept.part == name)
    }

    /// The commitment of a part, from the log where the bytes are gone.
    pub fn commitment(&self, part: &str) -> String {
        match self.part(part) {
            Some(kept) => commitment(&kept.nonce, &kept.bytes),
            None => logged_commitment(&self.events, part),
        }
    }
}

/// What the log says of a part.
fn logged_commitment(events: &[Logged], part: &str) -> String {
    let name = match part {
        "input" => "in",
        "output" => "out",
        "request" => "req",
        _ => "res",
    };
    let bodies = events.iter().rev().filter_map(|event| serde_json::from_str::<serde_json::Value>(&event.body).ok());
    let mut found = bodies.filter_map(|body| body.get(name).and_then(|value| value.as_str().map(str::to_owned)));
    found.next().unwrap_or_default()
}

/// What a receipt calls the invocation.
pub fn status(record: &Record) -> Status {
    let state = State::parse(&record.state).unwrap_or(State::Unknown);
    Status::of(state, record.material == Some(true))
}

/// What everybody may know of a call.
#[derive(Clone, Debug)]
pub struct Confirmed {
    /// The call.
    pub id: InvocationId,
    /// How it stands.
    pub status: Status,
    /// The row.
    pub key: String,
    /// The contract under which it ran, or waits.
    pub contract_hash: String,
    /// When it was accepted, or held.
    pub started_at: OffsetDateTime,
    /// When it ended, or was decided.
    pub ended_at: Option<OffsetDateTime>,
    /// The call that it mends.
    pub repairs: Option<InvocationId>,
    /// The call that it runs again.
    pub replay_of: Option<InvocationId>,
    /// How durable its receipt is.
    pub mode: Mode,
    events: Vec<Logged>,
}

impl Confirmed {
    /// The commitment of a part; empty where there is none.
    pub fn commitment(&self, part: &str) -> String {
        logged_commitment(&self.events, part)
    }
}

/// The public confirmation, of a call that waits for a person too. It needs no credential and shows nothing private.
///
/// # Errors
/// `unknown_invocation`.
pub async fn confirm(app: &App, id: &str) -> Result<Confirmed> {
    let id = InvocationId::require(id)?;
    let pool = app.directory.pool();
    let record = receipt::load(pool, id.0).await.map_err(fault)?;
    let events = receipt::events(pool, id.0).await.map_err(fault)?;
    match record {
        Some(record) => Ok(Confirmed {
            id,
            status: status(&record),
            key: record.key,
            contract_hash: record.contract_hash,
            started_at: record.started_at,
            ended_at: record.finished_at,
            repairs: record.repairs.map(InvocationId),
            replay_of: record.replay_of.map(InvocationId),
            mode: Mode::parse(&record.mode).unwrap_or(Mode::Durable),
            events,
        }),
        None => Ok(held(approval::of_invocation(app, id).await?.ok_or_else(unknown)?, events)),
    }
}

/// A call that was not fired.
fn held(approval: Approval, events: Vec<Logged>) -> Confirmed {
    let status = match approval.state {
        approval::State::Held | approval::State::Approved => Status::Held,
        approval::State::Refused | approval::State::Expired => Status::Denied,
        // it was fired since we looked for its invocation
        approval::State::Used => Status::Pending,
    };
    Confirmed {
        id: approval.invocation,
        status,
        key: approval.key,
        contract_hash: approval.contract_hash,
        started_at: approval.created_at,
        ended_at: approval.decided_at,
        repairs: None,
        replay_of: None,
        mode: Mode::Durable,
        events,
    }
}

/// The full receipt. Who holds a token with a holder's key proves it as for a call of the receipt's row with the
/// arguments `{"receipt": "<id>"}`.
///
/// # Errors
/// `unauthorized` without a credential, whether or not the id exists; `unknown_invocation` for others' calls;
/// `pop_required`, `pop_invalid`.
pub async fn get(app: &App, credential: Credential<'_>, id: &str) -> Result<Full> {
    let (caller, record) = shown(app, credential, id).await?;
    let id = InvocationId(record.id);
    let pool = app.directory.pool();
    let (payload, events, children, repaired_by) = tokio::try_join!(
        receipt::payload(pool, id.0),
        receipt::events(pool, id.0),
        receipt::children(pool, id.0),
        receipt::repaired_by(pool, id.0)
    )
    .map_err(fault)?;
    // what came of the call may be hidden from the one who made it
    let seen = children.into_iter().filter(|child| Key::parse(&child.key).is_ok_and(|key| caller.sees(&key)));
    let children = seen.map(|child| InvocationId(child.id)).collect();
    Ok(Full { record, payload, events, children, repaired_by: repaired_by.into_iter().map(InvocationId).collect() })
}

/// Who asks for all that a call gave, and the call: those who may read its receipt, and have proved that where their
/// token has a holder.
///
/// # Errors
/// As [`get`].
pub async fn shown(app: &App, credential: Credential<'_>, id: &str) -> Result<(Caller, Record)> {
    let caller = credential.caller().await?;
    caller.require_credential()?;
    let id = InvocationId::require(id)?;
    let record = entitled(app, &caller, id).await?;
    credential.proves_reading(&record.key, "receipt", &id.to_string()).await?;
    Ok((caller, record))
}

/// The invocation, if the caller made it, or holds a token from which that of the call was derived, or may read the
/// receipts of its row. What came of a call by a flow's authority is shown only where the caller sees the row.
pub async fn entitled(app: &App, caller: &Caller, id: InvocationId) -> Result<Record> {
    caller.require_credential()?;
    let record = receipt::load(app.directory.pool(), id.0).await.map_err(fault)?.ok_or_else(unknown)?;
    let key = Key::parse(&record.key).ok();
    let sees = record.parent.is_none() || key.as_ref().is_some_and(|key| caller.sees(key));
    let is_own = record.caller == caller.identity() || link(caller).is_some_and(|link| record.links.contains(&link));
    let reads = key.is_some_and(|key| caller.may(May::ReadReceipts, Some(&key)));
    if (is_own && sees) || reads { Ok(record) } else { Err(unknown()) }
}

/// The name of the caller's token among those of the tokens that are derived from it. A link's own id is chosen by who
/// derives it, so it names nothing here.
fn link(caller: &Caller) -> Option<String> {
    match caller {
        Caller::Holder(holder) => Some(format!("link:{}", holder.chain.leaf().id)),
        Caller::Owner | Caller::Principal(_) | Caller::Anonymous => None,
    }
}

/// Narrows a listing to what the caller may see: the owner everything, others their own calls and those of rows whose
/// receipts they may read.
pub fn scoped(caller: &Caller, filter: Filter) -> Result<Filter> {
    caller.require_credential()?;
    let own = Filter { caller: Some(caller.identity()), link: link(caller), ..filter };
    Ok(match caller {
        Caller::Owner => Filter { caller: None, ..own },
        Caller::Principal(principal) => Filter {
            prefixes: principal
                .grants
                .iter()
                .filter(|grant| grant.may == May::ReadReceipts)
                .map(|grant| grant.prefix.clone())
                .collect(),
            seen_prefixes: principal.grants.iter().map(|grant| grant.prefix.clone()).collect(),
            ..own
        },
        Caller::Holder(holder) => Filter {
            seen_keys: holder.cap().keys.keys().map(Key::to_string).collect(),
            seen_prefixes: holder.cap().prefixes.iter().map(|prefix| prefix.as_str().to_owned()).collect(),
            ..own
        },
        Caller::Anonymous => own,
    })
}

/// A page of invocations, newest first.
pub async fn list(
    app: &App,
    caller: &Caller,
    filter: Filter,
    before: Option<InvocationId>,
    limit: i64,
) -> Result<Vec<Record>> {
    let filter = scoped(caller, filter)?;
    receipt::list(app.directory.pool(), &filter, before.map(|id| id.0), limit).await.map_err(fault)
}

/// Figures over invocations: the sum first, then by key.
pub async fn stats(app: &App, caller: &Caller, filter: Filter) -> Result<Vec<Figures>> {
    let filter = scoped(caller, filter)?;
    receipt::stats(app.directory.pool(), &filter).await.map_err(fault)
}
