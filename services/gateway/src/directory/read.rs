//! `GET /api/directory/{key}`: one row.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::directory::v1 as wire;
use http::{HeaderMap, StatusCode, Uri, header};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::row::{Row, schema};
use super::search;
use super::write::not_found;
use crate::answer::{Answer, Refused, json, marked};
use crate::app::App;
use crate::request::{At, Call, Etag, is_fresh, nothing};
use crate::upstream::rpc;

/// One row with the schema of rows.
#[derive(Serialize, ToSchema)]
#[schema(as = RowWithSchema)]
struct Whole {
    #[serde(flatten)]
    row: Row,
    /// JSON Schema of a row.
    #[schema(value_type = Object)]
    schema: &'static RawValue,
    /// True: the database does not answer now and this is what was last known. Absent: it is current.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
}

/// Gives one row. The seed's `/api/directory/categories` and `/api/directory/search` answer here too, as long as no
/// row has that key.
#[utoipa::path(
    get, path = "/api/directory/{key}", tag = "directory", operation_id = "get_row",
    params(("key" = String, Path, description = "Key of the row")),
    responses(
        (status = 200, description = "The row", body = Whole),
        (status = 304, description = "The row still has the version of `If-None-Match`"),
        Refused
    )
)]
pub(crate) async fn read(State(app): State<Arc<App>>, call: Call, At(key): At, uri: Uri, headers: HeaderMap) -> Answer {
    let of_seed = matches!(key.as_str(), "categories" | "search");
    if !of_seed {
        nothing(&uri)?;
    }
    match row(&app, &call, &key).await {
        Ok(found) => answer(found, &headers),
        Err(fault) if of_seed && fault.reason() == Reason::NotFound => search::of_seed(&app, &call, &key, &uri).await,
        Err(fault) => Err(fault.into()),
    }
}

async fn row(app: &App, call: &Call, key: &str) -> Result<wire::GetRowResponse> {
    let request = wire::GetRowRequest { key: key.to_owned() };
    app.upstreams.contract.read(call, request, rpc!(directory.get_row)).await.map_err(not_found)
}

fn answer(found: wire::GetRowResponse, headers: &HeaderMap) -> Answer {
    let row = found.row.ok_or_else(|| Fault::new(Reason::Internal, "the row came empty"))?;
    let etag = Etag::of_version(row.version);
    // the version is of the row's own columns; what a flow or an agent reaches changes its hashes without it
    let own = matches!(row.r#type(), wire::RowType::Fn | wire::RowType::Http);
    let response: Response = match own && is_fresh(headers, &etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => json(&Whole { row: Row::read(row), schema: schema(), stale: found.stale })?,
    };
    let mut response = marked(response, found.stale);
    response.headers_mut().insert(header::ETAG, etag.value());
    Ok(response)
}
