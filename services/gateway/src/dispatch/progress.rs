//! `GET /api/invocations/{id}/events`: what happens to a call, as it happens.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::InvocationId;
use callbook_runtime::problem::http_body;
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::progress::What;
use futures::stream;
use http::Uri;
use serde::Serialize;
use tonic::Streaming;
use utoipa::ToSchema;

use super::envelope::Invocation;
use crate::answer::{Refusal, Refused};
use crate::app::App;
use crate::request::{At, Call, nothing};
use crate::upstream::{fault_of_read, rpc};

/// How often a silent stream says that it lives, so that nobody in between closes it.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// How often an executor that went away is replaced by another one before the listener is told.
const TRIES: usize = 5;
/// How long it is waited before the next one is asked.
const PAUSE: Duration = Duration::from_millis(200);

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
    let id = InvocationId::require(&id)?.to_string();
    let messages = open(&app, &call, &id).await?;
    let listener = Listener { app, call, id, messages: Some(messages), told: HashSet::new(), failed: 0 };
    let events = stream::unfold(Some(listener), |listener| async { Some(listener?.next().await) });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

type Messages = Streaming<wire::FollowInvocationResponse>;

async fn open(app: &App, call: &Call, id: &str) -> Result<Messages> {
    let request = wire::FollowInvocationRequest { invocation_id: id.to_owned() };
    app.upstreams.receipts.read(call, request, rpc!(executor.follow_invocation)).await
}

/// One that listens. Where its executor goes away it goes on at another, which tells everything again.
struct Listener {
    app: Arc<App>,
    call: Call,
    id: String,
    messages: Option<Messages>,
    told: HashSet<String>,
    failed: usize,
}

impl Listener {
    /// The next event, and the listener where others follow.
    async fn next(mut self) -> (std::result::Result<Event, Infallible>, Option<Self>) {
        loop {
            if self.app.health.is_stopping() {
                let fault = Fault::new(Reason::ShuttingDown, "the gateway is stopping").retry_after_ms(1_000);
                return (Ok(problem(&fault)), None);
            }
            match self.happened().await {
                Ok(What::Answer(answer)) => return (Ok(result(answer, &self.call.base)), None),
                Ok(What::Accepted(id)) if self.told.insert(id.clone()) => {
                    return (Ok(event("accepted", &Accepted { invocation_id: &id })), Some(self));
                }
                Ok(What::Step(step)) if self.told.insert(step.invocation_id.clone()) => {
                    let wire::StepEnded { invocation_id, key, status } = &step;
                    return (Ok(event("step", &Step { invocation_id, key, status })), Some(self));
                }
                Ok(What::Accepted(_) | What::Step(_)) => {}
                Err(fault) if may_go_on(&fault) && self.failed < TRIES => {
                    self.failed += 1;
                    self.messages = None;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(fault) => return (Ok(problem(&fault)), None),
            }
        }
    }

    async fn happened(&mut self) -> Result<What> {
        let messages = match &mut self.messages {
            Some(messages) => messages,
            None => self.messages.insert(open(&self.app, &self.call, &self.id).await?),
        };
        let message = tokio::select! {
            message = messages.message() => message.map_err(|status| fault_of_read(&status))?,
            () = self.app.health.stopping() => None,
        };
        let what = message.and_then(|message| message.progress?.what);
        what.ok_or_else(|| Fault::new(Reason::ServiceUnavailable, "the executor stopped to tell what happens"))
    }
}

/// Whether another executor can tell what this one cannot.
fn may_go_on(fault: &Fault) -> bool {
    matches!(fault.reason(), Reason::ServiceUnavailable | Reason::ShuttingDown)
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
