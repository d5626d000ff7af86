//! `?map=`: the book in numbers, or one shelf of it.

use std::collections::BTreeMap;

use callbook_domain::fault::{Fault, Reason};
use callbook_wire::resolver::v1 as wire;
use callbook_wire::resolver::v1::get_map_response::View;
use serde::Serialize;
use utoipa::ToSchema;

use super::Parameters;
use super::summary::Text;
use crate::answer::{Answer, Effect, Risk, RowType, Word, json, marked, some};
use crate::app::App;
use crate::request::Call;
use crate::upstream::rpc;

/// The whole book in numbers.
#[derive(Serialize, ToSchema)]
pub(super) struct Book {
    /// Enabled rows, as in `counts`.
    total: u64,
    /// Rows by predicate.
    counts: Counts,
    /// Each predicate in words, by its name in `counts`.
    predicates: BTreeMap<String, String>,
    /// Every category with its count of enabled rows, by name.
    shelves: Vec<Shelf>,
}

/// Rows by predicate.
#[derive(Serialize, ToSchema)]
struct Counts {
    rows: u64,
    enabled: u64,
    registry: u64,
    mcp: u64,
}

/// A category with its count.
#[derive(Serialize, ToSchema)]
struct Shelf {
    /// Null: rows without one.
    category: Option<String>,
    count: u64,
}

/// A page of one shelf.
#[derive(Serialize, ToSchema)]
pub(super) struct ShelfPage {
    /// The category or namespace that was asked for.
    shelf: String,
    /// All rows on it, over all pages. 0: there is no such shelf.
    count: u64,
    /// The rows, by key.
    rows: Vec<ShelfRow>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// One row on a shelf.
#[derive(Serialize, ToSchema)]
struct ShelfRow {
    key: String,
    #[serde(flatten)]
    text: Text,
    #[serde(rename = "type")]
    row_type: Option<RowType>,
    effect: Option<Effect>,
    risk: Option<Risk>,
}

/// Asks the resolver.
pub(super) async fn map(app: &App, call: &Call, asked: Parameters) -> Answer {
    let page_size = asked.page_size();
    let shelf = asked.map.filter(|shelf| !matches!(shelf.as_str(), "" | "1" | "true"));
    let request = wire::GetMapRequest { shelf, page_size, page_token: asked.cursor.unwrap_or_default() };
    let found = app.upstreams.resolver.read(call, request, rpc!(resolver.get_map)).await?;
    let answer = match found.view {
        Some(View::Book(book)) => json(&Book::read(book))?,
        Some(View::Shelf(page)) => json(&ShelfPage::read(page))?,
        None => return Err(Fault::new(Reason::Internal, "the map came without a view").into()),
    };
    Ok(marked(answer, found.stale))
}

/// The whole book in numbers, as JSON text.
pub(crate) async fn book(app: &App, call: &Call) -> Result<String, Fault> {
    let found = app.upstreams.resolver.read(call, wire::GetMapRequest::default(), rpc!(resolver.get_map)).await?;
    match found.view {
        Some(View::Book(book)) => Ok(serde_json::to_string(&Book::read(book)).expect("the map is plain data")),
        Some(View::Shelf(_)) | None => Err(Fault::new(Reason::Internal, "the map came without a view")),
    }
}

/// The name of a predicate as `counts` has it: what planners see is what the MCP projection shows.
fn named((name, words): (String, String)) -> (String, String) {
    (if name == "planner" { "mcp".to_owned() } else { name }, words)
}

impl Book {
    fn read(book: wire::BookMap) -> Self {
        let counts = book.counts.unwrap_or_default();
        let shelf = |shelf: wire::Shelf| Shelf { category: some(shelf.category), count: shelf.count };
        Book {
            total: counts.enabled,
            counts: Counts {
                rows: counts.rows,
                enabled: counts.enabled,
                registry: counts.registry,
                mcp: counts.planner,
            },
            predicates: book.predicates.into_iter().map(named).collect(),
            shelves: book.shelves.into_iter().map(shelf).collect(),
        }
    }
}

impl ShelfPage {
    fn read(page: wire::ShelfPage) -> Self {
        let row = |row: wire::ShelfRow| ShelfRow {
            key: row.key,
            text: Text::what(row.what, row.untrusted_text),
            row_type: RowType::read(row.r#type),
            effect: Effect::read(row.effect),
            risk: Risk::read(row.risk),
        };
        ShelfPage {
            shelf: page.shelf,
            count: page.count,
            rows: page.rows.into_iter().map(row).collect(),
            next_cursor: some(page.next_page_token),
        }
    }
}
