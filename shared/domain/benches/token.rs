//! What it costs to verify a token that was never seen: signatures, strict parsing and every rule.
#![allow(clippy::unwrap_used, missing_docs, reason = "a bench that cannot go on should say where")]

use std::collections::BTreeSet;
use std::hint::black_box;

use callbook_domain::invocation::uuid_at;
use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk};
use callbook_domain::token::{
    Cap, Claims, Delegation, Digest, Expect, Keys, Prefix, PrivateKey, Proof, ProofInput, inspect, mint, parse, verify,
};
use criterion::{Criterion, criterion_group, criterion_main};
use time::{Duration, OffsetDateTime};

const NOW: i64 = 1_796_000_000;

fn now() -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(NOW).unwrap()
}

fn key(seed: u8) -> PrivateKey {
    PrivateKey::from_seed(&[seed; 32])
}

fn root(holder: Option<&PrivateKey>) -> String {
    let claims = Claims {
        iss: "callbook".into(),
        sub: "agent:alice".into(),
        aud: vec!["callbook".into()],
        jti: uuid_at(now()),
        iat: NOW,
        exp: NOW + 600,
        cnf: holder.map(PrivateKey::public),
        del: Delegation { d: 0, max: if holder.is_some() { 3 } else { 0 } },
        par: None,
        cap: Cap {
            keys: (0..8).map(|n| (Key::parse(&format!("TEAM_{n}")).unwrap(), Some(Digest::of([n])))).collect(),
            prefixes: BTreeSet::from([Prefix::parse("TEAM_").unwrap()]),
            risk: Risk::Low,
            effect: Effect::Read,
            body: None,
            max_bytes: Some(4_096),
            uses: Some(5),
            owner_gate: false,
            url: false,
        },
    };
    mint::root(&claims, &key(1)).unwrap()
}

fn derived(token: &str, by: &PrivateKey, to: &PrivateKey) -> String {
    let parent = parse(token).unwrap().last().unwrap().peek().unwrap();
    mint::derived(token, &mint::child(&parent, uuid_at(now()), now(), to.public()), by).unwrap()
}

fn token(criterion: &mut Criterion) {
    let mut keys = Keys::default();
    keys.add(key(1).public());
    let expect = Expect { audience: "callbook", iss: "callbook", now: now(), max_ttl: Duration::days(7) };
    let bearer = root(None);
    criterion.bench_function("one link", |bench| {
        bench.iter(|| inspect(black_box(&bearer), &keys, &expect).unwrap());
    });
    let chain = derived(&derived(&root(Some(&key(2))), &key(2), &key(3)), &key(3), &key(4));
    let arg = Digest::of("null");
    let proof = Proof {
        ath: Proof::ath(&chain),
        aud: "callbook".into(),
        iat: NOW,
        jti: "call-1".into(),
        key: Key::parse("TEAM_1").unwrap(),
        arg,
    };
    let proof = proof.sign(&key(4));
    criterion.bench_function("three links with a proof", |bench| {
        let input = ProofInput { text: &proof, key: "TEAM_1", arg };
        bench.iter(|| verify(black_box(&chain), &keys, &expect, Some(&input)).unwrap());
    });
}

criterion_group!(benches, token);
criterion_main!(benches);
