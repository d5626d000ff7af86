//! `POST /api/dispatch`: run a row, shape a call, repair or replay an earlier one.

use std::future::Future;
use std::sync::Arc;

use axum::extract::State;
use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::{InvocationId, check_idempotency_key};
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::arguments::Form;
use http::{HeaderMap, HeaderName};
use serde::Deserialize;
use tonic::{Request, Response, Status};
use utoipa::{IntoParams, ToSchema};

use super::envelope::Invocation;
use super::shape::Shape;
use crate::answer::{Answer, Raw, Refused, json};
use crate::app::App;
use crate::request::{Call, JsonBody};
use crate::upstream::{Wire, rpc};

pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// One call. `replay` stands alone; else `key` names the row, or `repairs` the call that is corrected.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = InvokeRequest)]
pub(crate) struct Body {
    /// Key of the row.
    pub(super) key: Option<String>,
    /// Arguments as text: positions between `|`, or one JSON object or list. Not beside `args`.
    pub(super) body: Option<String>,
    /// Arguments as a JSON object (by name) or list (by position). Not beside `body`.
    #[schema(value_type = Option<Object>)]
    pub(super) args: Option<Raw>,
    /// True: the whole outbound request is built and nothing runs.
    pub(super) shape: Option<bool>,
    /// Name of this call, unique for the caller for 24 h; the header `Idempotency-Key` does the same.
    #[schema(min_length = 1, max_length = 255)]
    pub(super) idempotency_key: Option<String>,
    /// Invocation that this call corrects.
    pub(super) repairs: Option<String>,
    /// Invocation to run again.
    pub(super) replay: Option<String>,
    /// How long the caller waits, in milliseconds; 30,000 where nothing is said, 600,000 at most.
    #[schema(minimum = 1)]
    pub(super) deadline_ms: Option<u64>,
    /// How long a call that is held waits for its decision before it is answered 202, in milliseconds, within the
    /// deadline. Absent: not at all. Goes with `key`, not with `repairs` or `replay`.
    pub(super) wait_ms: Option<u32>,
    /// True: the answer is 202 with the id once the call is committed, and the row runs on. Goes with `key`, not with
    /// `repairs` or `replay`.
    pub(super) r#async: Option<bool>,
}

/// What a call may say in its headers.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes in the API document what is read elsewhere")]
struct Headers {
    /// As the field `idempotency_key`.
    #[param(rename = "idempotency-key", nullable = false, min_length = 1, max_length = 255, pattern = "^[ -~]+$")]
    idempotency_key: Option<String>,
    /// As the field `deadline_ms`.
    #[param(rename = "x-deadline-ms", nullable = false, minimum = 1)]
    deadline_ms: Option<u64>,
}

/// Runs a row and gives its output with a proof. A call that ran answers 200 even where the row failed; one that waits
/// for a person 202 with `held`; a call that did not run answers with its status and `ran: false`.
#[utoipa::path(
    post, path = "/api/dispatch", tag = "loop", request_body = Body,
    params(Headers),
    responses(
        (status = 200, description = "It ran, or its shape", body = Outcome),
        (status = 202, description = "It waits and nothing was fired yet, or it was accepted and runs on", body = Invocation),
        Refused
    )
)]
pub(crate) async fn invoke(
    State(app): State<Arc<App>>,
    call: Call,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Answer {
    answered(&app, call, body, &headers).await
}

/// The answer to a call, however it was asked for.
pub(super) async fn answered(app: &App, call: Call, body: Body, headers: &HeaderMap) -> Answer {
    let call = match body.deadline_ms {
        Some(ms) => call.within_ms(ms)?,
        None => call,
    };
    let shape = body.shape.unwrap_or_default();
    match Wanted::read(body, headers)? {
        Wanted::Invoke(request) if shape => {
            let request = wire::ShapeRequest { key: request.key, arguments: request.arguments };
            let key = request.key.clone();
            let shape = run(app, &call, request, rpc!(executor.shape)).await?;
            json(&Shape::read(shape, &key))
        }
        _ if shape => Err(invalid("`shape` goes with `key` alone, not with `repairs` or `replay`", "shape").into()),
        Wanted::Invoke(request) => {
            let ran = run(app, &call, request, rpc!(executor.invoke)).await?;
            Invocation::read(ran.answer, &call.base)?.answer()
        }
        Wanted::Repair(request) => {
            let ran = run(app, &call, request, rpc!(executor.repair)).await?;
            Invocation::read(ran.answer, &call.base)?.answer()
        }
        Wanted::Replay(request) => {
            let ran = run(app, &call, request, rpc!(executor.replay)).await?;
            Invocation::read(ran.answer, &call.base)?.answer()
        }
    }
}

/// What the POST gives.
#[derive(ToSchema)]
#[schema(as = DispatchOutcome)]
#[serde(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "describes in the API document what the POST answers")]
enum Outcome {
    Invocation(Invocation),
    Shape(Shape),
}

/// What the body asks for.
enum Wanted {
    Invoke(wire::InvokeRequest),
    Repair(wire::RepairRequest),
    Replay(wire::ReplayRequest),
}

impl Wanted {
    fn read(body: Body, headers: &HeaderMap) -> Result<Self> {
        let idempotency_key = idempotency_key(body.idempotency_key, headers)?;
        let arguments = arguments(body.body, body.args)?;
        if body.wait_ms.is_some() && (body.replay.is_some() || body.repairs.is_some()) {
            return Err(invalid("`wait_ms` goes with `key` alone, not with `repairs` or `replay`", "wait_ms"));
        }
        if body.r#async == Some(true) && (body.replay.is_some() || body.repairs.is_some() || body.shape == Some(true)) {
            return Err(invalid("`async` goes with `key` alone, not with `shape`, `repairs` or `replay`", "async"));
        }
        let wait_ms = body.wait_ms.unwrap_or_default();
        match (body.replay, body.repairs, body.key) {
            (Some(replay), None, None) if arguments.is_none() => {
                Ok(Wanted::Replay(wire::ReplayRequest { invocation_id: id(&replay)?, idempotency_key }))
            }
            (Some(_), ..) => {
                Err(invalid("`replay` and `key`, `body`, `args` or `repairs` are mutually exclusive", "replay"))
            }
            (None, Some(repairs), key) => Ok(Wanted::Repair(wire::RepairRequest {
                invocation_id: id(&repairs)?,
                key: key.unwrap_or_default(),
                arguments,
                idempotency_key,
            })),
            (None, None, Some(key)) => Ok(Wanted::Invoke(wire::InvokeRequest {
                key,
                arguments,
                idempotency_key,
                wait_ms,
                r#async: body.r#async.unwrap_or_default(),
                ..Default::default()
            })),
            (None, None, None) => Err(invalid("key required", "key")),
        }
    }
}

