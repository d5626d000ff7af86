//! Map: the book in numbers, and one shelf of it.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;
use callbook_store::snapshot::Entry;

use crate::App;
use crate::catalogue::{Catalogue, category};
use crate::cursor::{Cursors, size};
use crate::kept::catalogue;
use crate::sight::sight;

/// Rows a page of a shelf where none are asked for, and at most.
const PAGE: (u32, u32) = (100, 500);

/// What each count counts, by the count's name.
pub(crate) const PREDICATES: [(&str, &str); 4] = [
    ("rows", "all rows of the table that you may see, disabled ones too"),
    ("enabled", "rows that can be called"),
    ("registry", "enabled rows whose key is not shaped like a test's"),
    ("planner", "enabled rows that are shown to planners: what ask, the listing, agents and MCP tools choose from"),
];

/// The map.
pub(crate) enum Map {
    /// The whole book.
    Book(Arc<Catalogue>),
    /// One shelf.
    Shelf(Shelf),
}

/// A page of one shelf.
pub(crate) struct Shelf {
    /// The category or namespace that was asked for.
    pub(crate) name: String,
    /// All rows on it.
    pub(crate) count: usize,
    /// The rows of the page, by key.
    pub(crate) rows: Vec<Arc<Entry>>,
    /// The token of the next page; empty after the last.
    pub(crate) next: String,
}

/// The map of what the caller sees. Without a shelf: the whole book.
///
/// # Errors
/// `cursor_invalid`; `cursor_stale` for a token of another shelf.
pub(crate) async fn map(
    app: &App,
    caller: &Caller,
    shelf: Option<String>,
    page_size: u32,
    page_token: &str,
) -> Result<Map> {
    let Some(name) = shelf else { return catalogue(app, caller).await.map(Map::Book) };
    let cursors = Cursors::new(&app.cursor_key, "map", &[&name, &sight(caller)]);
    let snapshot = app.directory.snapshot();
    let rows = on_shelf(snapshot.rows(), caller, &name);
    let size = size(page_size, PAGE.0, PAGE.1);
    let (page, next) = cursors.page_after(&rows, page_token, size, |entry| entry.key().as_str())?;
    let count = rows.len();
    Ok(Map::Shelf(Shelf { name, count, rows: page.iter().map(|entry| Arc::clone(entry)).collect(), next }))
}

/// The enabled rows of the category, or, where no row has it, of the namespace; by key.
fn on_shelf<'a>(rows: &'a [Arc<Entry>], caller: &Caller, name: &str) -> Vec<&'a Arc<Entry>> {
    let enabled = || rows.iter().filter(|entry| entry.row.definition.enabled && caller.sees(entry.key()));
    let mut found: Vec<&Arc<Entry>> = enabled().filter(|entry| category(entry) == name).collect();
    if found.is_empty() && !name.is_empty() {
        found = enabled().filter(|entry| entry.key().is_under(name)).collect();
    }
    found.sort_unstable_by(|a, b| a.key().cmp(b.key()));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::tests::{book, entry};
    use crate::sight::narrowed;

    #[test]
    fn a_shelf_is_a_category_else_a_namespace() {
        let snapshot = book(vec![
            entry("Z", |row| row.category = Some("web".to_owned())),
            entry("A", |row| row.category = Some("web".to_owned())),
            entry("B", |row| (row.category, row.enabled) = (Some("web".to_owned()), false)),
            entry("web.x", |_| ()),
            entry("apps.b.c", |_| ()),
            entry("apps.a", |row| row.planner_visible = false),
        ]);
        let shelf = |name| {
            let found = on_shelf(snapshot.rows(), &Caller::Owner, name);
            found.iter().map(|entry| entry.key().as_str()).collect::<Vec<_>>()
        };
        assert_eq!(shelf("web"), ["A", "Z"]);
        assert_eq!(shelf("apps"), ["apps.a", "apps.b.c"]);
        assert_eq!(shelf("apps.b"), ["apps.b.c"]);
        assert_eq!(shelf(""), ["apps.a", "apps.b.c", "web.x"]);
        assert!(shelf("app").is_empty());
        assert!(on_shelf(snapshot.rows(), &narrowed("web."), "apps").is_empty());
    }
}
