//! The catalogues that are kept from one listing to the next.

use std::collections::HashMap;
use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use tokio::sync::Mutex;

use crate::App;
use crate::catalogue::Catalogue;
use crate::sight::sight;

/// Of how many different sights the catalogues are kept.
const KEPT: usize = 16;

/// Catalogues of the newest snapshot by sight. Sorting and hashing 100,000 rows takes longer than answering from them.
#[derive(Debug, Default)]
pub(crate) struct Kept(Mutex<(i64, HashMap<String, Arc<Catalogue>>)>);

/// What the caller sees of the snapshot that is held now. Callers that come while it is made wait for one making.
///
/// # Errors
/// `internal` where the making failed.
pub(crate) async fn catalogue(app: &App, caller: &Caller) -> Result<Arc<Catalogue>> {
    let mut kept = app.catalogues.0.lock().await;
    let snapshot = app.directory.snapshot();
    if kept.0 != snapshot.revision {
        *kept = (snapshot.revision, HashMap::new());
    }
    let sight = sight(caller);
    if let Some(found) = kept.1.get(&sight) {
        return Ok(found.clone());
    }
    let caller = caller.clone();
    let made = tokio::task::spawn_blocking(move || Arc::new(Catalogue::of(&snapshot, &caller)))
        .await
        .map_err(|_| Fault::new(Reason::Internal, "the catalogue could not be put in order"))?;
    if kept.1.len() >= KEPT {
        kept.1.clear();
    }
    kept.1.insert(sight, made.clone());
    Ok(made)
}
