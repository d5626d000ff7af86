//! The attacks of `spec/tokens.md` that need no database, each a test with its name.

use serde_json::json;

use super::*;
use crate::fault::Reason;

#[test]
fn alg_none_and_alg_confusion() {
    let payload = root_claims().canonical();
    for alg in [json!("none"), json!("HS256"), json!("ES256"), json!("eddsa"), json!(null), json!(["EdDSA"])] {
        let mut header = root_header();
        header["alg"] = alg;
        assert_eq!(refusal(&forged(header, &payload, &issuer())), "alg_not_allowed");
    }
    assert_eq!(refusal(&forged(json!({"typ": "cap+jwt"}), &payload, &issuer())), "alg_not_allowed");
    let unsigned = root().rsplit_once('.').unwrap().0.to_owned() + ".";
    assert_eq!(refusal(&unsigned), "bad_signature");
}

#[test]
fn embedded_and_remote_keys_and_crit() {
    let mallory = PrivateKey::from_seed(&[9; 32]);
    let members = [
        ("jwk", mallory.public().jwk()),
        ("jku", json!("https://evil.test/jwks")),
        ("x5u", json!("https://evil.test/x5u")),
        ("x5c", json!(["AAAA"])),
        ("crit", json!(["exp"])),
        ("b64", json!(false)),
        ("cty", json!("JWT")),
    ];
    for (name, value) in members {
        let mut header = root_header();
        header[name] = value;
        let token = forged(header, &root_claims().canonical(), &mallory);
        assert_eq!(refusal(&token), "header_param_refused", "{name}");
    }
    let twice = r#"{"alg":"EdDSA","typ":"cap+jwt","kid":"a","kid":"b"}"#;
    let twice = data_encoding::BASE64URL_NOPAD.encode(twice.as_bytes());
    assert_eq!(refusal(&format!("{twice}.e30.AAAA")), "header_param_refused");
}

#[test]
fn kid_injection() {
    for kid in ["../../etc/passwd", "x' OR '1'='1", "https://evil.test/key", "", "\u{0}"] {
        let header = json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": kid});
        assert_eq!(refusal(&forged(header, &root_claims().canonical(), &issuer())), "kid_unknown");
    }
    let header = json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": 1});
    assert_eq!(refusal(&forged(header, &root_claims().canonical(), &issuer())), "header_param_refused");
    let nobody = forged(derived_header(), &root_claims().canonical(), &issuer());
    assert_eq!(refusal(&nobody), "bad_signature", "a root without kid has no key");
}

#[test]
fn cross_type_use() {
    for typ in ["JWT", "at+jwt", "receipt+jwt", "cap-pop+jwt", "CAP+JWT", "application/cap+jwt"] {
        let mut header = root_header();
        header["typ"] = json!(typ);
        assert_eq!(refusal(&forged(header, &root_claims().canonical(), &issuer())), "typ_wrong");
    }
    let token = root();
    let proof = proof(&token).sign(&alice());
    assert_eq!(refusal(&proof), "typ_wrong", "a proof is no token");
    let as_proof = proven(&token, &token, &expect()).unwrap_err();
    assert_eq!(as_proof.reason(), Reason::PopInvalid, "a token is no proof");
}

#[test]
fn duplicate_and_float_claims() {
    for (from, to) in [
        ("\"iss\":", "\"exp\":9999999999,\"iss\":"),
        ("\"risk\":\"low\"", "\"risk\":\"low\",\"ri\\u0073k\":\"high\""),
        ("\"exp\":1796000600", "\"exp\":1796000600.0"),
        ("\"exp\":1796000600", "\"exp\":1.7960006e9"),
        ("\"exp\":1796000600", "\"exp\":1796000600e0"),
        ("\"iat\":1796000000", "\"iat\":-0"),
        ("\"uses\":5", "\"uses\":-1"),
        ("\"uses\":5", "\"uses\":0"),
        ("\"uses\":5", "\"uses\":5.5"),
        ("\"uses\":5", "\"uses\":null"),
        ("\"uses\":5", "\"uses\":9007199254740992"),
        ("\"max_bytes\":4096", "\"max_bytes\":\"4096\""),
    ] {
        assert_eq!(refusal(&edited(from, to)), "claims_invalid", "{to}");
    }
}

#[test]
fn clock_skew_both_ways() {
    let token = mint::root(&bearer_claims(), &issuer()).unwrap();
    let answer = |now| inspect(&token, &keys(), &Expect { now: at(now), ..expect() }).map_err(|f| f.error_text());
    assert_eq!(answer(NOW - SKEW_SECONDS - 1).unwrap_err(), "iat_in_future");
    assert!(answer(NOW - SKEW_SECONDS).is_ok(), "the issuer's clock is a little ahead");
    assert!(answer(NOW + 599).is_ok());
    assert_eq!(answer(NOW + 600).unwrap_err(), "expired", "an end is an end");
    let token = root();
    for (age, good) in [(-31, false), (-30, true), (30, true), (31, false)] {
        let made = Proof { iat: NOW + 100 - age, ..proof(&token) }.sign(&alice());
        let answer = proven(&token, &made, &Expect { now: at(NOW + 100), ..expect() });
        assert_eq!(answer.is_ok(), good, "{age}");
    }
    let long = Expect { max_ttl: Duration::seconds(599), ..expect() };
    assert_eq!(inspect(&token, &keys(), &long).unwrap_err().error_text(), "ttl_too_long");
}

