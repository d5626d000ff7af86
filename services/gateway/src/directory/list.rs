//! `GET /api/directory`: rows in canonical order.

use std::sync::Arc;

use axum::extract::State;
use callbook_wire::directory::v1 as wire;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::row::{Row, schema};
use crate::answer::{Answer, Refused, RowType, json, marked, only, some};
use crate::app::App;
use crate::request::{Call, Limit, Query};
use crate::upstream::rpc;

/// Filters over rows.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only rows of this type.
    #[serde(rename = "type")]
    #[param(nullable = false)]
    row_type: Option<RowType>,
    /// Only rows of this category.
    #[param(nullable = false)]
    category: Option<String>,
    /// Rows a page, from 1; 100 where nothing is said, 500 at most.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// A page of rows.
#[derive(Serialize, ToSchema)]
#[schema(as = RowsPage)]
struct Page {
    /// All rows under the filters, over all pages.
    count: u64,
    /// The rows.
    rows: Vec<Row>,
    /// JSON Schema of a row.
    #[schema(value_type = Object)]
    schema: &'static RawValue,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// Lists rows in canonical order, disabled ones included for callers who may edit them.
#[utoipa::path(
    get, path = "/api/directory", tag = "directory", operation_id = "list_rows", params(Filter),
    responses((status = 200, description = "A page", body = Page), Refused)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, call: Call, Query(filter): Query<Filter>) -> Answer {
    let request = wire::ListRowsRequest {
        r#type: only(filter.row_type),
        category: filter.category.unwrap_or_default(),
        page_size: Limit::page_size(filter.limit),
        page_token: filter.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.contract.read(&call, request, rpc!(directory.list_rows)).await?;
    let page = Page {
        count: found.count,
        rows: found.rows.into_iter().map(Row::read).collect(),
        schema: schema(),
        next_cursor: some(found.next_page_token),
    };
    Ok(marked(json(&page)?, found.stale))
}
