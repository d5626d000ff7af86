//! The surface against a server that answers what it is told: only what the gateway itself does is looked at.

mod client;
mod fake;

mod book;
mod door;
mod invoke;
mod receipt;
mod upstream;
