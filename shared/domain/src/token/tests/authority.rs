//! Narrowing against brute force: what a token allows is enumerated, call by call, in a small world.

use std::sync::LazyLock;

use proptest::collection::{btree_map, btree_set};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};

use super::*;

const ISSUERS: &[&str] = &["issuer-a", "issuer-b"];
const AUDIENCES: &[&str] = &["exec:1", "exec:2"];
const KEYS: &[&str] = &["A", "A_B", "A_C", "B"];
const PREFIXES: &[&str] = &["", "A", "A_", "B", "A_B"];
const CONTRACTS: &[&str] = &["one", "two"];
const BODIES: &[&str] = &["x", "y"];

/// One thing that somebody might do with a token.
struct Call {
    key: Key,
    contract: Digest,
    risk: Risk,
    effect: Effect,
    arg: Digest,
    bytes: u64,
    /// Which call under the token it is, from 1.
    nth: u64,
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

fn allows(cap: &Cap, call: &Call) -> bool {
    let is_covered = match cap.keys.get(&call.key) {
        Some(Some(pin)) => *pin == call.contract,
        Some(None) => true,
        None => cap.prefixes.iter().any(|prefix| call.key.as_str().starts_with(prefix.as_str())),
    };
    is_covered
        && call.risk <= cap.risk
        && call.effect <= cap.effect
        && (cap.body.is_none() || cap.body == Some(call.arg))
        && cap.max_bytes.is_none_or(|most| call.bytes <= most)
        && cap.uses.is_none_or(|most| call.nth <= most)
        && (call.approved || !cap.owner_gate)
        && (cap.url || !call.in_url)
}

fn admits(claims: &Claims, place: &Place) -> bool {
    claims.iss == place.iss
        && claims.sub == place.sub
        && claims.aud.iter().any(|aud| aud == place.aud)
        && place.second < claims.exp
        && place.depth <= claims.del.max
        && (claims.cnf.is_none() || !place.keyless)
}

/// Every value of every dimension that a limit can tell apart, and one beyond all limits. Each prefix has a key of its
/// own that no list names, because a prefix reaches keys without end.
fn calls() -> Vec<Call> {
    let beyond = PREFIXES.iter().map(|prefix| format!("{prefix}ZZ"));
    let keys: Vec<Key> = KEYS.iter().map(|key| (*key).to_owned()).chain(beyond).map(|text| key(&text)).collect();
    let flags = [false, true];
    let mut calls = Vec::new();
    for (key, contract, risk) in product(&keys, &["one", "two", "new"], Risk::ALL) {
        for (effect, arg, bytes) in product(Effect::ALL, &["x", "y", "z"], &[1, 2, 3]) {
            for (nth, approved, in_url) in product(&[1, 2, 3], &flags, &flags) {
                let (contract, arg) = (Digest::of(contract), Digest::of(arg));
                calls.push(Call { key: key.clone(), contract, risk, effect, arg, bytes, nth, approved, in_url });
            }
        }
    }
    calls
}

fn places() -> Vec<Place> {
    let mut places = Vec::new();
    for (iss, sub, aud) in product(ISSUERS, ISSUERS, AUDIENCES) {
        for (second, depth, keyless) in product(&[0, 1, 2], &[0, 1, 2, 3], &[false, true]) {
            places.push(Place { iss, sub, aud, second, depth, keyless });
        }
    }
    places
}

fn product<A: Clone, B: Clone, C: Clone>(a: &[A], b: &[B], c: &[C]) -> Vec<(A, B, C)> {
    let pairs = a.iter().flat_map(|a| b.iter().map(move |b| (a.clone(), b.clone())));
    pairs.flat_map(|(a, b)| c.iter().map(move |c| (a.clone(), b.clone(), c.clone()))).collect()
}

fn a_cap() -> impl Strategy<Value = Cap> {
    let digest = |names: &'static [&'static str]| option::of(select(names).prop_map(Digest::of));
    let keys = btree_map(select(KEYS).prop_map(key), digest(CONTRACTS), 0..3);
    let prefixes = btree_set(select(PREFIXES).prop_map(|text| Prefix::parse(text).unwrap()), 0..3);
    let limit = || option::of(1..3_u64);
    let ceilings = (select(Risk::ALL), select(Effect::ALL), digest(BODIES));
    let covering = (keys, prefixes).prop_filter("covers something", |(k, p)| !k.is_empty() || !p.is_empty());
    (covering, ceilings, limit(), limit(), any::<(bool, bool)>()).prop_map(
        |((keys, prefixes), (risk, effect, body), max_bytes, uses, (owner_gate, url))| Cap {
            keys,
            prefixes,
            risk,
            effect,
            body,
            max_bytes,
            uses,
            owner_gate,
            url,
        },
    )
}

