//! `POST /api/directory/{key}/breaker/reset`: a credential that is believed again.

use std::sync::Arc;

use axum::extract::State;
use callbook_wire::executor::v1 as wire;
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Answer, Refused, json};
use crate::app::App;
use crate::request::{At, Call, nothing};
use crate::upstream::rpc;

/// The breaker is shut.
#[derive(Serialize, ToSchema)]
struct Cleared {
    /// Always true.
    ok: bool,
    /// Key of the row.
    key: String,
    /// Origins at which the row's credential had failures on record.
    cleared: u32,
}

/// Forgets the refusals of a row's credential, so that the next call is sent. For the owner.
#[utoipa::path(
    post, path = "/api/directory/{key}/breaker/reset", tag = "directory", operation_id = "reset_breaker",
    params(("key" = String, Path, description = "Key of the row")),
    responses((status = 200, description = "The breaker is shut", body = Cleared), Refused)
)]
pub(crate) async fn reset(State(app): State<Arc<App>>, call: Call, At(key): At, uri: Uri) -> Answer {
    nothing(&uri)?;
    let request = wire::ResetBreakerRequest { key: key.clone() };
    let done = app.upstreams.receipts.write(&call, request, rpc!(executor.reset_breaker)).await?;
    json(&Cleared { ok: true, key, cleared: done.cleared })
}
