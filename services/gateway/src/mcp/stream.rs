//! Answers that come in parts: events that belong to a request, then its result, on one response.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, Stream, StreamExt as _};
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;
use tokio::sync::mpsc;

use super::endpoint::{self, Context};
use super::message::{Request, RpcError};
use super::reply;

/// After what time without an answer a client that takes events gets a stream, so that nothing between gives up.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a quiet stream says that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Events that wait for a slow client before they wait themselves.
const WAITING: usize = 64;

/// Where the events of one request go. They go nowhere where the client takes none.
pub(super) struct Events(Option<mpsc::Sender<String>>);

/// The other end.
pub(super) struct Told(mpsc::Receiver<String>);

/// The two ends for one request.
pub(super) fn events(headers: &HeaderMap) -> (Events, Told) {
    let (sender, receiver) = mpsc::channel(WAITING);
    (Events(takes_events(headers).then_some(sender)), Told(receiver))
}

impl Events {
    /// Whether anybody listens.
    pub(super) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Tells the client.
    pub(super) async fn send(&self, method: &str, params: &Value) {
        if let Some(sender) = &self.0 {
            // Nobody is there any more: the answer is dropped too.
            let _ = sender.send(reply::notification(method, params)).await;
        }
    }
}

/// Whether the client takes a stream of events.
pub(super) fn takes_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|media| {
        let essence = media.split(';').next().unwrap_or_default().trim();
        essence.eq_ignore_ascii_case("text/event-stream")
    })
}

/// Answers a request: whole where the result comes first, as a stream where an event does or it takes long. Hanging up
/// drops the work: what has not been committed is cancelled, and what has runs on without a listener.
pub(super) async fn answer(
    context: Context,
    request: Request,
    told: Told,
    refuse: impl FnOnce(RpcError) -> Response,
) -> Response {
    let context = std::sync::Arc::new(context);
    let (id, era) = (request.id.clone(), context.era.clone());
    let working = std::sync::Arc::clone(&context);
    let mut work: Work = Box::pin(async move {
        let done = endpoint::answer(&working, request).await;
        done.map(|outcome| outcome.message(&id, &era)).map_err(|error| (id, error))
    });
    let Told(mut receiver) = told;
    let is_open = context.events.is_open();
    tokio::select! {
        biased;
        Some(first) = receiver.recv() => begin(Some(first), receiver, work),
        done = &mut work => match (done, waiting(&mut receiver)) {
            (Ok(message), early) if early.is_empty() => endpoint::marked(reply::whole(message), &context),
            (Ok(message), early) => sse(stream::iter(early).chain(stream::iter([message]))),
            (Err((_, error)), _) => refuse(error),
        },
        () = tokio::time::sleep(PATIENCE), if is_open => begin(None, receiver, work),
    }
}

type Work = Pin<Box<dyn Future<Output = Result<String, (super::message::Id, RpcError)>> + Send>>;

/// What was told and not taken yet.
fn waiting(receiver: &mut mpsc::Receiver<String>) -> Vec<String> {
    std::iter::from_fn(|| receiver.try_recv().ok()).collect()
}

fn begin(first: Option<String>, receiver: mpsc::Receiver<String>, work: Work) -> Response {
    let rest = stream::unfold((receiver, Some(work)), |(mut receiver, work)| async move {
        // Once the result is out, nothing may follow it.
        let mut work = work?;
        tokio::select! {
            biased;
            Some(event) = receiver.recv() => Some((vec![event], (receiver, Some(work)))),
            done = &mut work => {
                let last = done.unwrap_or_else(|(id, error)| reply::refusal(Some(&id), &error));
                let mut messages = waiting(&mut receiver);
                messages.push(last);
                Some((messages, (receiver, None)))
            }
        }
    });
    sse(stream::iter(first).chain(rest.flat_map(stream::iter)))
}

/// A stream of messages as server-sent events.
pub(super) fn sse(messages: impl Stream<Item = String> + Send + 'static) -> Response {
    let events = messages.map(|message| Ok::<_, Infallible>(Event::default().event("message").data(message)));
    let mut response = Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response();
    response.headers_mut().insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_says_whether_it_takes_events() {
        let takes = |accept: &str| takes_events(&[(header::ACCEPT, accept.parse().unwrap())].into_iter().collect());
        assert!(takes("application/json, text/event-stream") && takes("Text/Event-Stream;q=0.5"));
        assert!(!takes("application/json") && !takes("*/*") && !takes_events(&HeaderMap::new()));
    }
}
