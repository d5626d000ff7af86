//! One issuer, two holders and a call, shared by the tests of tokens.

mod attack;
mod authority;
mod chain;
mod claims;
mod encoding;
mod vector;

use std::collections::BTreeMap;

use serde_json::Value;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use super::*;
use crate::fault::Result;
use crate::key::Key;
use crate::row::{Effect, Risk};

const ISS: &str = "https://callbook.example.test";
const AUDIENCE: &str = "exec:test";
const NOW: i64 = 1_796_000_000;

fn at(seconds: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(seconds).unwrap()
}

fn issuer() -> PrivateKey {
    PrivateKey::from_seed(&[1; 32])
}

fn alice() -> PrivateKey {
    PrivateKey::from_seed(&[2; 32])
}

fn bob() -> PrivateKey {
    PrivateKey::from_seed(&[3; 32])
}

fn keys() -> Keys {
    let mut keys = Keys::default();
    keys.add(issuer().public());
    keys
}

fn expect() -> Expect<'static> {
    Expect { audience: AUDIENCE, iss: ISS, now: at(NOW), max_ttl: Duration::seconds(900) }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn jti(number: u128) -> Uuid {
    Uuid::from_u128(0x0193_a000_0000_7000_8000_0000_0000_0000 + number)
}

/// A root for Alice: two keys, one of them pinned.
fn root_claims() -> Claims {
    Claims {
        iss: ISS.into(),
        sub: "agent:alice".into(),
        aud: vec![AUDIENCE.into(), "exec:other".into()],
        jti: jti(1),
        iat: NOW,
        exp: NOW + 600,
        cnf: Some(alice().public()),
        del: Delegation { d: 0, max: 2 },
        par: None,
        cap: Cap {
            keys: BTreeMap::from([(key("FORECAST"), Some(Digest::of("contract"))), (key("ISSUE"), None)]),
            prefixes: Default::default(),
            risk: Risk::Low,
            effect: Effect::Read,
            body: None,
            max_bytes: Some(4_096),
            uses: Some(5),
            owner_gate: false,
            url: false,
        },
    }
}

/// A root without a holder.
fn bearer_claims() -> Claims {
    Claims { cnf: None, del: Delegation { d: 0, max: 0 }, ..root_claims() }
}

fn root() -> String {
    mint::root(&root_claims(), &issuer()).unwrap()
}

/// The claims of a child for Bob that allows all that its parent allows.
fn child_claims(token: &str) -> Claims {
    let parent = parse(token).unwrap().last().unwrap().peek().unwrap();
    mint::child(&parent, jti(2), at(NOW), bob().public())
}

/// A link with any header and payload, signed by anybody: what an attacker can write.
fn forged(header: Value, payload: &str, signer: &PrivateKey) -> String {
    signer.sign(&header, payload)
}

fn root_header() -> Value {
    serde_json::json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": issuer().public().thumbprint()})
}

fn derived_header() -> Value {
    serde_json::json!({"alg": "EdDSA", "typ": "cap+jwt"})
}

/// A root whose claims were edited as text before the issuer signed it.
fn edited(from: &str, to: &str) -> String {
    let payload = root_claims().canonical();
    assert!(payload.contains(from), "{from} stands in {payload}");
    forged(root_header(), &payload.replacen(from, to, 1), &issuer())
}

/// A child of [`root`], changed by the test and signed by Alice, who is free to sign anything.
fn child(change: impl FnOnce(&mut Claims)) -> String {
    child_of(&root(), change)
}

fn child_of(parent: &str, change: impl FnOnce(&mut Claims)) -> String {
    let mut claims = child_claims(parent);
    change(&mut claims);
    format!("{parent}~{}", forged(derived_header(), &claims.canonical(), &alice()))
}

fn inspected(token: &str) -> Result<Chain> {
    inspect(token, &keys(), &expect())
}

/// The literal error of a token that is refused.
fn refusal(token: &str) -> String {
    inspected(token).unwrap_err().error_text()
}

/// A proof for a call of `FORECAST` without arguments.
fn proof(token: &str) -> Proof {
    Proof {
        ath: Proof::ath(token),
        aud: AUDIENCE.into(),
        iat: NOW,
        jti: "call-1".into(),
        key: key("FORECAST"),
        arg: Digest::of("null"),
    }
}

/// Verifies a token with a proof for such a call.
fn proven(token: &str, proof: &str, expect: &Expect<'_>) -> Result<Verified> {
    let input = ProofInput { text: proof, key: "FORECAST", arg: Digest::of("null") };
    verify(token, &keys(), expect, Some(&input))
}
