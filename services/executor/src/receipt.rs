//! Read receipts: the public confirmation, the full record, listings and figures.

use callbook_domain::caller::{Caller, May};
use callbook_domain::event::commitment;
use callbook_domain::fault::Result;
use callbook_domain::invocation::{InvocationId, State, Status, unknown};
use callbook_domain::key::Key;
use callbook_store::fault::fault;
use uuid::Uuid;

use crate::App;
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

/// What the log says of a part: the only source of a public confirmation.
pub fn logged_commitment(events: &[Logged], part: &str) -> String {
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

/// The public confirmation. It needs no credential and shows nothing private.
///
/// # Errors
/// `unknown_invocation`.
pub async fn confirm(app: &App, id: &str) -> Result<(Record, Vec<Logged>)> {
    let id = InvocationId::require(id)?;
    let pool = app.directory.pool();
    let record = receipt::load(pool, id.0).await.map_err(fault)?.ok_or_else(unknown)?;
    let events = receipt::events(pool, id.0).await.map_err(fault)?;
    Ok((record, events))
}

/// The full receipt.
///
/// # Errors
/// `unauthorized` without a credential, whether or not the id exists; `unknown_invocation` for others' calls.
pub async fn get(app: &App, caller: &Caller, id: &str) -> Result<Full> {
    caller.require_credential()?;
    let id = InvocationId::require(id)?;
    let record = entitled(app, caller, id).await?;
    let pool = app.directory.pool();
    let (payload, events, children, repaired_by) = tokio::try_join!(
        receipt::payload(pool, id.0),
        receipt::events(pool, id.0),
        receipt::children(pool, id.0),
        receipt::repaired_by(pool, id.0)
    )
    .map_err(fault)?;
    let ids = |found: Vec<Uuid>| found.into_iter().map(InvocationId).collect();
    Ok(Full { record, payload, events, children: ids(children), repaired_by: ids(repaired_by) })
}

/// The invocation, if the caller made it, or may read the receipts of its row.
pub async fn entitled(app: &App, caller: &Caller, id: InvocationId) -> Result<Record> {
    caller.require_credential()?;
    let record = receipt::load(app.directory.pool(), id.0).await.map_err(fault)?.ok_or_else(unknown)?;
    let reads = Key::parse(&record.key).is_ok_and(|key| caller.may(May::ReadReceipts, Some(&key)));
    if record.caller == caller.identity() || reads { Ok(record) } else { Err(unknown()) }
}

/// Narrows a listing to what the caller may see: the owner everything, others their own calls and those of rows whose
/// receipts they may read.
pub fn scoped(caller: &Caller, filter: Filter) -> Result<Filter> {
    caller.require_credential()?;
    Ok(match caller {
        Caller::Owner => filter,
        Caller::Principal(principal) => Filter {
            caller: Some(caller.identity()),
            prefixes: principal
                .grants
                .iter()
                .filter(|grant| grant.may == May::ReadReceipts)
                .map(|grant| grant.prefix.clone())
                .collect(),
            ..filter
        },
        Caller::Holder(_) | Caller::Anonymous => Filter { caller: Some(caller.identity()), ..filter },
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
