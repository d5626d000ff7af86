//! Owns reading the book: from a question to the rows that fit, the whole catalogue in order, descriptions, the map,
//! and what changes. It writes nothing.
//!
//! Every answer is made from one snapshot and holds what the caller may see and nothing else.

mod ask;
mod list;
mod describe;
mod stamp;
mod map;
mod registry;
mod search;
mod categories;
mod watch;

mod catalogue;
mod summary;
mod cursor;
mod sight;

mod follow;
mod store;
mod grpc;

use std::sync::Arc;

use callbook_caller::Callers;
use callbook_domain::clock::Clock;
use callbook_ranking::Shelf;
use callbook_store::directory::Directory;

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
    /// The time.
    pub clock: Clock,
    /// The MAC key of page tokens: the deployment's internal key, the same for all replicas.
    pub cursor_key: Vec<u8>,
    catalogues: catalogue::Kept,
}

impl App {
    /// A resolver over a book that is open.
    pub fn new(
        directory: Arc<Directory>,
        callers: Arc<Callers>,
        index: Arc<Shelf>,
        clock: Clock,
        cursor_key: Vec<u8>,
    ) -> Arc<App> {
        Arc::new(App { directory, callers, index, clock, cursor_key, catalogues: catalogue::Kept::default() })
    }
}
