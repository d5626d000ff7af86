//! The safe way out: everything that Callbook sends to an upstream leaves through here.
//!
//! A URL is judged before a name is looked up (`address`), the answer of the lookup before a connection is made
//! (`dns`), and the connection belongs to one secret and one origin (`client`). `send` makes exactly one request and
//! reads a bounded answer. Secrets come from `secret`, leave texts again through `redact`, and a dead one is
//! remembered by `breaker`. Nothing here reads rows, tokens or SQL.

pub mod address;
pub mod answer;
pub mod breaker;
pub mod client;
pub mod dns;
pub mod failure;
pub mod redact;
pub mod secret;
pub mod send;

mod body;
mod disguise;

#[cfg(test)]
mod tests;

pub use address::{Origin, Policy, Refusal, check_address, check_url};
pub use answer::{Answered, json_bytes, text};
pub use breaker::{Breaker, Gate};
pub use client::Egress;
pub use failure::{Failed, Phase, Sent};
pub use redact::Redactor;
pub use secret::{Missing, Secrets};
pub use send::{Limits, Outbound, Redirects, send};
