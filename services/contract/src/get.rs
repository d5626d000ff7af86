//! Get one row.

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;

use crate::App;
use crate::error::not_found;
use crate::sight::Shown;

/// The row, and whether it may be old.
///
/// # Errors
/// `not found` also for a row that does not exist for this caller.
pub(crate) async fn get(app: &App, caller: &Caller, key: &str) -> Result<(Shown, bool)> {
    app.callers.require_catalogue(caller)?;
    let look = app.look().await?;
    let shown = Shown::find(&look.snapshot, caller, key).ok_or_else(not_found)?;
    Ok((shown, look.stale))
}
