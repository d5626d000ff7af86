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
use crate::upstream::{directory, fault_of_read};

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
    let lane = app.upstreams.contract.lane()?;
    let refused = |status| fault_of_read(&status);
    let request = call.request(request).map_err(refused)?;
    let mut pieces = directory(lane.channel.clone()).export_rows(request).await.map_err(refused)?.into_inner();
    // The first piece is waited for, because a refusal may come in its place and should have its status.
    let first = pieces.message().await.map_err(refused)?;
    let rest = pieces.map(move |piece| {
        let _counts_as_load = &lane;
        piece.map(|piece| piece.chunk).map_err(|status| io::Error::other(fault_of_read(&status)))
    });
    let first = stream::iter(first.map(|piece| Ok(piece.chunk)));
    Ok(media(StatusCode::OK, "application/x-ndjson", Body::from_stream(first.chain(rest))))
}
