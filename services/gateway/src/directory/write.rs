//! `POST /api/directory`, `PUT` and `PATCH /api/directory/{key}`: writing one row.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::directory::v1 as wire;
use http::{StatusCode, Uri, header};
use serde::Deserialize;
use utoipa::IntoParams;

use super::Written;
use super::input::{Columns, NewRow};
use crate::answer::{Answer, Refused, json_with};
use crate::app::App;
use crate::request::{At, Call, Etag, IfMatch, Object, Query, Switch, if_match, nothing, object};
use crate::upstream::rpc;

/// The name by which a write accepts a key that reads like another; in the query, or beside the columns.
const ALLOW_LOOKALIKE: &str = "allow_lookalike";

/// How to write.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct How {
    /// True: a key that reads like another key is accepted.
    #[param(nullable = false, inline)]
    allow_lookalike: Option<Switch>,
}

/// Adds a row; `key` and `type` are required.
#[utoipa::path(
    post, path = "/api/directory", tag = "directory", operation_id = "create_row", params(How),
    request_body(content = NewRow, description = "The row; computed columns are ignored"),
    responses((status = 201, description = "It was added", body = Written), Refused)
)]
pub(crate) async fn create(State(app): State<Arc<App>>, call: Call, uri: Uri, request: Request) -> Answer {
    let mut row = object(request, &app).await?;
    let request = wire::CreateRowRequest { allow_lookalike: allowed(&uri, &mut row)?, row_json: row.to_json() };
    let done = app.upstreams.contract.write(&call, request, rpc!(directory.create_row)).await?;
    written(StatusCode::CREATED, Written::read(done.write, None)?)
}

/// Replaces an existing row whole; columns that are left out take their defaults.
#[utoipa::path(
    put, path = "/api/directory/{key}", tag = "directory", operation_id = "replace_row",
    params(
        ("key" = String, Path, description = "Key of the row"),
        IfMatch, How
    ),
    request_body(content = Columns, description = "The row; computed columns are ignored"),
    responses((status = 200, description = "It was replaced", body = Written), Refused)
)]
pub(crate) async fn replace(
    State(app): State<Arc<App>>,
    call: Call,
    At(key): At,
    uri: Uri,
    request: Request,
) -> Answer {
    let if_match = if_match(request.headers())?;
    let mut row = object(request, &app).await?;
    let allow_lookalike = allowed(&uri, &mut row)?;
    let request = wire::ReplaceRowRequest { key, row_json: row.to_json(), if_match, allow_lookalike };
    let done = app.upstreams.contract.write(&call, request, rpc!(directory.replace_row)).await.map_err(not_found)?;
    written(StatusCode::OK, Written::read(done.write, None)?)
}

/// Changes the columns that are named and leaves the others; null sets a column to its default.
#[utoipa::path(
    patch, path = "/api/directory/{key}", tag = "directory", operation_id = "patch_row",
    params(
        ("key" = String, Path, description = "Key of the row"),
        IfMatch
    ),
    request_body(content = Object, description = "Columns of a row"),
    responses((status = 200, description = "It was changed", body = Written), Refused)
)]
pub(crate) async fn patch(State(app): State<Arc<App>>, call: Call, At(key): At, uri: Uri, request: Request) -> Answer {
    nothing(&uri)?;
    let if_match = if_match(request.headers())?;
    let patch_json = object(request, &app).await?.to_json();
    let request = wire::PatchRowRequest { key, patch_json, if_match };
    let done = app.upstreams.contract.write(&call, request, rpc!(directory.patch_row)).await.map_err(not_found)?;
    written(StatusCode::OK, Written::read(done.write, Some(done.fields))?)
}

/// Whether the write accepts a look-alike.
pub(super) fn allowed(uri: &Uri, row: &mut Object) -> Result<bool> {
    let asked = Query::<How>::read(uri)?.allow_lookalike.unwrap_or_default().0;
    Ok(row.take_switch(ALLOW_LOOKALIKE)? || asked)
}

/// A row that is not there answers in the seed's words, whichever word the service has for it.
pub(super) fn not_found(fault: Fault) -> Fault {
    match fault.reason() {
        Reason::UnknownKey => Fault::new(Reason::NotFound, fault.message()),
        _ => fault,
    }
}

/// The answer to a write, with the ETag for the next one.
pub(super) fn written(status: StatusCode, written: Written) -> Answer {
    let mut response: Response = json_with(status, &written)?;
    response.headers_mut().insert(header::ETAG, Etag::of_version(written.version).value());
    Ok(response)
}
