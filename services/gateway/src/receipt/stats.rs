//! `/api/invocations/stats`: sums over the caller's invocations.

use std::sync::Arc;

use axum::extract::State;
use callbook_wire::receipt::v1 as wire;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::list::time;
use crate::answer::{Answer, Refused, json};
use crate::app::App;
use crate::request::{Call, Query};
use crate::upstream::rpc;

/// Filters over sums.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Span {
    /// Only invocations of this key.
    #[param(nullable = false)]
    key: Option<String>,
    /// Only those of this actor.
    #[param(nullable = false)]
    actor: Option<String>,
    /// Only those that started at this time or later, RFC 3339.
    #[param(nullable = false, format = DateTime)]
    since: Option<String>,
    /// Only those that started before this time, RFC 3339.
    #[param(nullable = false, format = DateTime)]
    until: Option<String>,
}

/// The sums.
#[derive(Serialize, ToSchema)]
#[schema(as = InvocationStats)]
struct Sums {
    /// Over all keys.
    total: Sum,
    /// By key, most invocations first, the first 1,000.
    by_key: Vec<KeySum>,
}

/// Sums over the invocations of one key.
#[derive(Serialize, ToSchema)]
struct KeySum {
    key: String,
    #[serde(flatten)]
    sum: Sum,
}

/// Sums over some invocations. Latencies in milliseconds; null: none has a result.
#[derive(Default, Serialize, ToSchema)]
struct Sum {
    count: u64,
    /// Those that ran and did not succeed.
    failures: u64,
    latency_p50_ms: Option<f64>,
    latency_p95_ms: Option<f64>,
    latency_p99_ms: Option<f64>,
    cost_usd: f64,
}

/// Sums the caller's invocations; the owner's sums are over all.
#[utoipa::path(
    get, path = "/api/invocations/stats", tag = "receipts", operation_id = "get_stats", params(Span),
    responses((status = 200, description = "The sums", body = Sums), Refused)
)]
pub(crate) async fn stats(State(app): State<Arc<App>>, call: Call, Query(span): Query<Span>) -> Answer {
    let request = wire::GetStatsRequest {
        key: span.key.unwrap_or_default(),
        actor: span.actor.unwrap_or_default(),
        since: span.since.as_deref().map(|text| time("since", text)).transpose()?,
        until: span.until.as_deref().map(|text| time("until", text)).transpose()?,
    };
    let found = app.upstreams.receipts.read(&call, request, rpc!(receipt.get_stats)).await?;
    let by_key = found.by_key.into_iter();
    json(&Sums {
        total: found.total.map(Sum::read).unwrap_or_default(),
        by_key: by_key.map(|sum| KeySum { key: sum.key, sum: sum.stats.map(Sum::read).unwrap_or_default() }).collect(),
    })
}

impl Sum {
    fn read(sum: wire::Stats) -> Self {
        Sum {
            count: sum.count,
            failures: sum.failures,
            latency_p50_ms: sum.latency_p50_ms,
            latency_p95_ms: sum.latency_p95_ms,
            latency_p99_ms: sum.latency_p99_ms,
            cost_usd: sum.cost_usd,
        }
    }
}
