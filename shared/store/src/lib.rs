//! Owns the schema, the connections, and the book: its snapshot, its change feed and the scripts that write it.

pub mod directory;
pub mod snapshot;

pub mod write;
pub mod history;

pub mod fault;
pub mod feed;
pub mod lock;
pub mod own;
pub mod pool;
pub mod principal;
mod stored;
mod close;
mod stage;
