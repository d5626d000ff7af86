//! List: every row that planners see, once, in one order.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::row::RowType;
use callbook_store::snapshot::Entry;

use crate::App;
use crate::catalogue::category;
use crate::cursor::{Cursors, size};
use crate::kept::catalogue;
use crate::sight::sight;

/// Rows a page where none are asked for, and at most.
const PAGE: u32 = 50;

/// Which part of the catalogue is wanted.
pub(crate) struct Wanted {
    /// The namespace that the key is or stands below; empty is all.
    pub(crate) namespace: String,
    /// The category, compared exactly; empty is all.
    pub(crate) category: String,
    /// The type.
    pub(crate) row_type: Option<RowType>,
    /// Rows a page; 0 is the default.
    pub(crate) page_size: u32,
    /// The token of the page; empty is the first.
    pub(crate) page_token: String,
}

/// A page of the catalogue.
pub(crate) struct Listed {
    /// The rows.
    pub(crate) rows: Vec<Arc<Entry>>,
    /// All rows under the filters.
    pub(crate) total: usize,
    /// Digest of the whole catalogue.
    pub(crate) stamp: String,
    /// The directory's revision.
    pub(crate) revision: i64,
    /// The token of the next page; empty after the last.
    pub(crate) next: String,
}

/// A page of the caller's catalogue.
///
/// # Errors
/// `invalid_request` for a page of more than 50; `cursor_invalid`; `cursor_stale` once the catalogue or a filter has
/// changed.
pub(crate) async fn list(app: &App, caller: &Caller, wanted: Wanted) -> Result<Listed> {
    if wanted.page_size > PAGE {
        return Err(Fault::new(Reason::InvalidRequest, format!("a page has 1 to {PAGE} rows")).with("field", "limit"));
    }
    let catalogue = catalogue(app, caller).await?;
    let scope: [&str; 5] = [
        &catalogue.stamp,
        &sight(caller),
        &wanted.namespace,
        &wanted.category,
        wanted.row_type.map_or("", RowType::as_str),
    ];
    let cursors = Cursors::new(&app.cursor_key, "list", &scope);
    let offset = cursors.offset(&wanted.page_token)?;
    let rows: Vec<&Arc<Entry>> = catalogue.listed.iter().filter(|entry| wanted.takes(entry)).collect();
    let (page, next) = cursors.page(&rows, offset, size(wanted.page_size, PAGE, PAGE));
    Ok(Listed {
        rows: page.iter().map(|entry| Arc::clone(entry)).collect(),
        total: rows.len(),
        stamp: catalogue.stamp.clone(),
        revision: catalogue.revision,
        next,
    })
}

impl Wanted {
    fn takes(&self, entry: &Entry) -> bool {
        (self.namespace.is_empty() || entry.key().is_under(&self.namespace))
            && (self.category.is_empty() || category(entry) == self.category)
            && self.row_type.is_none_or(|row_type| entry.row.definition.row_type == row_type)
    }
}
