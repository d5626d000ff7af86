//! Tokens over REST: each field goes where it belongs, and nothing is taken for more than was said.

use axum::body::Body;
use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason};
use callbook_wire::gate::v1 as wire;
use callbook_wire::gate::v1::revoke_token_request::What;
use serde_json::{Value, json};

use crate::client::{gateway, get, post, send};
use crate::fake::Fake;

const TOKEN: &str = "e30.e30.AAAA";

fn issued() -> wire::Token {
    wire::Token {
        jti: "0193a000-0000-7000-8000-000000000001".into(),
        claims_json: Bytes::from_static(b"{\"v\":1}"),
        expires_at: Some(prost_types::Timestamp { seconds: 1_796_000_900, nanos: 0 }),
        subject: "agent".into(),
        minted_by: "owner:terminal-key".into(),
        used: Some(3),
        ..wire::Token::default()
    }
}

/// A fake that mints whatever it is asked.
fn minting() -> Fake {
    let fake = Fake::default();
    let (token, issued) = (TOKEN.to_owned(), Some(issued()));
    fake.say("GateService/MintToken", &wire::MintTokenResponse { token: token.clone(), issued: issued.clone() });
    fake.say("GateService/NarrowToken", &wire::NarrowTokenResponse { token, issued });
    fake
}

#[tokio::test]
async fn a_token_is_minted_with_what_was_said_and_the_rest_at_its_narrowest() {
    let fake = minting();
    let gateway = gateway(&fake).await;
    let made = post(&gateway, "/api/tokens", r#"{"keys":["NOW"]}"#).await;
    assert_eq!(made.status, 201, "{}", made.text);
    let body =
        json!({"token": TOKEN, "jti": issued().jti, "expires_at": "2026-11-30T01:08:20.000Z", "claims": {"v": 1}});
    assert_eq!((made.json(), made.header("cache-control")), (body, "no-store"));
    let scope = wire::TokenScope { keys: vec!["NOW".into()], ..wire::TokenScope::default() };
    let least = wire::MintTokenRequest { scope: Some(scope), ..wire::MintTokenRequest::default() };
    assert_eq!(fake.last::<wire::MintTokenRequest>(), least);

    let jwk = r#"{"crv":"Ed25519","kty":"OKP","x":"AA"}"#;
    let all = format!(
        r#"{{"keys":["A"],"prefixes":["B_"],"pin":true,"ttl":60,"uses":5,"risk":"high","effect":"write","max_bytes":9,
            "body":{{"n":1.10}},"owner_gate":true,"holder":{jwk},"url":false,"purpose":"p","subject":"s",
            "audience":["callbook"],"max_depth":2}}"#
    );
    assert_eq!(post(&gateway, "/api/tokens", &all).await.status, 201);
    let asked: wire::MintTokenRequest = fake.last();
    let scope = wire::TokenScope {
        keys: vec!["A".into()],
        prefixes: vec!["B_".into()],
        pin: true,
        risk: Some("high".into()),
        effect: Some("write".into()),
        max_bytes: Some(9),
        uses: Some(5),
        body_json: Some(Bytes::from_static(b"{\"n\":1.10}")),
        owner_gate: true,
    };
    let whole = wire::MintTokenRequest {
        scope: Some(scope),
        ttl_seconds: Some(60),
        holder_jwk: jwk.into(),
        url: false,
        subject: "s".into(),
        purpose: "p".into(),
        max_depth: Some(2),
        audience: vec!["callbook".into()],
    };
    assert_eq!(asked, whole);
}

