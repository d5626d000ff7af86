//! Mend a call, or run it again. Both ask for the right to the source's receipt, and neither is taken for the source's
//! repetition.

use std::sync::Arc;

use callbook_domain::arguments::Sent;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::InvocationId;
use callbook_store::fault::fault;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::App;
use crate::call::{Answer, Request};
use crate::credential::Credential;
use crate::invoke::{Until, prove_and_invoke};
use crate::receipt::entitled;
use crate::store::receipt::{self, Record};

/// Runs a corrected call that is linked with the one it mends. An empty key is the source's.
///
/// # Errors
/// `unknown_invocation` where the caller has no right to the source's receipt, else as [`invoke`](crate::invoke::invoke).
pub async fn repair(
    app: &Arc<App>,
    credential: Credential<'_>,
    source: &str,
    request: Request,
    until: Until,
) -> Result<Answer> {
    let record = source_of(app, credential, source).await?;
    let key = if request.key.is_empty() { record.key } else { request.key };
    let request = Request { key, repairs: Some(InvocationId(record.id)), ..request };
    prove_and_invoke(app, credential, request, until).await
}

/// Runs the same request again, under the caller's own authority and the row as it is now.
///
/// # Errors
/// `unknown_invocation`; `erased` where the source's arguments are gone; else as [`invoke`](crate::invoke::invoke).
pub async fn replay(app: &Arc<App>, credential: Credential<'_>, source: &str, request: Request) -> Result<Answer> {
    let record = source_of(app, credential, source).await?;
    let payload = receipt::payload(app.directory.pool(), record.id).await.map_err(fault)?;
    let input = payload.into_iter().find(|kept| kept.part == "input").ok_or_else(|| {
        Fault::new(Reason::Erased, "the arguments of this call were erased")
            .with("invocation_id", InvocationId(record.id).to_string())
    })?;
    let (sent, replay_of) = (sent(&input.bytes)?, Some(InvocationId(record.id)));
    let request = Request { key: record.key, sent, replay_of, ..request };
    prove_and_invoke(app, credential, request, Until::Ended).await
}

async fn source_of(app: &App, credential: Credential<'_>, source: &str) -> Result<Record> {
    let caller = credential.caller().await?;
    caller.require_credential()?;
    entitled(app, &caller, InvocationId::require(source)?).await
}

#[derive(Deserialize)]
struct Input {
    body: Option<String>,
    args: Option<Box<RawValue>>,
}

/// The arguments of a call as they are kept.
///
/// # Errors
/// `internal` for what we never wrote.
pub fn sent(input: &[u8]) -> Result<Sent> {
    let input: Input = serde_json::from_slice(input)
        .map_err(|_| Fault::new(Reason::Internal, "the stored arguments cannot be read"))?;
    Sent::new(input.body, input.args)
}
