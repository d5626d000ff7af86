//! The gate's service on a real Postgres.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod common;
mod issuer;
mod keys;
mod lists;
mod minting;
mod narrowing;
mod principals;
mod revoking;
