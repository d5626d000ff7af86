//! The answer of a call that ended before, from what is stored of it.

use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::{InvocationId, Mode, State, unknown};
use callbook_domain::outcome::{Failure, Outcome, Output};
use callbook_store::fault::fault;

use crate::App;
use crate::call::{Answer, did};
use crate::store::receipt::{self, Payload, Record};

/// The stored answer, marked as replayed.
///
/// # Errors
/// `erased` where what it gave is gone.
pub async fn load(app: &App, id: InvocationId) -> Result<Answer> {
    let pool = app.directory.pool();
    let record = receipt::load(pool, id.0).await.map_err(fault)?.ok_or_else(unknown)?;
    let payload = receipt::payload(pool, id.0).await.map_err(fault)?;
    if payload.is_empty() {
        return Err(Fault::new(Reason::Erased, "what this call gave was erased").with("invocation_id", id.to_string()));
    }
    let outcome = outcome(&record, &payload);
    let (result, did) = (outcome.render(), did(&record.key, &outcome));
    let (ok, failure) = match &outcome {
        Outcome::Ok(..) => (true, None),
        Outcome::Failed(failure) => (false, Some(failure.clone())),
    };
    Ok(Answer {
        id,
        ran: true,
        ok,
        replayed: true,
        result,
        output: outcome.output().cloned(),
        failure,
        did,
        contract_hash: record.contract_hash,
        trace: record.trace,
        cost_usd: record.cost_usd,
        warnings: record.warnings,
        mode: Mode::parse(&record.mode).unwrap_or(Mode::Durable),
        held: None,
        accepted: false,
    })
}

/// The typed outcome of a call that ended.
pub fn outcome(record: &Record, payload: &[Payload]) -> Outcome {
    let output = payload.iter().find(|kept| kept.part == "output").map(|kept| Output {
        bytes: kept.bytes.clone(),
        media_type: kept.media_type.clone(),
        truncated: record.truncated,
    });
    let upstream_status = record.upstream_status.and_then(|status| u16::try_from(status).ok());
    if record.ok == Some(true) {
        return Outcome::Ok(output.unwrap_or_else(Output::empty), upstream_status);
    }
    let lost = State::parse(&record.state) == Some(State::Unknown);
    let code = if lost { Some("unknown".to_owned()) } else { record.code.clone() };
    let message =
        if lost { Some("the executor died before the result was stored".to_owned()) } else { record.message.clone() };
    Outcome::Failed(Failure {
        code: code.unwrap_or_default(),
        message: message.unwrap_or_default(),
        upstream_status,
        retryable: record.retryable.unwrap_or(false),
        at: record.failed_at.clone(),
        output,
    })
}
