//! `?registry=1`: all enabled rows without test-shaped keys.

use callbook_domain::fault::{Fault, Reason};
use callbook_wire::resolver::v1 as wire;
use serde::Serialize;
use utoipa::ToSchema;

use super::Parameters;
use super::summary::Text;
use crate::answer::{Answer, Effect, Risk, RowType, Word, json, marked, some};
use crate::app::App;
use crate::request::Call;
use crate::upstream::rpc;

/// A page of the registry.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryPage)]
pub(super) struct Page {
    /// All objects under the filter, over all pages.
    count: u64,
    /// Digest of the caller's catalogue.
    stamp: String,
    /// The objects.
    objects: Vec<Object>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// One row as the registry shows it.
#[derive(Serialize, ToSchema)]
#[schema(as = RegistryObject)]
struct Object {
    key: String,
    #[serde(rename = "type")]
    row_type: Option<RowType>,
    category: Option<String>,
    #[serde(flatten)]
    text: Text,
    effect: Option<Effect>,
    risk: Option<Risk>,
    /// Pool of executors that runs it.
    pool: String,
    contract_hash: String,
    text_hash: String,
    /// Revision that last changed it.
    revision: i64,
}

/// Asks the resolver.
pub(super) async fn registry(app: &App, call: &Call, asked: Parameters) -> super::Answer {
    if !matches!(asked.registry.as_deref(), Some("1" | "true")) {
        return Err(Fault::new(Reason::InvalidRequest, "`registry` must be 1").with("field", "registry").into());
    }
    let request = wire::ListRegistryRequest {
        page_size: asked.page_size(),
        category: asked.category.unwrap_or_default(),
        page_token: asked.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.resolver.read(call, request, rpc!(resolver.list_registry)).await?;
    let page = Page {
        count: found.count,
        stamp: found.stamp,
        objects: found.objects.into_iter().map(Object::read).collect(),
        next_cursor: some(found.next_page_token),
    };
    answer(&page, found.stale)
}

fn answer(page: &Page, stale: bool) -> Answer {
    Ok(marked(json(page)?, stale))
}

impl Object {
    fn read(row: wire::RegistryObject) -> Self {
        Object {
            key: row.key,
            row_type: RowType::read(row.r#type),
            category: some(row.category),
            text: Text::read(row.what, row.when_to_use, row.untrusted_text),
            effect: Effect::read(row.effect),
            risk: Risk::read(row.risk),
            pool: row.pool,
            contract_hash: row.contract_hash,
            text_hash: row.text_hash,
            revision: row.revision,
        }
    }
}
