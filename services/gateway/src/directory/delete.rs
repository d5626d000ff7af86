//! `DELETE /api/directory/{key}`: removing a row.

use std::sync::Arc;

use axum::extract::State;
use callbook_wire::directory::v1 as wire;
use http::{HeaderMap, Uri};
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Answer, Refused, json};
use crate::app::App;
use crate::request::{At, Call, IfMatch, if_match, nothing};
use crate::upstream::rpc;

/// The row is not there any more.
#[derive(Serialize, ToSchema)]
struct Deleted {
    /// Always true.
    ok: bool,
    /// Key of the row.
    key: String,
    /// Rows removed: 1, or 0 when there was none.
    deleted: u32,
}

/// Removes a row; its history and receipts stay. A row that is not there is no failure.
#[utoipa::path(
    delete, path = "/api/directory/{key}", tag = "directory", operation_id = "delete_row",
    params(
        ("key" = String, Path, description = "Key of the row"),
        IfMatch
    ),
    responses((status = 200, description = "It is not there", body = Deleted), Refused)
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    call: Call,
    At(key): At,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    nothing(&uri)?;
    let request = wire::DeleteRowRequest { key, if_match: if_match(&headers)? };
    let done = app.upstreams.contract.write(&call, request, rpc!(directory.delete_row)).await?;
    json(&Deleted { ok: true, key: done.key, deleted: done.deleted })
}
