//! `/api/recommended`: the operator's standing answers.

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::{Fault, Reason};
use callbook_wire::contract::v1 as wire;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Refused, json, moment, some};
use crate::app::App;
use crate::request::{Call, JsonBody, Limit, Query};
use crate::upstream::rpc;

/// Filters over standing answers.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only those for this key.
    #[param(nullable = false)]
    key: Option<String>,
    /// Entries a page, from 1; 100 where nothing is said, 500 at most.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// A page of standing answers.
#[derive(Serialize, ToSchema)]
#[schema(as = RecommendedPage)]
struct Page {
    /// The entries, by pattern and then key.
    recommended: Vec<Recommended>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// A standing answer to a kind of question.
#[derive(Serialize, ToSchema)]
struct Recommended {
    /// Words that a question must contain.
    pattern: String,
    /// Key of the row.
    key: String,
    /// False: the row comes first for such questions. True: last.
    demote: bool,
    /// Why. Null: not said.
    reason: Option<String>,
    /// Who set it.
    actor: String,
    /// When it was last set.
    #[schema(format = DateTime)]
    updated_at: Option<String>,
}

/// A standing answer to set.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RecommendRequest)]
pub(crate) struct Wanted {
    /// Words that a question must contain, compared without case.
    #[schema(min_length = 1, max_length = 400)]
    pattern: String,
    /// Key of an existing row.
    key: String,
    /// True: the row comes last for such questions. Absent: it comes first.
    #[serde(default)]
    demote: bool,
    /// Why, for people.
    #[serde(default)]
    #[schema(max_length = 1000)]
    reason: Option<String>,
}

/// Which standing answer.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Its pattern, as it is stored.
    pattern: String,
    /// Its key.
    key: String,
}

/// The standing answer is set.
#[derive(Serialize, ToSchema)]
#[schema(as = RecommendedSet)]
struct Set {
    /// Always true.
    ok: bool,
    #[serde(flatten)]
    recommended: Recommended,
}

/// The standing answer is not there any more.
#[derive(Serialize, ToSchema)]
#[schema(as = RecommendedDeleted)]
struct Removed {
    /// Always true.
    ok: bool,
    /// Entries removed: 1, or 0 when there was none.
    deleted: u32,
}

/// Lists the standing answers, by pattern and then key.
#[utoipa::path(
    get, path = "/api/recommended", tag = "operator", operation_id = "list_recommended", params(Filter),
    responses((status = 200, description = "A page", body = Page), Refused)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, call: Call, Query(filter): Query<Filter>) -> Answer {
    let request = wire::ListRecommendationsRequest {
        key: filter.key.unwrap_or_default(),
        page_size: Limit::page_size(filter.limit),
        page_token: filter.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.contract.read(&call, request, rpc!(contract.list_recommendations)).await?;
    json(&Page {
        recommended: found.recommendations.into_iter().map(Recommended::read).collect(),
        next_cursor: some(found.next_page_token),
    })
}

/// Sets the standing answer to a kind of question; the same pattern and key again replaces it.
#[utoipa::path(
    post, path = "/api/recommended", tag = "operator", operation_id = "set_recommended", request_body = Wanted,
    responses((status = 200, description = "It is set", body = Set), Refused)
)]
pub(crate) async fn set(State(app): State<Arc<App>>, call: Call, JsonBody(wanted): JsonBody<Wanted>) -> Answer {
    let request = wire::RecommendRequest {
        pattern: wanted.pattern,
        key: wanted.key,
        demote: wanted.demote,
        reason: wanted.reason.unwrap_or_default(),
    };
    let done = app.upstreams.contract.write(&call, request, rpc!(contract.recommend)).await?;
    let stored =
        done.recommendation.ok_or_else(|| Fault::new(Reason::Internal, "the write came without what it did"))?;
    json(&Set { ok: true, recommended: Recommended::read(stored) })
}

/// Takes a standing answer back. One that is not there is no failure.
#[utoipa::path(
    delete, path = "/api/recommended", tag = "operator", operation_id = "delete_recommended", params(Which),
    responses((status = 200, description = "It is not there", body = Removed), Refused)
)]
pub(crate) async fn remove(State(app): State<Arc<App>>, call: Call, Query(which): Query<Which>) -> Answer {
    let request = wire::DeleteRecommendationRequest { pattern: which.pattern, key: which.key };
    let done = app.upstreams.contract.write(&call, request, rpc!(contract.delete_recommendation)).await?;
    json(&Removed { ok: true, deleted: done.deleted })
}

impl Recommended {
    fn read(stored: wire::Recommendation) -> Self {
        Recommended {
            pattern: stored.pattern,
            key: stored.key,
            demote: stored.demote,
            reason: some(stored.reason),
            actor: stored.actor,
            updated_at: moment(stored.updated_at),
        }
    }
}
