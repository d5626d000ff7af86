//! Capability tokens: what a holder may run, how and for how long. Pure rules; time, keys and expectations are
//! arguments. A token is a chain of signed links, root first; every link is narrower than the one before it, and any
//! holder of a key makes the next one without asking the server.

mod digest;
mod jwk;
mod claims;
mod cap;
mod fields;
mod chain;
pub mod narrow;
mod verify;
mod proof;
mod scope;
pub mod mint;
#[cfg(test)]
mod tests;

use crate::fault::{Fault, Reason};

pub use cap::{Cap, Prefix};
pub use chain::{Chain, Header, Link, MAX_LINK, MAX_LINKS, Sealed, parse};
pub use claims::{Claims, Delegation, MAX_DEPTH};
pub use digest::Digest;
pub use jwk::{Keys, PrivateKey, PublicKey};
pub use proof::{POP_WINDOW_SECONDS, Proof, ProofInput, argument_hash};
pub use scope::{Lineage, LineageLink};
pub use verify::{Expect, SKEW_SECONDS, Verified, check_time, inspect, inspect_headers, prove, verify};

/// A claim that breaks a rule.
fn invalid(claim: &str, rule: &str) -> Fault {
    Fault::new(Reason::ClaimsInvalid, format!("the claim `{claim}` {rule}")).with("claim", claim)
}
