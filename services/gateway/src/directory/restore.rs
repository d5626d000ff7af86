//! `POST /api/directory/{key}/restore`: bringing a version back.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::extract::State;
use callbook_wire::directory::v1 as wire;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Written;
use super::write::{not_found, written};
use crate::answer::{Answer, Refused};
use crate::app::App;
use crate::request::{At, Call, IfMatch, Query, if_match};
use crate::upstream::rpc;

/// Which version.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Which {
    /// Version to write again.
    #[param(value_type = u32, minimum = 1)]
    version: NonZeroU32,
}

/// Writes an earlier version of a row again, as a new version; also of a deleted row.
#[utoipa::path(
    post, path = "/api/directory/{key}/restore", tag = "directory", operation_id = "restore_row",
    params(
        ("key" = String, Path, description = "Key of the row"), Which,
        IfMatch
    ),
    responses((status = 200, description = "It was written", body = Written), Refused)
)]
pub(crate) async fn restore(
    State(app): State<Arc<App>>,
    call: Call,
    At(key): At,
    Query(which): Query<Which>,
    headers: HeaderMap,
) -> Answer {
    let request = wire::RestoreRowRequest { key, version: which.version.get().into(), if_match: if_match(&headers)? };
    let done = app.upstreams.contract.write(&call, request, rpc!(directory.restore_row)).await.map_err(not_found)?;
    written(StatusCode::OK, Written::read(done.write, None)?)
}
