//! Owns reading the book: from a question to the rows that fit, the whole catalogue in order, descriptions, the map,
//! and what changes. It writes nothing.
//!
//! Every answer is made from one snapshot and holds what the caller may see and nothing else.

mod ask;
mod categories;
mod describe;
mod list;
mod map;
mod registry;
mod search;
mod signature;
mod stamp;
mod watch;

mod catalogue;
mod cursor;
mod kept;
mod run_now;
mod sight;
mod summary;

mod follow;
mod grpc;
mod store;

use std::sync::Arc;

use callbook_caller::Callers;
use callbook_ranking::Shelf;
use callbook_store::directory::Directory;
use tokio_util::sync::CancellationToken;

pub use follow::follower;
pub use grpc::{Grpc, services};

/// The resolver: what its verbs work with.
pub struct App {
    /// The book.
    pub directory: Arc<Directory>,
    /// Who calls.
    pub callers: Arc<Callers>,
    /// The index that questions are put to; a [`follower`] of the directory keeps it.
    pub index: Arc<Shelf>,
    /// The MAC key of page tokens: the deployment's internal key, the same for all replicas.
    pub cursor_key: Vec<u8>,
    /// Cancelled when the process ends: streams end with it.
    pub stop: CancellationToken,
    catalogues: kept::Kept,
}

impl App {
    /// A resolver over a book that is open.
    pub fn new(
        directory: Arc<Directory>,
        callers: Arc<Callers>,
        index: Arc<Shelf>,
        cursor_key: Vec<u8>,
        stop: CancellationToken,
    ) -> Arc<App> {
        Arc::new(App { directory, callers, index, cursor_key, stop, catalogues: kept::Kept::default() })
    }
}
