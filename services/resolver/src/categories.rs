//! Categories, with their counts.

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;

use crate::App;
use crate::cursor::{Cursors, size};
use crate::kept::catalogue;
use crate::sight::sight;

/// Categories a page, where none are asked for and at most.
const PAGE: u32 = 1_000;

/// A page of the categories and their numbers of enabled rows, by name, and the token of the next page.
///
/// # Errors
/// `cursor_invalid`.
pub(crate) async fn categories(
    app: &App,
    caller: &Caller,
    page_size: u32,
    page_token: &str,
) -> Result<(Vec<(String, u64)>, String)> {
    let cursors = Cursors::new(&app.cursor_key, "categories", &[&sight(caller)]);
    let catalogue = catalogue(app, caller).await?;
    let size = size(page_size, PAGE, PAGE);
    let (page, next) = cursors.page_after(&catalogue.shelves, page_token, size, |(name, _)| name)?;
    Ok((page.to_vec(), next))
}
