//! `/api/directory/{key}/test`: what a write would say, and what the first example would do. Nothing runs.

use std::sync::Arc;

use axum::extract::{Request, State};
use callbook_wire::directory::v1 as wire;
use callbook_wire::directory::v1::check_row_request::Subject;
use http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::input::Columns;
use super::write::{allowed, not_found};
use crate::answer::{Answer, Raw, Refused, json, raw, some};
use crate::app::App;
use crate::request::{At, Call, nothing, object};
use crate::upstream::rpc;

/// What is wrong with a row.
#[derive(Serialize, ToSchema)]
struct Checked {
    /// True: a write would be accepted.
    ok: bool,
    /// Key of the row.
    key: String,
    /// Always false: nothing ran.
    ran: bool,
    /// What a write would be refused for.
    violations: Vec<Violation>,
    /// What is doubtful.
    warnings: Vec<String>,
    /// What the row's first example would do. Null: the row does not compile or has no example.
    #[schema(value_type = Value)]
    shaped: Option<Raw>,
}

/// One reason to refuse a row.
#[derive(Serialize, ToSchema)]
struct Violation {
    /// Code of the rule.
    code: String,
    /// What is wrong and where.
    message: String,
    /// What to do about it. Null: the message says it.
    how_to_fix: Option<String>,
}

/// Compiles a stored row, checks its hygiene and shapes its example.
#[utoipa::path(
    get, path = "/api/directory/{key}/test", tag = "directory", operation_id = "check_row",
    params(("key" = String, Path, description = "Key of the row")),
    responses((status = 200, description = "What is wrong with it", body = Checked), Refused)
)]
pub(crate) async fn stored(State(app): State<Arc<App>>, call: Call, At(key): At, uri: Uri) -> Answer {
    nothing(&uri)?;
    check(&app, &call, wire::CheckRowRequest { subject: Some(Subject::Key(key)), allow_lookalike: false }).await
}

/// The same for a row that is not stored; its key is that of the path.
#[utoipa::path(
    post, path = "/api/directory/{key}/test", tag = "directory", operation_id = "check_given_row",
    params(("key" = String, Path, description = "Key of the row"), super::write::How),
    request_body(content = Columns, description = "The row; computed columns are ignored"),
    responses((status = 200, description = "What is wrong with it", body = Checked), Refused)
)]
pub(crate) async fn given(State(app): State<Arc<App>>, call: Call, At(key): At, uri: Uri, request: Request) -> Answer {
    let mut row = object(request, &app).await?;
    let allow_lookalike = allowed(&uri, &mut row)?;
    row.set("key", &key);
    check(&app, &call, wire::CheckRowRequest { subject: Some(Subject::RowJson(row.to_json())), allow_lookalike }).await
}

async fn check(app: &App, call: &Call, request: wire::CheckRowRequest) -> Answer {
    let found = app.upstreams.contract.read(call, request, rpc!(directory.check_row)).await.map_err(not_found)?;
    let violation = |violation: wire::Violation| Violation {
        code: violation.code,
        message: violation.message,
        how_to_fix: some(violation.how_to_fix),
    };
    json(&Checked {
        ok: found.violations.is_empty(),
        key: found.key,
        ran: false,
        violations: found.violations.into_iter().map(violation).collect(),
        warnings: found.warnings,
        shaped: found.shaped_json.as_deref().map(raw),
    })
}
