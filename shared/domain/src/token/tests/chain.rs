//! Chains as they are made and read.

use proptest::prelude::*;

use super::*;

/// Root for Alice, narrowed by her for Bob and by him for Alice again.
fn three_links() -> String {
    let token = root();
    let mut claims = child_claims(&token);
    claims.cap.uses = Some(2);
    claims.aud.pop();
    let token = mint::derived(&token, &claims, &alice()).unwrap();
    let parent = parse(&token).unwrap()[1].peek().unwrap();
    let mut claims = mint::child(&parent, jti(3), at(NOW + 1), alice().public());
    claims.cap.keys.remove(&key("ISSUE"));
    claims.exp = NOW + 30;
    mint::derived(&token, &claims, &bob()).unwrap()
}

#[test]
fn a_holder_narrows_offline_and_the_leaf_decides() {
    let token = three_links();
    let input = Proof { iat: NOW + 2, ..proof(&token) }.sign(&alice());
    let verified = proven(&token, &input, &expect()).unwrap();
    let chain = &verified.chain;
    assert_eq!(chain.links().len(), 3);
    assert!(chain.covers(&key("FORECAST")) && !chain.covers(&key("ISSUE")));
    assert_eq!(chain.pin(&key("FORECAST")), Some(Digest::of("contract")));
    let lineage = chain.lineage();
    assert_eq!((lineage.kid, lineage.sub), (issuer().public().thumbprint().as_str(), "agent:alice"));
    let ids: Vec<_> = lineage.links.iter().map(|link| (link.jti, link.uses, link.holder.clone())).collect();
    let holder = |key: PrivateKey| Some(key.public().thumbprint());
    assert_eq!(
        ids,
        [(jti(1), Some(5), holder(alice())), (jti(2), Some(2), holder(bob())), (jti(3), Some(2), holder(alice()))]
    );
    assert_eq!(chain.links()[1].claims.par, Some(lineage.links[0].id));
    assert_eq!(chain.identity(), format!("token:{}:{}", jti(1), alice().public().thumbprint()));
}

#[test]
fn the_ceilings_name_both_sides() {
    let mut claims = bearer_claims();
    claims.cap.body = Some(Digest::of("{}"));
    let chain = inspected(&mint::root(&claims, &issuer()).unwrap()).unwrap();
    let hash = Digest::of("contract").to_string();
    let row = |risk, effect| chain.check_row(&key("FORECAST"), &hash, risk, effect).map_err(|f| f.error_text());
    assert_eq!(row(Risk::High, Effect::Write), Err("risk_ceiling:low<row:high".into()));
    assert_eq!(row(Risk::Low, Effect::Write), Err("effect_ceiling:read<row:write".into()));
    let call = |text, bytes| chain.check_call(Digest::of(text), bytes).map_err(|f| f.error_text());
    assert_eq!(call("[]", 9_999), Err("body_not_allowed:fixed_body_only".into()));
    assert_eq!(call("{}", 4_097), Err("payload_ceiling:4097>4096".into()));
    assert_eq!(call("{}", 4_096), Ok(()));
    assert_eq!(chain.identity(), format!("token:{}:bearer", jti(1)));
}

#[test]
fn a_client_is_refused_before_it_sends() {
    let token = root();
    let claims = child_claims(&token);
    let refused = |claims: &Claims, key: &PrivateKey| mint::derived(&token, claims, key).unwrap_err().error_text();
    assert_eq!(refused(&claims, &bob()), "bad_signature");
    assert_eq!(refused(&Claims { par: None, ..claims.clone() }, &alice()), "chain_broken");
    assert_eq!(refused(&Claims { aud: Vec::new(), ..claims }, &alice()), "claims_invalid");
    let mut token = token;
    let mut holder = alice();
    for depth in 2..=3 {
        let parent = parse(&token).unwrap().last().unwrap().peek().unwrap();
        let next = mint::child(&parent, jti(depth), at(NOW), bob().public());
        token = mint::derived(&token, &next, &holder).unwrap();
        holder = bob();
    }
    let parent = parse(&token).unwrap().last().unwrap().peek().unwrap();
    let next = mint::child(&parent, jti(4), at(NOW), bob().public());
    assert_eq!(mint::derived(&token, &next, &bob()).unwrap_err().error_text(), "chain_broken", "deeper than `del.max`");
}

#[test]
fn the_hash_of_arguments_is_of_what_was_sent() {
    use crate::arguments::Sent;
    let args = |text: &str| argument_hash(&Sent::new(None, serde_json::from_str(text).unwrap()).unwrap());
    assert_eq!(args(r#"{"b": 1.50, "a": "é"}"#), Ok(Digest::of(r#"{"a":"é","b":1.5}"#)));
    assert_eq!(args("[9007199254740993]").unwrap_err().error_text(), "args_not_canonical");
    assert_eq!(args("null"), Ok(Digest::of("null")));
    assert_eq!(argument_hash(&Sent::new(Some("a|b\"".into()), None).unwrap()), Ok(Digest::of(r#""a|b\"""#)));
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>(), near in "[A-Za-z0-9_.~=-]{0,60}") {
        for text in [text, near] {
            prop_assert!(inspected(&text).is_err());
            prop_assert!(proven(&root(), &text, &expect()).is_err());
        }
    }

    #[test]
    fn no_payload_makes_the_parser_panic(
        payload in r#"[{}\[\]",:0-9eE.\\u a-z-]{0,80}"#,
        (name, value) in ("iss|sub|aud|jti|iat|exp|cnf|del|par|cap|v", "null|true|-1|1|1e2|\"\"|\"x\"|\\[\\]|\\{\\}|\\[1\\]"),
    ) {
        let _ = Claims::read(payload.as_bytes());
        let mut claims = root_claims().to_json();
        claims[name.as_str()] = serde_json::from_str(&value).unwrap();
        let _ = inspected(&forged(root_header(), &claims.to_string(), &issuer()));
        for member in ["keys", "prefixes", "risk", "effect", "body", "max_bytes", "uses", "owner_gate", "url"] {
            let mut claims = root_claims().to_json();
            claims["cap"][member] = serde_json::from_str(&value).unwrap();
            let _ = Claims::read(claims.to_string().as_bytes());
        }
    }
}
