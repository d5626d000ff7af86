//! What one link may say by itself, and how it is written.

use super::*;

#[test]
fn claims_are_written_canonically_and_read_back() {
    let mut claims = root_claims();
    claims.cap.prefixes = ["B_", "A_", ""].map(|text| Prefix::parse(text).unwrap()).into();
    claims.cap.body = Some(Digest::of("{}"));
    claims.cap.owner_gate = true;
    claims.par = Some(Digest::of("parent"));
    let text = claims.canonical();
    assert_eq!(Claims::read(text.as_bytes()).unwrap(), claims);
    assert!(text.starts_with(r#"{"aud":["exec:test","exec:other"],"cap":{"body":"sha256:"#), "{text}");
    assert!(text.contains(r#""prefixes":["","A_","B_"],"risk":"low","uses":5},"cnf":{"jwk":{"crv":"#), "{text}");
    assert!(!text.contains("url"), "what is absent has no member");
}

#[test]
fn a_root_without_a_holder_is_short_and_counted_where_it_may_do_harm() {
    let refused = |change: fn(&mut Claims)| {
        let mut claims = bearer_claims();
        change(&mut claims);
        claims.check().map_err(|fault| fault.metadata()[0].1.clone())
    };
    assert_eq!(refused(|_| {}), Ok(()));
    assert_eq!(refused(|c| c.cap.uses = None), Ok(()));
    assert_eq!(refused(|c| c.del.max = 1), Err("del".into()));
    assert_eq!(refused(|c| (c.cap.effect, c.cap.uses) = (Effect::Write, Some(100))), Ok(()));
    assert_eq!(refused(|c| (c.cap.effect, c.cap.uses) = (Effect::Destructive, Some(101))), Err("cap.uses".into()));
    assert_eq!(refused(|c| (c.cap.risk, c.cap.uses) = (Risk::High, None)), Err("cap.uses".into()));
    assert_eq!(refused(|c| (c.cap.risk, c.exp) = (Risk::High, c.iat + 900)), Ok(()));
    assert_eq!(refused(|c| (c.cap.risk, c.exp) = (Risk::High, c.iat + 901)), Err("exp".into()));
    assert_eq!(refused(|c| (c.cap.url, c.exp) = (true, c.iat + 3_600)), Ok(()));
    assert_eq!(refused(|c| (c.cap.url, c.exp) = (true, c.iat + 3_601)), Err("exp".into()));
    assert_eq!(refused(|c| (c.cap.url, c.cap.uses) = (true, None)), Err("cap.uses".into()));
    assert_eq!(refused(|c| (c.cap.url, c.cap.risk) = (true, Risk::High)), Err("cap.url".into()));
    assert_eq!(refused(|c| (c.cap.url, c.cap.effect) = (true, Effect::Write)), Err("cap.url".into()));
    assert_eq!(refused(|c| (c.cap.url, c.cnf) = (true, Some(alice().public()))), Err("cap.url".into()));
}

#[test]
fn each_claim_has_one_spelling() {
    let text = root_claims().canonical();
    let holder = alice().public().jwk()["x"].as_str().unwrap().to_owned();
    for (from, to) in [
        ("\"v\":1", "\"v\":2"),
        ("\"v\":1", "\"v\":\"1\""),
        ("0193a000", "0193A000"),
        ("-7000-", "-4000-"),
        ("[\"exec:test\",\"exec:other\"]", "\"exec:test\""),
        ("[\"exec:test\",\"exec:other\"]", "[]"),
        ("\"exec:other\"", "\"exec:test\""),
        ("\"exec:other\"", "\"\""),
        ("agent:alice", "agent:\\u0000"),
        ("sha256:", "SHA256:"),
        ("\"FORECAST\"", "\"no key\""),
        ("\"risk\":\"low\"", "\"risk\":\"LOW\""),
        ("\"effect\":\"read\"", "\"effect\":\"none\""),
        ("\"d\":0", "\"d\":4"),
        ("\"kty\":\"OKP\"", "\"kty\":\"OKP\",\"d\":\"AAAA\""),
        ("\"crv\":\"Ed25519\"", "\"crv\":\"X25519\""),
        (holder.as_str(), "AAAA"),
        ("\"exp\":1796000600", "\"exp\":1796000000"),
        ("\"keys\":{", "\"keys\":[{"),
    ] {
        assert!(text.contains(from), "{from}");
        let refused = Claims::read(text.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert_eq!(refused.error_text(), "claims_invalid", "{to}");
    }
    for (from, to) in
        [("{\"jwk\"", "{\"kid\":\"a\",\"jwk\""), ("{\"d\":0", "{\"min\":0,\"d\":0"), ("\"uses\"", "\"Uses\"")]
    {
        let refused = Claims::read(text.replacen(from, to, 1).as_bytes()).unwrap_err();
        assert_eq!(refused.error_text(), "claims_unknown", "{to}");
    }
}

#[test]
fn the_issuer_signs_nothing_that_would_be_refused() {
    let refused = |change: fn(&mut Claims)| {
        let mut claims = root_claims();
        change(&mut claims);
        let fault = mint::root(&claims, &issuer()).unwrap_err();
        (fault.error_text(), fault.metadata().first().map(|(_, claim)| claim.clone()).unwrap_or_default())
    };
    let invalid = |claim: &str| ("invalid_request".to_owned(), claim.to_owned());
    assert_eq!(refused(|c| c.exp = c.iat + 59), invalid("exp"));
    assert_eq!(refused(|c| c.exp = c.iat + 7 * 86_400 + 1), invalid("exp"));
    assert_eq!(refused(|c| c.del.d = 1), invalid("del"));
    assert_eq!(refused(|c| c.par = Some(Digest::of(""))), invalid("del"));
    assert_eq!(refused(|c| c.cnf = None), invalid("del"));
    assert_eq!(refused(|c| c.sub.clear()), invalid("sub"));
    let many =
        |c: &mut Claims| c.cap.keys = (0..200).map(|at| (key(&format!("KEY_{at}")), Some(Digest::of("x")))).collect();
    assert_eq!(refused(many).0, "token_too_large");
}

#[test]
fn a_thumbprint_is_that_of_rfc_8037() {
    let jwk = serde_json::json!({"crv": "Ed25519", "kty": "OKP", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    let key = PublicKey::from_jwk(jwk.as_object().unwrap()).unwrap();
    assert_eq!(key.thumbprint(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
    assert_eq!(key.jwk(), jwk);
    assert!(!format!("{:?}", alice()).contains("2, 2"), "a private key is never shown");
}
