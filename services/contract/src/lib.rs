//! Owns the book: writing its rows, their hygiene, history, import and export, the operator's standing answers, and one
//! row rendered as a contract.

mod page;
mod sight;

mod write;

mod get;
mod list;
mod versions;

mod check;
mod export;
mod import;

mod recommend;
mod render;

mod error;
mod store;

pub mod grpc;

use std::sync::Arc;
use std::time::Duration;

use callbook_caller::Callers;
use callbook_domain::caller::Caller;
use callbook_domain::clock::Clock;
use callbook_domain::fault::{Reason, Result};
use callbook_store::directory::Directory;
use callbook_store::snapshot::Snapshot;
use callbook_store::write::Writer;

pub use grpc::services;

/// How long a read waits for the database before it answers from what the process holds.
const PATIENCE: Duration = Duration::from_secs(2);
/// The same where the last look has failed already.
const STALE_PATIENCE: Duration = Duration::from_millis(250);

/// What the verbs work with.
pub struct App {
    /// The book.
    pub directory: Arc<Directory>,
    /// Who calls.
    pub callers: Arc<Callers>,
    /// The time.
    pub clock: Clock,
}

/// The book at one moment, and whether that moment may have passed because the database does not answer.
struct Look {
    snapshot: Arc<Snapshot>,
    stale: bool,
}

impl App {
    /// The book as the database has it now; without a database as it was last known.
    async fn look(&self) -> Result<Look> {
        let patience = if self.directory.is_stale() { STALE_PATIENCE } else { PATIENCE };
        match tokio::time::timeout(patience, self.directory.fresh()).await {
            Ok(Ok(snapshot)) => Ok(Look { snapshot, stale: false }),
            Ok(Err(fault)) if fault.reason() != Reason::DatabaseUnavailable => Err(fault),
            Ok(Err(_)) | Err(_) => Ok(Look { snapshot: self.directory.snapshot(), stale: true }),
        }
    }

    fn writer(&self, caller: &Caller) -> Writer {
        Writer { directory: self.directory.clone(), clock: self.clock.clone(), caller: caller.clone() }
    }
}
