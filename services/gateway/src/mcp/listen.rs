//! Notices of what changed, as long as a client listens.

use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse as _, Response};
use callbook_domain::fault::{Fault, Kind, Result};
use callbook_domain::key::Key;
use callbook_wire::resolver::v1::{WatchChangesRequest, WatchChangesResponse};
use futures::{Stream, StreamExt as _, stream};
use http::{HeaderMap, StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tonic::Streaming;

use super::Surface;
use super::endpoint::{self, Context, Shelf};
use super::message::{Id, Params, RpcError, code};
use super::reply::{self, Outcome};
use super::stream::{sse, takes_events};
use crate::app::App;
use crate::request::Call;
use crate::upstream::{fault_of_read, rpc};

const CONTRACT: &str = "callbook://contract/";
const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const RESOURCE_UPDATED: &str = "notifications/resources/updated";
/// After what time a resolver that went away is asked again.
const AGAIN: Duration = Duration::from_millis(500);

/// What a client wants to hear of, and what it will.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Filter {
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    tools_list_changed: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    resource_subscriptions: Vec<String>,
}

impl Filter {
    /// The part of it that this surface has notices of.
    fn honoured(self, surface: Surface) -> Filter {
        Filter {
            tools_list_changed: self.tools_list_changed && surface != Surface::Four,
            resource_subscriptions: self
                .resource_subscriptions
                .into_iter()
                .filter(|uri| uri.starts_with(CONTRACT))
                .collect(),
        }
    }
}

/// `subscriptions/listen`: the answer comes when the server stops.
pub(super) async fn listen(context: &Context, mut params: Params, id: &Id) -> std::result::Result<Outcome, RpcError> {
    let filter: Filter = params.require("notifications")?;
    if !context.events.is_open() {
        let message = "this method answers with a stream: accept `text/event-stream`";
        return Err(RpcError::new(StatusCode::NOT_ACCEPTABLE, code::INVALID_REQUEST, message));
    }
    let mut changes = Changes::begin(Arc::clone(&context.app), context.call.clone()).await?;
    context.took_credential();
    let filter = filter.honoured(context.surface);
    let subscription: Value = serde_json::from_str(id.as_json()).expect("an id is JSON");
    let tagged = |mut params: Value| {
        params["_meta"] = json!({"io.modelcontextprotocol/subscriptionId": subscription});
        params
    };
    let acknowledged = tagged(json!({"notifications": filter}));
    context.events.send("notifications/subscriptions/acknowledged", &acknowledged).await;
    while let Some(change) = changes.next().await? {
        let keys = touched(&change, &context.shelf);
        if filter.tools_list_changed && !keys.is_empty() {
            context.events.send(TOOLS_CHANGED, &tagged(json!({}))).await;
        }
        for uri in filter.resource_subscriptions.iter().filter(|uri| keys.contains(&&uri[CONTRACT.len()..])) {
            context.events.send(RESOURCE_UPDATED, &tagged(json!({"uri": uri}))).await;
        }
    }
    Ok(Outcome::default())
}

/// The stream of notices of the older era: of the list of tools, and of every contract that the caller may see.
pub(super) async fn legacy(surface: Surface, app: Arc<App>, call: Call, headers: &HeaderMap, shelf: Shelf) -> Response {
    if !takes_events(headers) {
        return endpoint::not_allowed();
    }
    let base = call.base.clone();
    let changes = match Changes::begin(Arc::clone(&app), call).await {
        Ok(changes) => changes,
        Err(fault) => return reply::refused(None, &surface.own(fault.into()), &base, surface.path(), &app.config),
    };
    sse(notices(changes, surface, shelf)).into_response()
}

fn notices(changes: Changes, surface: Surface, shelf: Shelf) -> impl Stream<Item = String> + Send + 'static {
    let batches = stream::unfold(changes, |mut changes| async move {
        let change = changes.next().await.ok().flatten()?;
        Some((change, changes))
    });
    batches.flat_map(move |change| {
        let keys = touched(&change, &shelf);
        let mut told = Vec::new();
        if surface != Surface::Four && !keys.is_empty() {
            told.push(json!({"jsonrpc": "2.0", "method": TOOLS_CHANGED}).to_string());
        }
        told.extend(
            keys.iter().map(|key| reply::notification(RESOURCE_UPDATED, &json!({"uri": format!("{CONTRACT}{key}")}))),
        );
        stream::iter(told)
    })
}