fn some_claims() -> impl Strategy<Value = Claims> {
    let aud = subsequence(AUDIENCES, 1..=2).prop_map(|names| names.into_iter().map(str::to_owned).collect());
    let cnf = option::of(Just(bob().public()));
    (select(ISSUERS), select(ISSUERS), aud, 1..3_i64, 0..=MAX_DEPTH, cnf, a_cap()).prop_map(
        |(iss, sub, aud, exp, max, cnf, cap)| Claims {
            iss: iss.into(),
            sub: sub.into(),
            aud,
            exp,
            del: Delegation { d: 0, max },
            cnf,
            cap,
            ..root_claims()
        },
    )
}

/// The parent with a few of its fields taken from other claims.
fn changed(parent: &Claims, other: &Claims, change: &[bool; 14]) -> Claims {
    let mut child = parent.clone();
    let (cap, new) = (&mut child.cap, other.cap.clone());
    let mut at = change.iter();
    let mut put = |set: &mut dyn FnMut()| {
        if at.next().copied().unwrap_or_default() {
            set();
        }
    };
    put(&mut || cap.keys = new.keys.clone());
    put(&mut || cap.prefixes = new.prefixes.clone());
    put(&mut || (cap.keys, cap.prefixes) = (new.keys.clone(), new.prefixes.clone()));
    put(&mut || cap.risk = new.risk);
    put(&mut || cap.effect = new.effect);
    put(&mut || cap.body = new.body);
    put(&mut || cap.max_bytes = new.max_bytes);
    put(&mut || cap.uses = new.uses);
    put(&mut || (cap.owner_gate, cap.url) = (new.owner_gate, new.url));
    put(&mut || child.iss.clone_from(&other.iss));
    put(&mut || child.sub.clone_from(&other.sub));
    put(&mut || child.aud.clone_from(&other.aud));
    put(&mut || (child.exp, child.del) = (other.exp, other.del));
    put(&mut || child.cnf = other.cnf);
    child
}

static CALLS: LazyLock<Vec<Call>> = LazyLock::new(calls);
static PLACES: LazyLock<Vec<Place>> = LazyLock::new(places);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_child_is_accepted_exactly_when_it_allows_nothing_that_its_parent_does_not(
        parent in some_claims(),
        other in some_claims(),
        change in prop::array::uniform14(prop::bool::weighted(0.15)),
    ) {
        let child = changed(&parent, &other, &change);
        prop_assume!(!child.cap.keys.is_empty() || !child.cap.prefixes.is_empty());
        let in_scope = CALLS.iter().all(|call| !allows(&child.cap, call) || allows(&parent.cap, call));
        let in_place = PLACES.iter().all(|place| !admits(&child, place) || admits(&parent, place));
        let answer = narrow::check(&parent, &child);
        prop_assert_eq!(answer.is_ok(), in_scope && in_place, "{:?}", answer);
        prop_assert_eq!(narrow::check_cap(&parent.cap, &child.cap).is_ok(), in_scope);
    }
}
