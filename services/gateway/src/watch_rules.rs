//! `/api/watch-rules`: what the watcher does with calls of sensitive rows.

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::executor::v1 as wire;
use http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Refused, WatchAction, Word, json, json_with, some};
use crate::app::App;
use crate::request::{At, Call, JsonBody, nothing};
use crate::upstream::rpc;

/// The routes of this part.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list, create)).routes(routes!(put, remove))
}

/// A rule to put.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = WatchRuleRequest)]
pub(crate) struct Wanted {
    /// Its name; one that exists is replaced. The address of a PUT has it.
    #[serde(default)]
    #[schema(pattern = "^[A-Za-z0-9_.-]{1,64}$")]
    name: Option<String>,
    /// Rules are asked by position, then by name. Absent: 0.
    #[serde(default)]
    position: i32,
    /// Regular expression that must match the whole key. Absent: any key.
    #[serde(default)]
    #[schema(max_length = 512)]
    pattern_key: Option<String>,
    /// Regular expression that must match somewhere in the arguments as they were sent. Absent: any arguments.
    #[serde(default)]
    #[schema(max_length = 512)]
    pattern_body: Option<String>,
    /// What is done.
    action: WatchAction,
    /// Why, for the caller and for people.
    #[serde(default)]
    #[schema(max_length = 256)]
    reason: Option<String>,
}

/// A rule of the watcher.
#[derive(Serialize, ToSchema)]
struct WatchRule {
    name: String,
    position: i32,
    /// Must match the whole key. Null: any key.
    pattern_key: Option<String>,
    /// Must match somewhere in the arguments. Null: any arguments.
    pattern_body: Option<String>,
    action: Option<WatchAction>,
    /// Null: none is given; callers read the rule's name.
    reason: Option<String>,
}

/// All rules.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchRules)]
struct Rules {
    /// In the order in which they are asked.
    rules: Vec<WatchRule>,
}

/// The rule stands.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchRulePut)]
struct Put {
    /// Always true.
    ok: bool,
    /// True: it is new. False: it took the place of the one of its name.
    created: bool,
    #[serde(flatten)]
    rule: WatchRule,
}

/// The rule is not there any more.
#[derive(Serialize, ToSchema)]
#[schema(as = WatchRuleDeleted)]
struct Removed {
    /// Always true.
    ok: bool,
    /// Rules taken away: 1, or 0 where there was none.
    deleted: u32,
}

/// Lists the rules in the order in which they are asked.
#[utoipa::path(
    get, path = "/api/watch-rules", tag = "approvals", operation_id = "list_watch_rules",
    responses((status = 200, description = "The rules", body = Rules), Refused)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, call: Call, uri: Uri) -> Answer {
    nothing(&uri)?;
    let request = wire::ListWatchRulesRequest {};
    let found = app.upstreams.receipts.read(&call, request, rpc!(executor.list_watch_rules)).await?;
    json(&Rules { rules: found.rules.into_iter().map(WatchRule::read).collect() })
}

/// Adds a rule, or puts it in the place of the one of its name. A pattern that does not compile is refused.
#[utoipa::path(
    post, path = "/api/watch-rules", tag = "approvals", operation_id = "create_watch_rule", request_body = Wanted,
    responses(
        (status = 201, description = "It is new", body = Put), (status = 200, description = "It was replaced", body = Put),
        Refused
    )
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    call: Call,
    uri: Uri,
    JsonBody(wanted): JsonBody<Wanted>,
) -> Answer {
    nothing(&uri)?;
    store(&app, &call, wanted).await
}

/// Puts the rule of this name. A pattern that does not compile is refused.
#[utoipa::path(
    put, path = "/api/watch-rules/{name}", tag = "approvals", operation_id = "put_watch_rule",
    params(("name" = String, Path, description = "Name of the rule")), request_body = Wanted,
    responses(
        (status = 201, description = "It is new", body = Put), (status = 200, description = "It was replaced", body = Put),
        Refused
    )
)]
pub(crate) async fn put(
    State(app): State<Arc<App>>,
    call: Call,
    At(name): At,
    uri: Uri,
    JsonBody(wanted): JsonBody<Wanted>,
) -> Answer {
    nothing(&uri)?;
    if wanted.name.as_ref().is_some_and(|other| *other != name) {
        return Err(Fault::new(Reason::InvalidRequest, "the body names another rule than the address")
            .with("field", "name")
            .into());
    }
    store(&app, &call, Wanted { name: Some(name), ..wanted }).await
}

/// Takes a rule away. One that is not there is no failure.
#[utoipa::path(
    delete, path = "/api/watch-rules/{name}", tag = "approvals", operation_id = "delete_watch_rule",
    params(("name" = String, Path, description = "Name of the rule")),
    responses((status = 200, description = "It is not there", body = Removed), Refused)
)]
pub(crate) async fn remove(State(app): State<Arc<App>>, call: Call, At(name): At, uri: Uri) -> Answer {
    nothing(&uri)?;
    let request = wire::DeleteWatchRuleRequest { name };
    let done = app.upstreams.receipts.write(&call, request, rpc!(executor.delete_watch_rule)).await?;
    json(&Removed { ok: true, deleted: done.deleted })
}

async fn store(app: &App, call: &Call, wanted: Wanted) -> Answer {
    let rule = wire::WatchRule {
        name: wanted.name.unwrap_or_default(),
        position: wanted.position,
        pattern_key: wanted.pattern_key.unwrap_or_default(),
        pattern_body: wanted.pattern_body.unwrap_or_default(),
        action: wanted.action.value(),
        reason: wanted.reason.unwrap_or_default(),
    };
    let request = wire::PutWatchRuleRequest { rule: Some(rule) };
    let done = app.upstreams.receipts.write(call, request, rpc!(executor.put_watch_rule)).await?;
    let status = if done.created { StatusCode::CREATED } else { StatusCode::OK };
    json_with(status, &Put { ok: true, created: done.created, rule: WatchRule::require(done.rule)? })
}

impl WatchRule {
    fn read(rule: wire::WatchRule) -> Self {
        WatchRule {
            name: rule.name,
            position: rule.position,
            pattern_key: some(rule.pattern_key),
            pattern_body: some(rule.pattern_body),
            action: WatchAction::read(rule.action),
            reason: some(rule.reason),
        }
    }

    fn require(rule: Option<wire::WatchRule>) -> Result<Self> {
        let empty = || Fault::new(Reason::Internal, "the write came without what it did");
        rule.map(WatchRule::read).ok_or_else(empty)
    }
}
