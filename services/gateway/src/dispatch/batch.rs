//! `POST /api/dispatch:batch`: several calls that do not know of each other.

use std::future::ready;
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason};
use futures::{Stream, StreamExt as _, stream};
use http::{HeaderMap, StatusCode, Uri};
use serde::Deserialize;
use utoipa::ToSchema;

use super::envelope::Invocation;
use super::invoke::{self, IDEMPOTENCY_KEY, answered};
use super::shape::Shape;
use crate::answer::{Answer, Problem, Raw, Refusal, Refused, media};
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
#[derive(ToSchema)]
#[schema(as = BatchResults)]
#[expect(dead_code, reason = "describes in the API document what is written as it comes")]
struct Results {
    /// For each call what it would have been answered alone: an answer, a shape, or why it was refused.
    #[schema(value_type = Vec<BatchResult>)]
    results: Vec<Raw>,
}

/// What became of one call.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, clippy::large_enum_variant, reason = "describes in the API document what stands in the list")]
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
    let asked: Vec<_> = body.calls.iter().map(|text| serde_json::from_str::<invoke::Body>(text.get())).collect();
    let Some(first) = asked.iter().position(Result::is_ok) else {
        let error = asked.into_iter().find_map(Result::err).expect("a batch has a call");
        return Err(unreadable(&error).into());
    };
    let mut answers = stream::iter(asked).map(move |asked| one(app.clone(), call.clone(), asked)).buffered(AT_ONCE);
    let mut head: Vec<Response> = answers.by_ref().take(first + 1).collect().await;
    // a credential that is none is none for every call: the whole request says it
    if let Some(answer) = head.pop_if(|answer| answer.extensions().get() == Some(&Reason::Unauthorized)) {
        return Ok(answer);
    }
    Ok(media(
        StatusCode::OK,
        "application/json",
        axum::body::Body::from_stream(results(stream::iter(head).chain(answers))),
    ))
}

/// What the call would be answered alone.
async fn one(app: Arc<App>, call: Call, asked: serde_json::Result<invoke::Body>) -> Response {
    let answer = match asked {
        Ok(body) => answered(&app, call, body, &HeaderMap::new()).await,
        Err(error) => Err(Refusal::from(unreadable(&error))),
    };
    answer.unwrap_or_else(Refusal::into_response)
}

/// The text of [`Results`], each result as it comes: a hundred answers of the largest size need not be here at once.
fn results(answers: impl Stream<Item = Response>) -> impl Stream<Item = std::io::Result<Bytes>> {
    let results = answers.enumerate().then(async |(at, answer)| {
        let comma = if at > 0 { "," } else { "" };
        let text = to_bytes(answer.into_body(), usize::MAX).await.map_err(std::io::Error::other)?;
        Ok(Bytes::from([comma.as_bytes(), &text].concat()))
    });
    let piece = |text: &'static str| stream::once(ready(Ok(Bytes::from_static(text.as_bytes()))));
    piece(r#"{"results":["#).chain(results).chain(piece("]}"))
}
