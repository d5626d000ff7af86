//! Narrowing against brute force: what a token allows is enumerated, call by call, in a small world.

use std::collections::BTreeSet;

use proptest::collection::{btree_set, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;

const ISSUERS: &[&str] = &["issuer-a", "issuer-b"];
const AUDIENCES: &[&str] = &["exec:1", "exec:2"];
const KEYS: &[&str] = &["A", "A_B", "A_C", "B"];
const PREFIXES: &[&str] = &["", "A", "A_", "B", "A_B"];
const CONTRACTS: &[&str] = &["one", "two", "three"];
const NUMBERS: &[u64] = &[1, 2, 3];

/// One thing that somebody might do with a token.
struct Call {
    key: Key,
    contract: Digest,
    risk: Risk,
    effect: Effect,
    arg: Digest,
    number: u64,
    approved: bool,
    in_url: bool,
}

/// Where, when, for whom, how deep, and whether by somebody who holds no key.
struct Place {
    iss: &'static str,
    sub: &'static str,
    aud: &'static str,
    second: i64,
    depth: u8,
    keyless: bool,
}

/// Whether a scope allows the call. `number` is the call's size and also which call it is.
fn allows(cap: &Cap, call: &Call) -> bool {
    let by_prefix = cap.prefixes.iter().any(|prefix| call.key.as_str().starts_with(prefix.as_str()));
    let by_key = match cap.keys.get(&call.key) {
        Some(Some(pin)) => return_if(*pin == call.contract),
        Some(None) => Some(true),
        None => None,
    };
    by_key.unwrap_or(by_prefix)
        && call.risk <= cap.risk
        && call.effect <= cap.effect
        && cap.body.is_none_or(|body| body == call.arg)
        && cap.max_bytes.is_none_or(|most| call.number <= most)
        && cap.uses.is_none_or(|most| call.number <= most)
        && (call.approved || !cap.owner_gate)
        && (cap.url || !call.in_url)
}

fn return_if(holds: bool) -> Option<bool> {
    Some(holds)
}

fn admits(claims: &Claims, place: &Place) -> bool {
    claims.iss == place.iss
        && claims.sub == place.sub
        && claims.aud.iter().any(|aud| aud == place.aud)
        && place.second < claims.exp
        && place.depth <= claims.del.max
        && (claims.cnf.is_none() || !place.keyless)
}
