//! Import many rows.

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;
use callbook_store::snapshot::Entry;
use callbook_store::write::{self, Import, Imported};

use crate::App;
use crate::write::pool_warnings;

/// How many warnings an answer repeats.
const MAX_WARNINGS: usize = 100;

/// Writes the rows of the text; the answer names pools that nobody serves.
///
/// # Errors
/// As `callbook_store::write::import`.
pub(crate) async fn import(app: &App, caller: &Caller, bytes: Vec<u8>, options: Import) -> Result<Imported> {
    let mut imported = write::import(&app.writer(caller), bytes, options).await?;
    let room = MAX_WARNINGS.saturating_sub(imported.warnings.len());
    if imported.created + imported.replaced > 0 && room > 0 {
        let snapshot = app.directory.snapshot();
        let rows = snapshot.rows().iter().filter(|entry| entry.row.revision == imported.revision);
        let rows: Vec<&Entry> = rows.map(|entry| &**entry).collect();
        imported.warnings.extend(pool_warnings(app, &rows).await.into_iter().take(room));
    }
    Ok(imported)
}
