//! A call that was refused, told to a model: the reason, and what to do about it.

use callbook_domain::fault::{Fault, Kind};
use serde_json::Value;

use super::content::Block;
use super::endpoint::Context;
use super::message::{Challenge, RpcError};
use super::reply::Outcome;

/// The refusal as a result that a model can act on; as an error of the transport where only the caller's credential
/// can help.
pub(super) fn refused(context: &Context, fault: &Fault) -> Result<Outcome, RpcError> {
    let has_issuer = || !context.app.config.issuers.is_empty() && context.call.shows_jwt();
    match fault.kind() {
        Kind::Unauthenticated => Err(fault.clone().into()),
        // Somebody who has a token of an issuer can go and get one with more rights.
        Kind::Forbidden if has_issuer() => {
            let mut error = RpcError::from(fault.clone());
            error.challenge = Some(Challenge::Scope(super::message::needs(fault).unwrap_or_default().to_owned()));
            Err(error)
        }
        Kind::Forbidden | Kind::Invalid | Kind::NotFound | Kind::Conflict | Kind::Precondition => Ok(told(fault)),
        Kind::Exhausted | Kind::Unavailable | Kind::Internal => Ok(told(fault)),
    }
}

/// The refusal in words.
pub(super) fn told(fault: &Fault) -> Outcome {
    let (_, body) = callbook_runtime::problem::http_body(fault);
    let mut lines = vec![format!("{}: {}", fault.error_text(), fault.message())];
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if let Some(fix) = fault.how_to_fix() {
        lines.push(format!("To do: {fix}"));
    }
    for (name, _) in fault.metadata() {
        if let Some(value) = body.get(*name).filter(|_| *name != "fired") {
            lines.push(format!("{name}: {}", shown(value)));
        }
    }
    if let Some(ms) = fault.retry_after() {
        lines.push(format!("Try again in {ms} ms."));
    }
    lines.push(match body["ran"] {
        Value::Bool(true) => "It ran; its result could not be stored.".to_owned(),
        Value::Null => "Whether it ran is not known: look before you repeat it.".to_owned(),
        _ => "Nothing ran.".to_owned(),
    });
    failed(&lines.join("\n")).meta("callbook/error", fault.error_text())
}

/// Words that say why there is no result.
pub(super) fn failed(text: &str) -> Outcome {
    Outcome::of("content", &[Block::text(text)]).field("isError", &true)
}
