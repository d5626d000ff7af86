//! The product through its front door.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod book_history;
mod book_hygiene;
mod book_keys;
mod book_reach;
mod book_read;
mod book_write;
mod calls_again;
mod crash;
mod idempotency;
mod import;
mod catalogue;
mod compose;
mod docs;
mod replica;
mod import_load;
mod walk_grpc;
mod invocations;
mod layout;
mod nothing_lost;
mod outage;
mod principals;
mod read_mode;
mod receipts;
mod row_moves;
mod safe_call_args;
mod safe_call_auth;
mod safe_call_breaker;
mod safe_call_egress;
mod odd_upstream;
mod safe_call_templates;
mod sentinel;
mod third_party;
mod walk;
