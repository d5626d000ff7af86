//! Registry: enabled rows without test-shaped keys, those that planners do not see too.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;
use callbook_store::snapshot::Entry;

use crate::App;
use crate::catalogue::category as category_of;
use crate::cursor::{Cursors, size};
use crate::kept::catalogue;
use crate::sight::sight;

/// Rows a page where none are asked for, and at most.
const PAGE: (u32, u32) = (100, 500);

/// A page of the registry.
pub(crate) struct Registered {
    /// The rows, by category and then key.
    pub(crate) rows: Vec<Arc<Entry>>,
    /// All rows under the filter.
    pub(crate) count: usize,
    /// Digest of the caller's catalogue.
    pub(crate) stamp: String,
    /// The token of the next page; empty after the last.
    pub(crate) next: String,
}

/// A page of the registry, of one category or of all where that is empty.
///
/// # Errors
/// `cursor_invalid`; `cursor_stale` once the registry or the filter has changed.
pub(crate) async fn registry(
    app: &App,
    caller: &Caller,
    category: &str,
    page_size: u32,
    page_token: &str,
) -> Result<Registered> {
    let catalogue = catalogue(app, caller).await?;
    let cursors = Cursors::new(&app.cursor_key, "registry", &[&catalogue.registry_stamp, &sight(caller), category]);
    let offset = cursors.offset(page_token)?;
    // The rows of one category stand together.
    let rows = &catalogue.registered;
    let from = rows.partition_point(|entry| category_of(entry) < category);
    let to = rows.partition_point(|entry| category_of(entry) <= category);
    let rows = if category.is_empty() { &rows[..] } else { &rows[from..to] };
    let (page, next) = cursors.page(rows, offset, size(page_size, PAGE.0, PAGE.1));
    Ok(Registered { rows: page.to_vec(), count: rows.len(), stamp: catalogue.stamp.clone(), next })
}