/// Keys of the shelf that are or were on the caller's list. Rows of other categories count too where the shelf is one:
/// what category a row had is not told.
fn touched<'a>(change: &'a WatchChangesResponse, shelf: &Shelf) -> Vec<&'a str> {
    let prefix = shelf.prefix.as_deref().unwrap_or_default();
    let is_listed = |key: &&str| key.starts_with(prefix) && Key::parse(key).is_ok_and(|key| !key.is_test_shaped());
    change.changed_keys.iter().chain(&change.removed_keys).map(String::as_str).filter(is_listed).collect()
}

/// What changes, across resolvers that come and go.
struct Changes {
    app: Arc<App>,
    call: Call,
    stream: Option<Streaming<WatchChangesResponse>>,
    /// The last revision that was told.
    told: Option<i64>,
}

impl Changes {
    async fn begin(app: Arc<App>, call: Call) -> Result<Self> {
        let mut changes = Changes { app, call, stream: None, told: None };
        changes.stream = Some(changes.open().await?);
        Ok(changes)
    }

    async fn open(&self) -> Result<Streaming<WatchChangesResponse>> {
        let call = self.call.clone().or_within(self.app.config.deadline);
        let asked = WatchChangesRequest { since_revision: self.told };
        self.app.upstreams.resolver.read(&call, asked, rpc!(resolver.watch_changes)).await
    }

    /// The next change. Nothing: this gateway stops.
    async fn next(&mut self) -> Result<Option<WatchChangesResponse>> {
        let app = Arc::clone(&self.app);
        tokio::select! {
            change = self.wait() => change.map(Some),
            () = app.health.stopping() => Ok(None),
        }
    }

    async fn wait(&mut self) -> Result<WatchChangesResponse> {
        loop {
            let Some(stream) = &mut self.stream else {
                match self.open().await {
                    Ok(stream) => self.stream = Some(stream),
                    Err(fault) if matches!(fault.kind(), Kind::Unavailable | Kind::Exhausted) => {
                        tokio::time::sleep(AGAIN).await;
                    }
                    Err(fault) => return Err(fault),
                }
                continue;
            };
            match stream.message().await {
                Ok(Some(change)) => {
                    self.told = Some(change.revision);
                    return Ok(change);
                }
                Ok(None) => {}
                Err(status) => {
                    let fault: Fault = fault_of_read(&status);
                    if matches!(fault.kind(), Kind::Unauthenticated | Kind::Forbidden) {
                        return Err(fault);
                    }
                }
            }
            // a resolver that stops ends each stream at once, and answers until it is gone
            self.stream = None;
            tokio::time::sleep(AGAIN).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_hears_of_what_this_surface_has_notices_of() {
        let wanted = Filter {
            tools_list_changed: true,
            resource_subscriptions: vec!["callbook://contract/A".into(), "file:///a".into()],
        };
        let four = wanted.clone().honoured(Surface::Four);
        assert_eq!(serde_json::to_value(four).unwrap(), json!({"resourceSubscriptions": ["callbook://contract/A"]}));
        assert!(wanted.honoured(Surface::Typed).tools_list_changed);
    }

    #[test]
    fn a_change_counts_where_its_key_is_listed() {
        let change = WatchChangesResponse {
            revision: 1,
            changed_keys: vec!["A.one".into(), "B".into(), "A.DUMMY".into()],
            removed_keys: vec!["A.two".into()],
        };
        let of = |prefix: Option<&str>| touched(&change, &Shelf { category: None, prefix: prefix.map(str::to_owned) });
        assert_eq!(of(None), ["A.one", "B", "A.two"]);
        assert_eq!(of(Some("A.")), ["A.one", "A.two"]);
    }
}
