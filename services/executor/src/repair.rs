//! Mend a call, or run it again. Both ask for the right to the source's receipt, and neither is taken for the source's
//! repetition.

use std::sync::Arc;

use callbook_domain::arguments::Sent;
use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::InvocationId;
use callbook_store::fault::fault;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::App;
use crate::call::{Answer, Request};
use crate::invoke::invoke;
use crate::receipt::entitled;
use crate::store::receipt;

/// Runs a corrected call that is linked with the one it mends. An empty key is the source's.
///
/// # Errors
/// `unknown_invocation` where the caller has no right to the source's receipt, else as [`invoke`].
pub async fn repair(app: &Arc<App>, caller: &Caller, source: &str, request: Request) -> Result<Answer> {
    caller.require_credential()?;
    let source = InvocationId::require(source)?;
    let record = entitled(app, caller, source).await?;
    let key = if request.key.is_empty() { record.key } else { request.key };
    invoke(app, caller, Request { key, repairs: Some(source), ..request }).await
}

/// Runs the same request again, under the caller's own authority and the row as it is now.
///
/// # Errors
/// `unknown_invocation`; `erased` where the source's arguments are gone; else as [`invoke`].
pub async fn replay(app: &Arc<App>, caller: &Caller, source: &str, request: Request) -> Result<Answer> {
    caller.require_credential()?;
    let source = InvocationId::require(source)?;
    let record = entitled(app, caller, source).await?;
    let payload = receipt::payload(app.directory.pool(), source.0).await.map_err(fault)?;
    let input = payload.into_iter().find(|kept| kept.part == "input").ok_or_else(|| {
        Fault::new(Reason::Erased, "the arguments of this call were erased").with("invocation_id", source.to_string())
    })?;
    let sent = sent(&input.bytes)?;
    invoke(app, caller, Request { key: record.key, sent, replay_of: Some(source), ..request }).await
}

#[derive(Deserialize)]
struct Input {
    body: Option<String>,
    args: Option<Box<RawValue>>,
}

fn sent(input: &[u8]) -> Result<Sent> {
    let input: Input = serde_json::from_slice(input)
        .map_err(|_| Fault::new(Reason::Internal, "the stored arguments cannot be read"))?;
    Sent::new(input.body, input.args)
}
