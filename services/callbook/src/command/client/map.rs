//! `callbook map`: the book in numbers, and one shelf of it.

use clap::Args;
use serde::Deserialize;

use super::ask::{Untrusted, what_cell};
use super::gateway::Gateway;
use super::page::{Listing, Page, Paging};
use super::screen::{Form, Screen};
use super::text::{BOLD, Cell, DIM, PLAIN, count_of, effect_cell, table};
use super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  callbook map
  callbook map text
  callbook map github.issues")]
pub struct Map {
    /// A category or namespace; absent: all categories with their counts
    shelf: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

/// The book in numbers.
#[derive(Debug, Deserialize)]
pub struct Book {
    counts: Counts,
    #[serde(default)]
    shelves: Vec<Shelf>,
}

#[derive(Debug, Deserialize)]
struct Counts {
    rows: u64,
    enabled: u64,
    registry: u64,
    mcp: u64,
}

#[derive(Debug, Deserialize)]
struct Shelf {
    category: Option<String>,
    count: u64,
}

#[derive(Debug, Deserialize)]
struct ShelfPage {
    rows: Vec<ShelfRow>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct ShelfRow {
    key: String,
    what: Option<String>,
    untrusted_text: Option<Untrusted>,
    #[serde(rename = "type")]
    row_type: Option<String>,
    effect: Option<String>,
    risk: Option<String>,
}

impl Map {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let path = ["api", "dispatch"];
        let Some(shelf) = self.shelf else {
            let answer = gateway.send(gateway.get(&path, &[("map", "1".to_owned())])?).await?;
            let text = screen.form == Form::Text;
            let written =
                if text { screen.text(&answer.read::<Book>()?.lines(screen)) } else { screen.json(&answer.body) };
            return written.map(|()| Verdict::Done);
        };
        let read = |body: &[u8]| {
            let found: ShelfPage = serde_json::from_slice(body)?;
            let rows: Vec<Vec<Cell>> = found.rows.iter().map(ShelfRow::cells).collect();
            Ok(Page { text: table(&rows, screen), count: rows.len(), next_cursor: found.next_cursor })
        };
        let nothing = "there is no such shelf; `callbook map` lists them";
        let listing = Listing { path: &path, query: vec![("map", shelf)], most: 100, nothing, read };
        self.paging.walk(gateway, screen, listing).await
    }
}

impl Book {
    /// The counts in one line.
    pub fn counts(&self) -> String {
        let Counts { rows, enabled, registry, mcp } = self.counts;
        format!(
            "{} · {enabled} enabled · {registry} in the registry · {mcp} for planners",
            count_of(rows, "row", "rows")
        )
    }

    fn lines(&self, screen: &Screen) -> String {
        let shelf = |shelf: &Shelf| {
            let name = shelf.category.as_deref();
            let name = name.map_or_else(|| Cell::new("(no category)", DIM), |name| Cell::new(name, BOLD));
            vec![name, Cell::new(shelf.count.to_string(), PLAIN)]
        };
        let shelves: Vec<Vec<Cell>> = self.shelves.iter().map(shelf).collect();
        format!("{}\n{}", self.counts(), table(&shelves, screen))
    }
}

impl ShelfRow {
    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::new(&self.key, BOLD),
            effect_cell(self.effect.as_deref(), self.risk.as_deref()),
            Cell::new(self.row_type.as_deref().unwrap_or("?"), DIM),
            what_cell(self.what.as_deref(), self.untrusted_text.as_ref()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::screen_of;
    use super::*;

    #[test]
    fn the_book_is_its_counts_and_its_shelves() {
        let book: Book = serde_json::from_str(
            r#"{"total":2,"counts":{"rows":3,"enabled":2,"registry":2,"mcp":1},"predicates":{},"shelves":[
            {"category":"text","count":2},{"category":null,"count":1}]}"#,
        )
        .unwrap();
        assert_eq!(
            book.lines(&screen_of(80)),
            "3 rows · 2 enabled · 2 in the registry · 1 for planners\ntext           2\n(no category)  1\n"
        );
    }
}
