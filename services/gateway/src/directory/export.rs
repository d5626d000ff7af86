//! `GET /api/directory:export`: rows as NDJSON, passed on piece by piece.

use std::io;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use callbook_wire::directory::v1 as wire;
use futures::{StreamExt, stream};
use http::StatusCode;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::answer::{Answer, Refused, RowType, media, only};
use crate::app::App;
use crate::request::{Call, Query};
use crate::upstream::{fault_of_read, rpc};

/// Which rows.
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
}

/// Gives rows as NDJSON in the shape that an import takes, in canonical order. An export that fails on the way breaks
/// off, so that a part is never taken for all.
#[utoipa::path(
    get, path = "/api/directory:export", tag = "directory", operation_id = "export_rows", params(Filter),
    responses((status = 200, description = "The rows", body = String, content_type = "application/x-ndjson"), Refused)
)]
pub(crate) async fn export(State(app): State<Arc<App>>, call: Call, Query(filter): Query<Filter>) -> Answer {
    let request =
        wire::ExportRowsRequest { r#type: only(filter.row_type), category: filter.category.unwrap_or_default() };
    let call = call.or_within(app.config.import_deadline);
    let mut pieces = app.upstreams.contract.read(&call, request, rpc!(directory.export_rows)).await?;
    // The first piece is waited for, because a refusal may come in its place and should have its status.
    let first = pieces.message().await.map_err(|status| fault_of_read(&status))?;
    let rest =
        pieces.map(|piece| piece.map(|piece| piece.chunk).map_err(|status| io::Error::other(fault_of_read(&status))));
    let first = stream::iter(first.map(|piece| Ok(piece.chunk)));
    Ok(media(StatusCode::OK, "application/x-ndjson", Body::from_stream(first.chain(rest))))
}
