//! `GET /api/directory/{key}/history`: the versions of a row.

use std::sync::Arc;

use axum::extract::State;
use callbook_wire::directory::v1 as wire;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::write::not_found;
use crate::answer::{Action, Answer, Raw, Refused, Word, json, moment, raw, some};
use crate::app::App;
use crate::request::{At, Call, Limit, Query};
use crate::upstream::rpc;

/// Which part of the history.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Part {
    /// Versions a page, from 1; 50 where nothing is said, 200 at most.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// The history of a row.
#[derive(Serialize, ToSchema)]
struct History {
    /// Key of the row.
    key: String,
    /// The versions, newest first.
    versions: Vec<Version>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// One version of a row.
#[derive(Serialize, ToSchema)]
#[schema(as = RowVersion)]
struct Version {
    /// The row's version after the write.
    version: i64,
    /// The directory's revision that the write made.
    revision: i64,
    /// When it was written.
    #[schema(format = DateTime)]
    at: Option<String>,
    /// Who wrote it.
    actor: String,
    /// What was done.
    action: Option<Action>,
    /// The columns that differ.
    diff: Vec<Change>,
    /// The row before the write. Null: there was none.
    #[schema(value_type = Value)]
    before: Option<Raw>,
    /// The row after the write. Null: it was removed.
    #[schema(value_type = Value)]
    after: Option<Raw>,
}

/// One column that a write changed.
#[derive(Serialize, ToSchema)]
#[schema(as = ColumnChange)]
struct Change {
    column: String,
    /// Value before. Null: there was no row, or no value.
    #[schema(value_type = Value)]
    before: Option<Raw>,
    /// Value after. Null: there is no row, or no value.
    #[schema(value_type = Value)]
    after: Option<Raw>,
}

/// Lists the versions of a row, newest first, also of a deleted one.
#[utoipa::path(
    get, path = "/api/directory/{key}/history", tag = "directory", operation_id = "list_row_versions",
    params(("key" = String, Path, description = "Key of the row"), Part),
    responses((status = 200, description = "A page", body = History), Refused)
)]
pub(crate) async fn history(State(app): State<Arc<App>>, call: Call, At(key): At, Query(part): Query<Part>) -> Answer {
    let request = wire::ListRowVersionsRequest {
        key: key.clone(),
        page_size: Limit::page_size(part.limit),
        page_token: part.cursor.unwrap_or_default(),
    };
    let found =
        app.upstreams.contract.read(&call, request, rpc!(directory.list_row_versions)).await.map_err(not_found)?;
    json(&History {
        key,
        versions: found.versions.into_iter().map(Version::read).collect(),
        next_cursor: some(found.next_page_token),
    })
}

impl Version {
    fn read(version: wire::RowVersion) -> Self {
        let change = |change: wire::ColumnChange| Change {
            column: change.column,
            before: change.before_json.as_deref().map(raw),
            after: change.after_json.as_deref().map(raw),
        };
        Version {
            version: version.version,
            revision: version.revision,
            at: moment(version.at),
            actor: version.actor,
            action: Action::read(version.action),
            diff: version.changes.into_iter().map(change).collect(),
            before: version.before_json.as_deref().map(raw),
            after: version.after_json.as_deref().map(raw),
        }
    }
}
