//! The surface against a server that answers what it is told: only what the gateway itself does is looked at.
#![expect(clippy::unwrap_used, reason = "a test may stop at what it did not expect")]
#![allow(unreachable_pub, reason = "one crate of modules")]

mod client;
mod fake;

mod book;
mod door;
mod invoke;
mod receipt;
mod share;
mod tokens;
mod upstream;