#[test]
fn replay_at_another_executor() {
    let token = root();
    let elsewhere = Expect { audience: "exec:prod", ..expect() };
    assert_eq!(inspect(&token, &keys(), &elsewhere).unwrap_err().error_text(), "audience_bound:exec:test,exec:other");
    let made = proof(&token).sign(&alice());
    let verified = proven(&token, &made, &expect()).unwrap();
    assert_eq!(verified.proof.as_deref(), Some("call-1"));
    let other = Expect { audience: "exec:other", ..expect() };
    assert_eq!(proven(&token, &made, &other).unwrap_err().error_text(), "pop_invalid", "the token would do there");
    let foreign = Expect { iss: "https://other.test", ..expect() };
    assert_eq!(inspect(&token, &keys(), &foreign).unwrap_err().error_text(), "claims_invalid");
}

#[test]
fn proof_for_other_arguments_key_token_or_holder() {
    let token = root();
    let changes: [fn(&mut Proof); 6] = [
        |proof| proof.arg = Digest::of("{}"),
        |proof| proof.key = key("ISSUE"),
        |proof| proof.ath = Digest::of("another token"),
        |proof| proof.aud = "exec:other".into(),
        |proof| proof.jti = String::new(),
        |proof| proof.jti = "ü".into(),
    ];
    for change in changes {
        let mut made = proof(&token);
        change(&mut made);
        assert_eq!(proven(&token, &made.sign(&alice()), &expect()).unwrap_err().error_text(), "pop_invalid");
    }
    let good = proof(&token).sign(&alice());
    assert_eq!(proven(&token, &proof(&token).sign(&bob()), &expect()).unwrap_err().error_text(), "pop_invalid");
    assert_eq!(verify(&token, &keys(), &expect(), None).unwrap_err().error_text(), "pop_required");
    let longer = child(|_| {});
    assert_eq!(proven(&longer, &good, &expect()).unwrap_err().error_text(), "pop_invalid", "of the parent's holder");
    let bearer = mint::root(&bearer_claims(), &issuer()).unwrap();
    assert_eq!(proven(&bearer, &good, &expect()).unwrap_err().error_text(), "pop_invalid", "nobody to prove anything");
}

#[test]
fn widening_of_every_field() {
    let gated =
        Claims { cap: Cap { owner_gate: true, body: Some(Digest::of("{}")), ..root_claims().cap }, ..root_claims() };
    let parent = mint::root(&gated, &issuer()).unwrap();
    type Change = Box<dyn Fn(&mut Claims)>;
    let changes: Vec<(&str, Change)> = vec![
        ("iss", Box::new(|c| c.iss = "https://other.test".into())),
        ("sub", Box::new(|c| c.sub = "agent:mallory".into())),
        ("aud", Box::new(|c| c.aud.push("exec:prod".into()))),
        ("exp", Box::new(|c| c.exp += 1)),
        ("del", Box::new(|c| c.del.max = 3)),
        ("keys", Box::new(|c| c.cap.keys.extend([(key("REFUND"), None)]))),
        ("prefixes", Box::new(|c| c.cap.prefixes.extend(Prefix::parse("FORECAST")))),
        ("pin", Box::new(|c| c.cap.keys.extend([(key("FORECAST"), None)]))),
        ("pin", Box::new(|c| c.cap.keys.extend([(key("FORECAST"), Some(Digest::of("other")))]))),
        ("risk", Box::new(|c| c.cap.risk = Risk::High)),
        ("effect", Box::new(|c| c.cap.effect = Effect::Write)),
        ("body", Box::new(|c| c.cap.body = Some(Digest::of("[]")))),
        ("max_bytes", Box::new(|c| c.cap.max_bytes = Some(4_097))),
        ("uses", Box::new(|c| c.cap.uses = Some(6))),
        ("owner_gate", Box::new(|c| c.cap.owner_gate = false)),
    ];
    for (field, change) in changes {
        assert_eq!(refusal(&child_of(&parent, &change)), format!("widened:{field}"));
        let mut claims = child_claims(&parent);
        change(&mut claims);
        let refused = mint::derived(&parent, &claims, &alice()).unwrap_err().error_text();
        assert_eq!(refused, format!("widened:{field}"), "a client is told before it sends");
    }
    assert!(inspected(&child_of(&parent, |_| {})).is_ok());
    assert_eq!(refusal(&child(|c| c.cap.url = true)), "claims_invalid", "no holder's token travels in a URL");
}

