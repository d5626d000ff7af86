//! `GET /api/invocations/{id}/events`: what happens to a call, as it happens.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use callbook_domain::fault::{Fault, Result};
use callbook_domain::invocation::InvocationId;
use callbook_runtime::problem::http_body;
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::progress::What;
use futures::stream;
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::envelope::Invocation;
use super::listener::Listener;
use crate::answer::{Refusal, Refused};
use crate::app::App;
use crate::request::{At, Call, nothing};

/// How often a silent stream says that it lives, so that nobody in between closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// A call that was accepted.
#[derive(Serialize, ToSchema)]
#[schema(as = AcceptedEvent)]
struct Accepted<'a> {
    /// `inv_` and 26 characters.
    invocation_id: &'a str,
}

/// A call that the followed one started, at any depth, has ended.
#[derive(Serialize, ToSchema)]
#[schema(as = StepEvent)]
struct Step<'a> {
    /// `inv_` and 26 characters.
    invocation_id: &'a str,
    /// Its row.
    key: &'a str,
    /// Its receipt's status.
    status: &'a str,
}

/// Follows an invocation from its beginning as server-sent events: `accepted`, a `step` for each call below it that
/// ended, and `result` with what the call was answered, which is the last. Whoever hangs up changes nothing, and may
/// follow again from the beginning. Where it cannot be followed to its end, the last event is `problem`.
#[utoipa::path(
    get, path = "/api/invocations/{id}/events", tag = "receipts", operation_id = "follow_invocation",
    params(("id" = String, Path, description = "`inv_` and 26 characters")),
    responses(
        (status = 200, description = "The events", body = String, content_type = "text/event-stream"), Refused
    )
)]
pub(crate) async fn events(
    State(app): State<Arc<App>>,
    call: Call,
    At(id): At,
    uri: Uri,
) -> std::result::Result<Response, Refusal> {
    nothing(&uri)?;
    let call = call.or_within(app.config.longest_deadline);
    let base = call.base.clone();
    let listener = Listener::of(app, call, InvocationId::require(&id)?).await?;
    let events = stream::unfold(Some((listener, base)), |listening| async {
        let (mut listener, base) = listening?;
        let (event, goes_on) = told(listener.next().await, &base);
        Some((Ok::<_, Infallible>(event), goes_on.then_some((listener, base))))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// What happened as an event, and whether others follow.
fn told(happened: Result<What>, base: &str) -> (Event, bool) {
    match happened {
        Ok(What::Answer(answer)) => (result(answer, base), false),
        Ok(What::Accepted(id)) => (event("accepted", &Accepted { invocation_id: &id }), true),
        Ok(What::Step(wire::StepEnded { invocation_id, key, status })) => {
            (event("step", &Step { invocation_id: &invocation_id, key: &key, status: &status }), true)
        }
        Err(fault) => (problem(&fault), false),
    }
}

fn result(answer: wire::Answer, base: &str) -> Event {
    match Invocation::read(Some(answer), base) {
        Ok(invocation) => event("result", &invocation),
        Err(fault) => problem(&fault),
    }
}

fn problem(fault: &Fault) -> Event {
    event("problem", &http_body(fault).1)
}

fn event(name: &'static str, data: &impl Serialize) -> Event {
    let text = serde_json::to_string(data).expect("what is told is plain data");
    Event::default().event(name).data(text)
}
