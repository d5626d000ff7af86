//! `/api/directory`: writing and reading the book.

mod breaker;
mod catalogue;
mod check;
mod delete;
mod export;
mod history;
mod import;
mod input;
mod list;
mod read;
mod restore;
mod row;
mod search;
mod write;

use std::sync::Arc;

use callbook_domain::fault::Fault;
use callbook_wire::directory::v1 as wire;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::moment;
use crate::app::App;

/// The routes of this part. A colon stands where a key could not, so that no key hides one of them.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, write::create))
        .routes(routes!(read::read, write::replace, write::patch, delete::delete))
        .routes(routes!(history::history))
        .routes(routes!(restore::restore))
        .routes(routes!(breaker::reset))
        .routes(routes!(check::stored, check::given))
        .routes(routes!(search::categories))
        .routes(routes!(search::search))
        .routes(routes!(catalogue::list))
        .routes(routes!(catalogue::describe))
        .routes(routes!(catalogue::stamp))
        .routes(routes!(import::import))
        .routes(routes!(export::export))
}

/// What a committed write of one row says about itself.
#[derive(Serialize, ToSchema)]
struct Written {
    /// Always true.
    ok: bool,
    /// Key of the row.
    key: String,
    /// When the row was written.
    #[schema(format = DateTime)]
    updated_at: Option<String>,
    /// The directory's revision that this write made.
    revision: i64,
    /// The row's version after the write.
    version: i64,
    /// Columns that the request named. Absent: all were written.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    fields: Option<Vec<String>>,
    /// What is doubtful.
    warnings: Vec<String>,
    /// Fields of the request that are no columns or not writable. Absent: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    ignored_fields: Vec<String>,
}

impl Written {
    fn read(write: Option<wire::RowWrite>, fields: Option<Vec<String>>) -> Result<Self, Fault> {
        let write = write.ok_or_else(|| {
            Fault::new(callbook_domain::fault::Reason::Internal, "the write came without what it did")
        })?;
        Ok(Written {
            ok: true,
            key: write.key,
            updated_at: moment(write.updated_at),
            revision: write.revision,
            version: write.version,
            fields,
            warnings: write.warnings,
            ignored_fields: write.ignored_fields,
        })
    }
}
