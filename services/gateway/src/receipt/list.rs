//! `/api/invocations`: the caller's invocations, newest first.

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::InvocationId;
use callbook_wire::receipt::v1 as wire;
use prost_types::Timestamp;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Refused, Status, Word, json, moment, only, some};
use crate::app::App;
use crate::request::{Call, Limit, Query};
use crate::upstream::rpc;

/// Filters over invocations.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only those of this key.
    #[param(nullable = false)]
    key: Option<String>,
    /// Only those of this actor, such as `principal:` and a name.
    #[param(nullable = false)]
    actor: Option<String>,
    /// Only those that stand so.
    #[param(nullable = false)]
    status: Option<Status>,
    /// Only those that started at this time or later, RFC 3339.
    #[param(nullable = false, format = DateTime)]
    since: Option<String>,
    /// Only those that started before this time, RFC 3339.
    #[param(nullable = false, format = DateTime)]
    until: Option<String>,
    /// Only the steps of this invocation.
    #[param(nullable = false)]
    parent: Option<String>,
    /// Entries a page, from 1; 50 where nothing is said, 500 at most.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// A page of invocations.
#[derive(Serialize, ToSchema)]
#[schema(as = InvocationsPage)]
struct Page {
    /// The invocations, newest first.
    invocations: Vec<Summary>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// One invocation in a listing.
#[derive(Serialize, ToSchema)]
#[schema(as = InvocationSummary)]
struct Summary {
    invocation_id: String,
    key: String,
    /// What ran it, such as `http`; for a part of an agent's run `model`, `ask` or `contract`.
    runner: String,
    status: Option<Status>,
    actor: String,
    #[schema(format = DateTime)]
    started_at: Option<String>,
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    duration_ms: Option<i64>,
    upstream_status: Option<u32>,
    /// Code of the failure. Null: it succeeded or has no result.
    error: Option<String>,
    cost_usd: f64,
    parent: Option<String>,
    repairs: Option<String>,
    replay_of: Option<String>,
}

/// Lists the caller's invocations, newest first; the owner sees all.
#[utoipa::path(
    get, path = "/api/invocations", tag = "receipts", operation_id = "list_invocations", params(Filter),
    responses((status = 200, description = "A page", body = Page), Refused)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, call: Call, Query(filter): Query<Filter>) -> Answer {
    let request = wire::ListInvocationsRequest {
        key: filter.key.unwrap_or_default(),
        actor: filter.actor.unwrap_or_default(),
        status: only(filter.status),
        since: filter.since.as_deref().map(|text| time("since", text)).transpose()?,
        until: filter.until.as_deref().map(|text| time("until", text)).transpose()?,
        parent: filter.parent.as_deref().map(parent).transpose()?.unwrap_or_default(),
        page_size: Limit::page_size(filter.limit),
        page_token: filter.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.receipts.read(&call, request, rpc!(receipt.list_invocations)).await?;
    json(&Page {
        invocations: found.invocations.into_iter().map(Summary::read).collect(),
        next_cursor: some(found.next_page_token),
    })
}

impl Summary {
    fn read(found: wire::InvocationSummary) -> Self {
        Summary {
            invocation_id: found.invocation_id,
            key: found.key,
            runner: found.runner,
            status: Status::read(found.status),
            actor: found.actor,
            started_at: moment(found.started_at),
            ended_at: moment(found.ended_at),
            duration_ms: found.duration_ms,
            upstream_status: found.upstream_status,
            error: some(found.error_code),
            cost_usd: found.cost_usd,
            parent: some(found.parent),
            repairs: some(found.repairs),
            replay_of: some(found.replay_of),
        }
    }
}

fn parent(text: &str) -> Result<String> {
    InvocationId::require(text).map(|id| id.to_string())
}

/// A time of a query. A `+` that was not encoded came as a space.
pub(super) fn time(name: &'static str, text: &str) -> Result<Timestamp> {
    let refused = || {
        Fault::new(Reason::InvalidRequest, format!("`{name}` is not a time such as 2026-07-26T04:36:19Z"))
            .with("field", name)
    };
    let at = OffsetDateTime::parse(&text.replace(' ', "+"), &Rfc3339).map_err(|_| refused())?;
    let nanos = i32::try_from(at.nanosecond()).map_err(|_| refused())?;
    Ok(Timestamp { seconds: at.unix_timestamp(), nanos })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_exactly() {
        assert_eq!(time("since", "1970-01-01T00:00:01.5Z"), Ok(Timestamp { seconds: 1, nanos: 500_000_000 }));
        assert_eq!(time("since", "1970-01-01T01:00:00 01:00"), Ok(Timestamp { seconds: 0, nanos: 0 }));
        for bad in ["", "yesterday", "1970-01-01", "1970-13-01T00:00:00Z"] {
            assert!(time("since", bad).is_err(), "{bad}");
        }
    }
}