#[tokio::test]
async fn what_could_be_taken_for_more_than_was_said_is_refused() {
    let fake = minting();
    let gateway = gateway(&fake).await;
    let names = [
        "keys",
        "prefixes",
        "pin",
        "ttl",
        "uses",
        "risk",
        "effect",
        "max_bytes",
        "body",
        "owner_gate",
        "holder",
        "url",
        "purpose",
        "subject",
        "audience",
        "max_depth",
    ];
    for name in names {
        let mut body = json!({"keys": ["NOW"]});
        body[name] = Value::Null;
        let refused = post(&gateway, "/api/tokens", &body.to_string()).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["error"]), (400, &json!("invalid_request")), "{name}");
    }
    for bad in [
        r#"{"keys":["NOW"],"uses":0}"#,
        r#"{"keys":["NOW"],"uses":1.5}"#,
        r#"{"keys":["NOW"],"uses":-1}"#,
        r#"{"keys":["NOW"],"ttl":"900"}"#,
        r#"{"keys":["NOW"],"risk":"medium"}"#,
        r#"{"keys":["NOW"],"body":7}"#,
        r#"{"keys":["NOW"],"holder":"a"}"#,
        r#"{"keys":["NOW"],"subject":""}"#,
        r#"{"keys":["NOW"],"audience":[]}"#,
        r#"{"keys":"NOW"}"#,
        r#"{"keys":[]}"#,
        r#"{"keys":[],"prefixes":[]}"#,
        r#"{"keys":["NOW"],"keys":["OTHER"]}"#,
    ] {
        let refused = post(&gateway, "/api/tokens", bad).await;
        assert_eq!((refused.status.as_u16(), &refused.json()["error"]), (400, &json!("invalid_request")), "{bad}");
    }
    let unknown = post(&gateway, "/api/tokens", r#"{"keys":["NOW"],"max_uses":1}"#).await;
    assert!(unknown.status == 400 && unknown.text.contains("`max_uses`"), "{}", unknown.text);
    let unknown = post(&gateway, "/api/tokens/narrow", r#"{"holder":{}}"#).await;
    assert!(unknown.status == 400 && unknown.text.contains("`holder`"), "{}", unknown.text);
    let widest = post(&gateway, "/api/tokens/narrow", r#"{"keys":[]}"#).await;
    assert_eq!(widest.status, 400, "an empty list would be the source's on the wire: {}", widest.text);
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn a_token_is_narrowed_and_explained_for_whoever_shows_it() {
    let fake = minting();
    let explained = wire::ExplainTokenResponse {
        claims_json: vec![Bytes::from_static(b"{\"v\":1}")],
        expires_at: issued().expires_at,
        uses_left: Some(2),
        needs_proof: true,
        verdict: "risk_ceiling:low<row:high".into(),
    };
    fake.say("GateService/ExplainToken", &explained);
    let gateway = gateway(&fake).await;
    let headers = [
        ("authorization", "Cap e30.e30.AAAA~e30.e30.AAAA"),
        ("cap-proof", "a.b.c"),
        ("content-type", "application/json"),
    ];
    let made = send(&gateway, "POST", "/api/tokens/narrow", &headers, r#"{"uses":2,"url":true,"body":"a|b"}"#).await;
    assert_eq!(
        (made.status.as_u16(), made.header("cache-control"), &made.json()["token"]),
        (201, "no-store", &json!(TOKEN))
    );
    let asked = fake.asked().pop().unwrap();
    assert_eq!(
        (&asked.headers["authorization"], &asked.headers["cap-proof"]),
        (&"Cap e30.e30.AAAA~e30.e30.AAAA".parse().unwrap(), &"a.b.c".parse().unwrap())
    );
    let scope = wire::TokenScope { uses: Some(2), body_json: Some("\"a|b\"".into()), ..wire::TokenScope::default() };
    let narrowed = wire::NarrowTokenRequest { scope: Some(scope), url: true, ..wire::NarrowTokenRequest::default() };
    assert_eq!(fake.last::<wire::NarrowTokenRequest>(), narrowed);

    let told = send(&gateway, "GET", "/api/tokens/explain?key=K", &headers[..2], Body::empty()).await;
    assert_eq!(
        told.json(),
        json!({"claims": [{"v": 1}], "expires_at": "2026-11-30T01:08:20.000Z", "uses_left": 2, "needs_proof": true,
            "verdict": "risk_ceiling:low<row:high"})
    );
    assert_eq!(fake.last::<wire::ExplainTokenRequest>().key, "K");
    let twice = [("authorization", "Cap a.b.c"), ("cap-proof", "a"), ("cap-proof", "b")];
    let refused = send(&gateway, "GET", "/api/tokens/explain", &twice, Body::empty()).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]), (400, &json!("invalid_request")));
}

#[tokio::test]
async fn one_thing_is_taken_back_at_a_time() {
    let fake = Fake::default();
    fake.say("GateService/RevokeToken", &wire::RevokeTokenResponse { revoked: 1 });
    let gateway = gateway(&fake).await;
    for (name, what) in [
        ("jti", What::Jti("x".into())),
        ("root", What::Root("x".into())),
        ("holder", What::Holder("x".into())),
        ("subject", What::Subject("x".into())),
        ("kid", What::Kid("x".into())),
    ] {
        let done = post(&gateway, "/api/tokens/revoke", &json!({name: "x", "reason": "lost"}).to_string()).await;
        assert_eq!((done.status.as_u16(), done.json()), (200, json!({"ok": true, "revoked": 1})), "{name}");
        let asked: wire::RevokeTokenRequest = fake.last();
        assert_eq!((asked.what, asked.reason.as_str()), (Some(what), "lost"));
    }
    for bad in ["{}", r#"{"reason":"lost"}"#, r#"{"jti":"a","root":"b"}"#, r#"{"jti":null}"#, r#"{"token":"a"}"#] {
        assert_eq!(post(&gateway, "/api/tokens/revoke", bad).await.status, 400, "{bad}");
    }
    assert_eq!(fake.asked().len(), 5);
}

#[tokio::test]
async fn listings_and_keys_show_no_token() {
    let fake = Fake::default();
    let page = wire::ListTokensResponse { tokens: vec![issued()], next_page_token: "next".into() };
    fake.say("GateService/ListTokens", &page);
    let key = |kid: &str, state: wire::KeyState| wire::IssuerKey {
        kid: kid.into(),
        jwk_json: Bytes::from_static(br#"{"crv":"Ed25519","kty":"OKP","x":"AA"}"#),
        state: state.into(),
    };
    let keys = vec![key("one", wire::KeyState::Active), key("two", wire::KeyState::Next)];
    fake.say("GateService/GetKeys", &wire::GetKeysResponse { keys: keys.clone() });
    fake.say("GateService/RotateKey", &wire::RotateKeyResponse { keys });
    let gateway = gateway(&fake).await;
    let listed = get(&gateway, "/api/tokens?include_ended=true&subject=agent&limit=2&cursor=c").await.json();
    assert_eq!((&listed["next_cursor"], &listed["tokens"][0]["used"]), (&json!("next"), &json!(3)));
    assert_eq!((&listed["tokens"][0]["holder"], &listed["tokens"][0]["revoked"]), (&Value::Null, &Value::Null));
    let asked: wire::ListTokensRequest = fake.last();
    assert_eq!(
        (asked.include_ended, asked.subject.as_str(), asked.page_size, asked.page_token.as_str()),
        (true, "agent", 2, "c")
    );
    let set = get(&gateway, "/.well-known/jwks.json").await.json();
    let one = json!({"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "one", "alg": "EdDSA", "use": "sig"});
    assert_eq!((&set["keys"][0], set["keys"].as_array().unwrap().len()), (&one, 2));
    let turned = send(&gateway, "POST", "/api/tokens/keys/rotate", &[], Body::empty()).await.json();
    assert_eq!(
        turned,
        json!({"ok": true, "keys": [{"kid": "one", "state": "active"}, {"kid": "two", "state": "next"}]})
    );
}

/// The table of the check order: what each refusal of a token is over HTTP, and how it asks for another credential.
#[tokio::test]
async fn every_reason_of_the_check_order_has_its_status() {
    let fake = Fake::default();
    let gateway = gateway(&fake).await;
    let (invalid, prove) = ("Bearer error=\"invalid_token\"", "Cap error=\"pop_required\"");
    for (reason, status, challenge) in [
        (Reason::TokenTooLarge, 401, invalid),
        (Reason::ChainTooLong, 401, invalid),
        (Reason::TokenMalformed, 401, invalid),
        (Reason::AlgNotAllowed, 401, invalid),
        (Reason::TypWrong, 401, invalid),
        (Reason::HeaderParamRefused, 401, invalid),
        (Reason::KidUnknown, 401, invalid),
        (Reason::BadSignature, 401, invalid),
        (Reason::ClaimsInvalid, 401, invalid),
        (Reason::ClaimsUnknown, 401, invalid),
        (Reason::ChainBroken, 401, invalid),
        (Reason::Widened, 403, ""),
        (Reason::IatInFuture, 401, invalid),
        (Reason::TtlTooLong, 401, invalid),
        (Reason::Expired, 401, invalid),
        (Reason::AudienceBound, 403, ""),
        (Reason::PopRequired, 401, prove),
        (Reason::PopInvalid, 401, "Cap error=\"pop_invalid\""),
        (Reason::Revoked, 403, ""),
        (Reason::ScopeMismatch, 403, ""),
        (Reason::UnknownKey, 404, ""),
        (Reason::ContractChanged, 409, ""),
        (Reason::RiskCeiling, 403, ""),
        (Reason::EffectCeiling, 403, ""),
        (Reason::BodyNotAllowed, 403, ""),
        (Reason::PayloadCeiling, 413, ""),
        (Reason::ArgsInvalid, 400, ""),
        (Reason::OwnerGateRequired, 403, ""),
        (Reason::Denied, 403, ""),
        (Reason::Overloaded, 429, ""),
        (Reason::BreakerOpen, 503, ""),
        (Reason::TokenExhausted, 429, ""),
        (Reason::IdempotencyMismatch, 409, ""),
        (Reason::InProgress, 409, ""),
        (Reason::RowMoved, 409, ""),
    ] {
        fake.refuse("ExecutorService/Invoke", Fault::new(reason, "refused").detail("a:b"));
        let headers = [("authorization", "Cap e30.e30.AAAA"), ("content-type", "application/json")];
        let refused = send(&gateway, "POST", "/api/dispatch", &headers, r#"{"key":"K"}"#).await;
        assert_eq!((refused.status.as_u16(), refused.header("www-authenticate")), (status, challenge), "{reason:?}");
        assert_eq!(refused.json()["error"], format!("{}:a:b", reason.as_str()));
    }
}
