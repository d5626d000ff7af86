//! The product through its front door.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod book_history;
mod book_hygiene;
mod book_keys;
mod book_reach;
mod book_read;
mod book_write;
mod idempotency;
mod import;
mod catalogue;
mod layout;
mod nothing_lost;
mod read_mode;
mod row_moves;
mod walk;
