//! The scripts that write the book: one transaction under the exclusive lock, whatever the write.
//!
//! Each takes the lock, looks, decides, and merges; the new revision is in this process's snapshot before the script
//! answers.

mod batch;
mod import;
mod recommend;
mod restore;
mod row;
mod turn;

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::clock::Clock;
use callbook_domain::key::Key;
use time::OffsetDateTime;

use crate::directory::Directory;

pub use batch::{namespace_clash, twin};
pub use import::{Import, ImportMode, Imported, OnConflict, RefusedLine, import};
pub use recommend::{list_recommended, recommend, unrecommend};
pub use restore::restore;
pub use row::{check, create, delete, patch, put, replace};

/// Who writes, when, and into which book.
#[derive(Clone)]
pub struct Writer {
    /// The book.
    pub directory: Arc<Directory>,
    /// The time of the write.
    pub clock: Clock,
    /// Whose rights count and whose name the history keeps.
    pub caller: Caller,
}

/// What a write of one row gave.
#[derive(Clone, Debug)]
pub struct Written {
    /// The row.
    pub key: Key,
    /// The time that the row now bears.
    pub updated_at: OffsetDateTime,
    /// The directory's new revision.
    pub revision: i64,
    /// The row's new version.
    pub version: i64,
    /// What is odd and was let through.
    pub warnings: Vec<String>,
    /// The columns that a merge named.
    pub fields: Vec<String>,
    /// The fields that no writable column has.
    pub ignored_fields: Vec<String>,
}

/// What a deletion gave.
#[derive(Clone, Debug)]
pub struct Deleted {
    /// Whether a row of the key existed.
    pub deleted: bool,
    /// The directory's new revision, where it did.
    pub revision: Option<i64>,
}

/// What the writer says beside the row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The version that the writer has seen; another stored one refuses the write.
    pub if_match: Option<i64>,
    /// Lets a key through that reads like another.
    pub allow_lookalike: bool,
}
