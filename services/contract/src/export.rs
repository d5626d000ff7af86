//! Export rows in the shape that an import takes.

use std::sync::Arc;

use callbook_domain::caller::{Caller, May};
use callbook_domain::fault::Result;
use callbook_store::snapshot::Snapshot;
use serde_json::Value;

use crate::App;
use crate::list::Filter;

/// How large a chunk grows before it goes out, in bytes.
const CHUNK: usize = 64 * 1024;

/// The rows that the caller may edit, whole, in the canonical order: importing them anew gives the same hashes.
///
/// # Errors
/// `unauthorized`; `forbidden` for a caller that may edit nothing; `database_unavailable`, because a copy of an old
/// book would be taken for the book.
pub(crate) async fn export(app: &App, caller: &Caller, filter: Filter) -> Result<Export> {
    caller.require_credential()?;
    let edits = match caller {
        Caller::Owner => true,
        Caller::Principal(principal) => principal.grants.iter().any(|grant| grant.may == May::Edit),
        Caller::Holder(_) | Caller::Anonymous => false,
    };
    if !edits {
        caller.require(May::Edit, None)?;
    }
    let snapshot = app.directory.fresh().await?;
    Ok(Export { snapshot, at: 0, caller: caller.clone(), filter })
}

/// The text, chunk by chunk, whole lines each.
pub(crate) struct Export {
    snapshot: Arc<Snapshot>,
    at: usize,
    caller: Caller,
    filter: Filter,
}

impl Iterator for Export {
    type Item = Vec<u8>;

    fn next(&mut self) -> Option<Vec<u8>> {
        let mut chunk = Vec::new();
        while let Some(entry) = self.snapshot.rows().get(self.at).filter(|_| chunk.len() < CHUNK) {
            self.at += 1;
            let definition = &entry.row.definition;
            if self.filter.takes(definition) && self.caller.may(May::Edit, Some(&definition.key)) {
                let mut columns = definition.to_json();
                columns.retain(|_, value| !value.is_null());
                chunk.extend_from_slice(Value::Object(columns).to_string().as_bytes());
                chunk.push(b'\n');
            }
        }
        (!chunk.is_empty()).then_some(chunk)
    }
}
