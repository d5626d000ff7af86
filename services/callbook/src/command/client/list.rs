//! `callbook list`: every row that the caller sees.

use clap::Args;
use serde::Deserialize;

use super::Ended;
use super::ask::Match;
use super::gateway::Gateway;
use super::page::{Listing, Page, Paging, given};
use super::screen::Screen;
use super::text::{Cell, table};

/// The most rows of a page.
const MOST: u32 = 50;

#[derive(Debug, Args)]
pub struct List {
    /// Only rows under this namespace
    #[arg(long)]
    namespace: Option<String>,
    /// Only rows of this category
    #[arg(long)]
    category: Option<String>,
    /// Only rows of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = ["fn", "http", "agent", "flow"])]
    row_type: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Deserialize)]
struct Rows {
    results: Vec<Match>,
    next_cursor: Option<String>,
}

impl List {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let query = given([("namespace", self.namespace), ("category", self.category), ("type", self.row_type)]);
        let read = |body: &[u8]| {
            let found: Rows = serde_json::from_slice(body)?;
            let rows: Vec<Vec<Cell>> = found.results.iter().map(Match::cells).collect();
            Ok(Page { text: table(&rows, screen), count: rows.len(), next_cursor: found.next_cursor })
        };
        let path = ["api", "directory:list"];
        let nothing = "there are no rows; `callbook import` or `callbook up --sample` brings some";
        self.paging.walk(gateway, screen, Listing { path: &path, query, most: MOST, nothing, read }).await
    }
}
