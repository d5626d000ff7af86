//! `POST /api/dispatch:batch`: several calls that do not know of each other.

use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use callbook_domain::fault::{Fault, Reason};
use futures::{StreamExt as _, stream};
use http::{HeaderMap, Uri};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::envelope::Invocation;
use super::invoke::{self, IDEMPOTENCY_KEY, answered};
use super::shape::Shape;
use crate::answer::{Answer, Problem, Raw, Refusal, Refused, json, raw};
use crate::app::App;
use crate::request::{Call, JsonBody, nothing, unreadable};

/// The most calls of one batch.
const MAX_CALLS: usize = 100;
/// How many calls of one batch run at once.
const AT_ONCE: usize = 16;

/// Several calls.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = BatchRequest)]
pub(crate) struct Body {
    /// The calls, each as `POST /api/dispatch` takes it.
    #[schema(value_type = Vec<invoke::Body>, min_items = 1, max_items = 100)]
    calls: Vec<Raw>,
    /// How long the caller waits for all of them, in milliseconds; 30,000 where nothing is said, 600,000 at most. A call
    /// with a time of its own has that.
    #[schema(minimum = 1)]
    deadline_ms: Option<u64>,
}

/// What became of the calls, in their order.
#[derive(Serialize, ToSchema)]
#[schema(as = BatchResults)]
struct Results {
    /// For each call what it would have been answered alone: an answer, a shape, or why it was refused.
    #[schema(value_type = Vec<BatchResult>)]
    results: Vec<Raw>,
}

/// What became of one call.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "describes in the API document what stands in the list")]
enum BatchResult {
    Invocation(Invocation),
    Shape(Shape),
    Problem(Problem),
}

/// Runs up to 100 independent calls and answers once all of them have: one result each, in their order. Each is admitted,
/// committed and refused by itself, so the answer is 200 also where every call was refused.
#[utoipa::path(
    post, path = "/api/dispatch:batch", tag = "loop", operation_id = "invoke_batch", request_body = Body,
    responses((status = 200, description = "One result for each call", body = Results), Refused)
)]
pub(crate) async fn batch(
    State(app): State<Arc<App>>,
    call: Call,
    uri: Uri,
    headers: HeaderMap,
    JsonBody(body): JsonBody<Body>,
) -> Answer {
    nothing(&uri)?;
    if headers.contains_key(IDEMPOTENCY_KEY) {
        let fault = Fault::new(Reason::InvalidRequest, "an idempotency key names one call, and a batch has several");
        return Err(fault.fix("give each call its own `idempotency_key`").with("field", "idempotency_key").into());
    }
    if !(1..=MAX_CALLS).contains(&body.calls.len()) {
        let fault = Fault::new(Reason::InvalidRequest, format!("a batch has 1 to {MAX_CALLS} calls"));
        return Err(fault.with("field", "calls").into());
    }
    let call = match body.deadline_ms {
        Some(ms) => call.within_ms(ms)?,
        None => call,
    };
    let calls = body.calls.into_iter().map(|text| one(&app, call.clone(), text));
    let mut answers: Vec<Response> = stream::iter(calls).buffered(AT_ONCE).collect().await;
    // a credential that is none is none for every call: the whole request says it
    if answers.iter().all(|answer| answer.extensions().get() == Some(&Reason::Unauthorized)) {
        return Ok(answers.swap_remove(0));
    }
    let mut results = Vec::with_capacity(answers.len());
    for answer in answers {
        results.push(text(answer).await?);
    }
    json(&Results { results })
}

/// What the call would be answered alone.
async fn one(app: &App, call: Call, text: Raw) -> Response {
    let answer = match serde_json::from_str::<invoke::Body>(text.get()) {
        Ok(body) => answered(app, call, body, &HeaderMap::new()).await,
        Err(error) => Err(Refusal::from(unreadable(&error))),
    };
    answer.unwrap_or_else(Refusal::into_response)
}

async fn text(answer: Response) -> Result<Raw, Fault> {
    let bytes = to_bytes(answer.into_body(), usize::MAX).await.map_err(|error| {
        tracing::error!(%error, "the answer to a call of a batch cannot be read");
        Fault::new(Reason::Internal, "something went wrong inside").with("fired", "unknown")
    })?;
    Ok(raw(&bytes))
}