/// Sends the call to the first choice of executors, and once more where these say that the row needs others: they
/// said so before anything was committed.
pub(crate) async fn run<Q, A, F>(app: &App, call: &Call, request: Q, rpc: impl Fn(Wire, Request<Q>) -> F) -> Result<A>
where
    Q: Clone,
    F: Future<Output = std::result::Result<Response<A>, Status>>,
{
    let nobody = || Fault::new(Reason::ServiceUnavailable, "no executor is set up");
    let first = app.upstreams.executor().ok_or_else(nobody)?;
    let refused = match first.write(call, request.clone(), &rpc).await {
        Err(fault) if fault.reason() == Reason::NoExecutorForPool => fault,
        answer => return answer,
    };
    match pool_of(&refused).and_then(|pool| app.upstreams.executor_of(pool)) {
        Some(other) => other.write(call, request, &rpc).await,
        None => Err(refused),
    }
}

fn pool_of(fault: &Fault) -> Option<&str> {
    let named = fault.metadata().iter().find(|(name, _)| *name == "pool");
    named.map(|(_, pool)| pool.as_str()).or(fault.detail_text())
}

fn arguments(body: Option<String>, args: Option<Raw>) -> Result<Option<wire::Arguments>> {
    let form = match (body, args) {
        (None, None) => return Ok(None),
        (Some(body), None) => Form::Body(body),
        (None, Some(args)) if args.get().starts_with(['{', '[']) => {
            Form::ArgsJson(Bytes::from(String::from(Box::<str>::from(args))))
        }
        (None, Some(_)) => return Err(invalid("`args` must be a JSON object or list", "args")),
        (Some(_), Some(_)) => return Err(invalid("a call brings either `body` or `args`, not both", "args")),
    };
    Ok(Some(wire::Arguments { form: Some(form) }))
}

fn idempotency_key(field: Option<String>, headers: &HeaderMap) -> Result<Option<String>> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let (value, second) = (values.next(), values.next());
    // What is not text fails the check below.
    let header = value.map(|value| value.to_str().unwrap_or_default().to_owned());
    let key = match (field, header) {
        (Some(field), Some(header)) if field != header => return Err(two_keys()),
        (field, header) => field.or(header),
    };
    if second.is_some() {
        return Err(two_keys());
    }
    key.as_deref().map(check_idempotency_key).transpose()?;
    Ok(key)
}

fn id(text: &str) -> Result<String> {
    InvocationId::require(text).map(|id| id.to_string())
}

fn two_keys() -> Fault {
    invalid("the request has two idempotency keys", "idempotency_key")
}

fn invalid(sentence: &'static str, field: &'static str) -> Fault {
    Fault::new(Reason::InvalidRequest, sentence).with("field", field)
}

#[cfg(test)]
#[path = "invoke_tests.rs"]
mod tests;
