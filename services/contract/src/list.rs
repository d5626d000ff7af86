//! List rows in the canonical order.

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;
use callbook_domain::row::{Definition, RowType};

use crate::App;
use crate::page::{self, Cursor};
use crate::sight::{Shown, Sight};

/// Which rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Filter {
    /// Only those of this type.
    pub(crate) row_type: Option<RowType>,
    /// Only those of this category, compared exactly.
    pub(crate) category: Option<String>,
}

impl Filter {
    /// Whether the row passes.
    pub(crate) fn takes(&self, definition: &Definition) -> bool {
        self.row_type.is_none_or(|row_type| definition.row_type == row_type)
            && (self.category.is_none() || definition.category == self.category)
    }

    fn cursor(&self) -> Cursor {
        let row_type = self.row_type.map_or("", RowType::as_str);
        Cursor::new("rows", &[row_type, self.category.as_deref().unwrap_or_default()])
    }
}

/// One page of rows.
pub(crate) struct Page {
    /// The rows.
    pub(crate) rows: Vec<Shown>,
    /// All under the filter that exist for the caller.
    pub(crate) count: usize,
    /// Where the next page begins; empty at the end.
    pub(crate) next: String,
    /// The database did not answer.
    pub(crate) stale: bool,
}

/// A page of at most `size` rows. The token is a place in the order, so a row that comes or goes meanwhile moves
/// nothing else.
///
/// # Errors
/// `cursor_invalid`, `cursor_stale`.
pub(crate) async fn list(app: &App, caller: &Caller, filter: &Filter, size: usize, token: &str) -> Result<Page> {
    app.callers.require_catalogue(caller)?;
    let cursor = filter.cursor();
    let after = cursor.place(token)?.map(Place::read).transpose()?;
    let look = app.look().await?;
    let mut page = Page { rows: Vec::new(), count: 0, next: String::new(), stale: look.stale };
    let mut more = false;
    for (at, entry) in look.snapshot.rows().iter().enumerate() {
        let definition = &entry.row.definition;
        let Some(sight) = Sight::of(caller, entry).filter(|_| filter.takes(definition)) else { continue };
        page.count += 1;
        if after.as_ref().is_some_and(|after| !after.is_before(definition)) {
            continue;
        }
        if page.rows.len() < size {
            page.rows.push(Shown { entry: entry.clone(), row_num: at + 1, sight });
        } else {
            more = true;
        }
    }
    if let Some(last) = page.rows.last().filter(|_| more) {
        page.next = Place::of(&last.entry.row.definition).token(&cursor);
    }
    Ok(page)
}

/// A place in the canonical order.
struct Place {
    seq: Option<i32>,
    key: String,
}

impl Place {
    fn of(definition: &Definition) -> Self {
        Place { seq: definition.seq, key: definition.key.to_string() }
    }

    fn read([seq, key]: [String; 2]) -> Result<Self> {
        let seq = if seq.is_empty() { None } else { Some(seq.parse().map_err(|_| page::invalid())?) };
        Ok(Place { seq, key })
    }

    fn token(&self, cursor: &Cursor) -> String {
        cursor.token(&[&self.seq.map(|seq| seq.to_string()).unwrap_or_default(), &self.key])
    }

    fn is_before(&self, definition: &Definition) -> bool {
        let order = |seq: Option<i32>| (seq.is_none(), seq.unwrap_or_default());
        (order(self.seq), self.key.as_str()) < (order(definition.seq), definition.key.as_str())
    }
}