#[test]
fn dropped_constraint() {
    assert_eq!(refusal(&child(|c| c.cap.max_bytes = None)), "widened:max_bytes");
    assert_eq!(refusal(&child(|c| c.cap.uses = None)), "widened:uses");
    assert_eq!(refusal(&child(|c| c.cnf = None)), "claims_invalid");
    let pinned_under_prefix = |c: &mut Claims| c.cap.prefixes = [Prefix::parse("FORE").unwrap()].into();
    let mut claims = root_claims();
    pinned_under_prefix(&mut claims);
    let parent = mint::root(&claims, &issuer()).unwrap();
    let dropped = child_of(&parent, |c| c.cap.keys.retain(|key, _| key.as_str() != "FORECAST"));
    assert_eq!(refusal(&dropped), "widened:pin", "a prefix reaches the key without its pin");
    for member in ["\"risk\":\"low\",", "\"effect\":\"read\","] {
        assert_eq!(refusal(&edited(member, "")), "claims_invalid");
    }
    assert_eq!(refusal(&edited("\"risk\"", "\"only_on_tuesdays\":true,\"risk\"")), "claims_unknown");
    assert_eq!(refusal(&edited("\"iss\"", "\"nbf\":1,\"iss\"")), "claims_unknown");
}

#[test]
fn grant_swap() {
    let other =
        mint::root(&Claims { jti: jti(9), cap: Cap { uses: None, ..root_claims().cap }, ..root_claims() }, &issuer());
    let (_, link) = child(|_| {}).split_once('~').map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert_eq!(refusal(&format!("{}~{link}", other.unwrap())), "chain_broken");
    assert_eq!(refusal(&format!("{}~{}", root(), root())), "chain_broken", "the same link twice");
    assert_eq!(refusal(&link), "bad_signature", "a child alone");
    assert_eq!(refusal(&format!("{link}~{}", root())), "bad_signature", "a chain reversed");
    let by_bob = forged(derived_header(), &child_claims(&root()).canonical(), &bob());
    assert_eq!(refusal(&format!("{}~{by_bob}", root())), "bad_signature");
    let bearer = mint::root(&bearer_claims(), &issuer()).unwrap();
    assert_eq!(refusal(&format!("{bearer}~{link}")), "bad_signature", "a bearer root has no children");
    assert_eq!(refusal(&child(|c| c.jti = jti(1))), "chain_broken", "a child that calls itself its parent");
}

#[test]
fn depth_skip() {
    assert_eq!(refusal(&child(|c| c.del.d = 2)), "chain_broken");
    assert_eq!(refusal(&child(|c| c.del.d = 0)), "chain_broken");
    let closed = mint::root(&Claims { del: Delegation { d: 0, max: 0 }, ..root_claims() }, &issuer()).unwrap();
    assert_eq!(refusal(&child_of(&closed, |_| {})), "chain_broken");
    assert_eq!(refusal(&child(|c| c.del.max = 4)), "claims_invalid");
    let deep =
        forged(root_header(), &Claims { del: Delegation { d: 1, max: 2 }, ..root_claims() }.canonical(), &issuer());
    assert_eq!(refusal(&deep), "chain_broken", "a root stands at depth 0");
}

#[test]
fn ten_thousand_link_chain() {
    assert_eq!(refusal(&vec![root(); 10_000].join("~")), "chain_too_long");
    assert_eq!(refusal(&"~".repeat(10_000)), "chain_too_long");
    assert_eq!(refusal(&"a".repeat(MAX_LINK + 1)), "token_too_large");
    assert_eq!(refusal(&format!("{}~{}", root(), "a".repeat(65 * 1_024))), "token_too_large");
}

#[test]
fn pin_check_then_row_edit() {
    let chain = inspected(&root()).unwrap();
    let (then, now) = (Digest::of("contract").to_string(), Digest::of("edited").to_string());
    assert_eq!(chain.check_row(&key("FORECAST"), &then, Risk::Low, Effect::Read), Ok(()));
    let changed = chain.check_row(&key("FORECAST"), &now, Risk::High, Effect::Write).unwrap_err();
    assert_eq!(changed.error_text(), format!("contract_changed:{then}!={now}"), "said before the ceilings");
    assert_eq!(chain.check_row(&key("ISSUE"), &now, Risk::Low, Effect::Read), Ok(()), "it has no pin");
}

#[test]
fn denial_oracle() {
    let chain = inspected(&root()).unwrap();
    let hidden = chain.check_row(&key("SECRET"), "sha256:00", Risk::High, Effect::Destructive).unwrap_err();
    let absent = chain.check_scope(&key("NO_SUCH_ROW")).unwrap_err();
    assert_eq!(hidden, absent, "a token learns nothing about rows that it does not cover");
}
