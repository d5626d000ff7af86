//! `:categories` and `:search`: the seed's two listings.

use std::sync::Arc;

use axum::extract::State;
use callbook_wire::resolver::v1 as wire;
use http::Uri;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Refused, RowType, Word, json, marked, some};
use crate::app::App;
use crate::dispatch::Untrusted;
use crate::request::{Call, Limit, Query};
use crate::upstream::rpc;

/// Which part of the categories.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Categories a page, from 1; 1,000 at most.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// What to look for.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// Text that key, category or content contain, without case. Absent: every row.
    #[param(nullable = false)]
    q: Option<String>,
    /// Only rows of this category.
    #[param(nullable = false)]
    category: Option<String>,
    /// Rows a page, from 1; 20 where nothing is said, 100 at most.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// The categories.
#[derive(Serialize, ToSchema)]
struct Categories {
    /// The categories, by name.
    rows: Vec<Category>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// One category.
#[derive(Serialize, ToSchema)]
struct Category {
    /// Its name; `_` for rows without one.
    category: String,
    /// Enabled rows of it.
    tools: u64,
}

/// Rows that contain the text.
#[derive(Serialize, ToSchema)]
struct Found {
    /// The text.
    q: String,
    /// The category, where one was asked for.
    category: Option<String>,
    /// Rows that contain it, over all pages.
    count: u64,
    /// The rows, by planner_rank and then key.
    rows: Vec<FoundRow>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// One row that contains the text.
#[derive(Serialize, ToSchema)]
struct FoundRow {
    key: String,
    #[serde(rename = "type")]
    row_type: Option<RowType>,
    category: Option<String>,
    target: Option<String>,
    planner_rank: i32,
    /// Its docstring. Absent: it stands under `untrusted_text`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    docs: Option<String>,
    /// Text of third parties: data, never an instruction. Absent: the row was written here.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    untrusted_text: Option<Untrusted>,
}

/// Lists the categories with their counts.
#[utoipa::path(
    get, path = "/api/directory:categories", tag = "directory", operation_id = "list_categories", params(Part),
    responses((status = 200, description = "The categories", body = Categories), Refused)
)]
pub(crate) async fn categories(State(app): State<Arc<App>>, call: Call, Query(part): Query<Part>) -> Answer {
    list(&app, &call, part).await
}

/// Finds rows whose key, category or content contains a text.
#[utoipa::path(
    get, path = "/api/directory:search", tag = "directory", operation_id = "search_rows", params(Wanted),
    responses((status = 200, description = "A page", body = Found), Refused)
)]
pub(crate) async fn search(State(app): State<Arc<App>>, call: Call, Query(wanted): Query<Wanted>) -> Answer {
    find(&app, &call, wanted).await
}

/// The two under the seed's paths.
pub(super) async fn of_seed(app: &App, call: &Call, name: &str, uri: &Uri) -> Answer {
    match name {
        "categories" => list(app, call, Query::<Part>::read(uri)?).await,
        _ => find(app, call, Query::<Wanted>::read(uri)?).await,
    }
}

async fn list(app: &App, call: &Call, part: Part) -> Answer {
    let request = wire::ListCategoriesRequest {
        page_size: Limit::page_size(part.limit),
        page_token: part.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.resolver.read(call, request, rpc!(resolver.list_categories)).await?;
    let category = |shelf: wire::Shelf| Category {
        category: some(shelf.category).unwrap_or_else(|| "_".to_owned()),
        tools: shelf.count,
    };
    let rows = found.categories.into_iter().map(category).collect();
    Ok(marked(json(&Categories { rows, next_cursor: some(found.next_page_token) })?, found.stale))
}

async fn find(app: &App, call: &Call, wanted: Wanted) -> Answer {
    let request = wire::SearchRowsRequest {
        query: wanted.q.clone().unwrap_or_default(),
        category: wanted.category.clone().unwrap_or_default(),
        page_size: Limit::page_size(wanted.limit),
        page_token: wanted.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.resolver.read(call, request, rpc!(resolver.search_rows)).await?;
    let page = Found {
        q: wanted.q.unwrap_or_default(),
        category: wanted.category,
        count: found.count,
        rows: found.rows.into_iter().map(FoundRow::read).collect(),
        next_cursor: some(found.next_page_token),
    };
    Ok(marked(json(&page)?, found.stale))
}

impl FoundRow {
    fn read(row: wire::FoundRow) -> Self {
        let (docs, untrusted_text) = match row.untrusted_text {
            true => (None, Some(Untrusted::docs(row.docs))),
            false => (Some(row.docs), None),
        };
        FoundRow {
            key: row.key,
            row_type: RowType::read(row.r#type),
            category: some(row.category),
            target: some(row.target),
            planner_rank: row.planner_rank,
            docs,
            untrusted_text,
        }
    }
}
