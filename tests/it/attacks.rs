//! Attacks on the text of a token: each ends with the reason that the dictionary has for it, and nothing fires.

use std::time::Duration;

use callbook_domain::clock::Clock;
use callbook_tests::book::echo;
use callbook_tests::caller::Line;
use callbook_tests::database;
use callbook_tests::issuer::{Aim, Holder, Issuer, payload, sign};
use callbook_tests::world::World;
use data_encoding::BASE64URL_NOPAD;
use ed25519_dalek::SigningKey;
use serde_json::{Value, json};
use time::OffsetDateTime;

/// A deployment with the row `ROW`, its issuer, and a line to its executors.
struct Stage {
    world: World,
    issuer: Issuer,
    line: Line,
}

impl Stage {
    async fn set() -> Stage {
        Stage::at(Clock::system()).await
    }

    async fn at(clock: Clock) -> Stage {
        let world = World::with().clock(clock).start().await;
        world.create(&echo("ROW")).await;
        let issuer = Issuer::of(&world).await;
        let line = Line::to(&world).await;
        Stage { world, issuer, line }
    }

    async fn refused(&self, token: &str) -> String {
        match self.line.call(token, "ROW", "a").await {
            Ok(answer) => panic!("it ran: {answer:?}"),
            Err(reason) => reason,
        }
    }

    async fn refused_proof(&self, token: &str, proof: &str) -> String {
        match self.line.prove(token, proof, "ROW", "a").await {
            Ok(answer) => panic!("it ran: {answer:?}"),
            Err(reason) => reason,
        }
    }

    /// Nothing of what was tried is on record as a call.
    async fn end(self) {
        let count: i64 = sqlx::query_scalar("select count(*) from invocation where caller like 'token:%'")
            .fetch_one(&mut database::owner(&self.world.database_url).await)
            .await
            .unwrap();
        assert_eq!(count, 0, "nothing fired");
        self.world.stop().await;
    }
}

/// What is sent with every call here, as one JSON string.
const SENT: &str = r#""a""#;

fn encoded(text: impl AsRef<[u8]>) -> String {
    BASE64URL_NOPAD.encode(text.as_ref())
}

#[tokio::test]
async fn alg_none_and_algorithm_confusion() {
    let stage = Stage::set().await;
    let claims = stage.issuer.claims(&["ROW"]);
    stage.issuer.record(&claims).await;
    for alg in
        [json!("none"), json!("None"), json!("HS256"), json!("ES256"), json!("Ed25519"), json!(null), json!(["EdDSA"])]
    {
        let header = json!({"alg": alg, "typ": "cap+jwt", "kid": stage.issuer.kid});
        let token = stage.issuer.sign(&header, &claims.to_string());
        assert_eq!(stage.refused(&token).await, "alg_not_allowed", "{alg}");
        let (input, _) = token.rsplit_once('.').unwrap();
        assert_eq!(stage.refused(&format!("{input}.")).await, "alg_not_allowed", "{alg} without a signature");
    }
    stage.end().await;
}

#[tokio::test]
async fn embedded_and_remote_keys_crit_and_other_parameters() {
    let stage = Stage::set().await;
    let claims = stage.issuer.claims(&["ROW"]);
    stage.issuer.record(&claims).await;
    let attacker = Holder::new(&stage.world.clock);
    for (name, value) in [
        ("jwk", attacker.jwk()),
        ("jku", json!("https://attacker.example/keys")),
        ("x5u", json!("https://attacker.example/cert")),
        ("x5c", json!(["AAAA"])),
        ("crit", json!(["exp"])),
        ("b64", json!(false)),
        ("zip", json!("DEF")),
        ("cty", json!("JWT")),
    ] {
        let mut header = json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": stage.issuer.kid});
        header[name] = value;
        for token in [attacker.sign(&header, &claims.to_string()), stage.issuer.sign(&header, &claims.to_string())] {
            assert_eq!(stage.refused(&token).await, "header_param_refused", "{name}");
        }
    }
    stage.end().await;
}

#[tokio::test]
async fn kid_injection() {
    let stage = Stage::set().await;
    let claims = stage.issuer.claims(&["ROW"]);
    stage.issuer.record(&claims).await;
    let attacker = Holder::new(&stage.world.clock);
    let kids = ["", "../../etc/passwd", "' or 1=1 --", "https://attacker.example/key", "\u{0}", &attacker.thumbprint()];
    for kid in kids {
        let header = json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": kid});
        assert_eq!(stage.refused(&attacker.sign(&header, &claims.to_string())).await, "kid_unknown", "{kid:?}");
    }
    let header = json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": stage.issuer.kid});
    let borrowed = attacker.sign(&header, &claims.to_string());
    assert_eq!(stage.refused(&borrowed).await, "bad_signature", "the name of a key is not the key");
    let bare = attacker.sign(&json!({"alg": "EdDSA", "typ": "cap+jwt"}), &claims.to_string());
    assert_eq!(stage.refused(&bare).await, "bad_signature", "a first link needs the issuer");
    stage.end().await;
}

#[tokio::test]
async fn cross_type_use() {
    let stage = Stage::set().await;
    let holder = Holder::new(&stage.world.clock);
    let token = stage.issuer.root(&stage.issuer.claims_of(&holder, &["ROW"])).await;
    let proof = holder.proof(&Aim { token: &token, key: "ROW", sent: SENT });
    assert_eq!(stage.refused(&proof).await, "typ_wrong", "a proof is no token");
    for typ in ["JWT", "at+jwt", "cap-pop+jwt", "CAP+JWT"] {
        let header = json!({"alg": "EdDSA", "typ": typ, "kid": stage.issuer.kid});
        let other = stage.issuer.sign(&header, &stage.issuer.claims(&["ROW"]).to_string());
        assert_eq!(stage.refused(&other).await, "typ_wrong", "{typ}");
    }
    let link = holder.sign(&json!({"alg": "EdDSA", "typ": "cap+jwt"}), &payload(&proof).to_string());
    for no_proof in [token.as_str(), &link, "a.b.c", ""] {
        assert_eq!(stage.refused_proof(&token, no_proof).await, "pop_invalid", "{no_proof}");
    }
    stage.end().await;
}

#[tokio::test]
async fn duplicate_float_and_unknown_claims() {
    let stage = Stage::set().await;
    let claims = stage.issuer.claims(&["ROW"]);
    stage.issuer.record(&claims).await;
    let header = json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": stage.issuer.kid});
    let text = claims.to_string();
    let exp = claims["exp"].to_string();
    let twisted = [
        ("claims_invalid", text.replacen('{', r#"{"sub":"root","#, 1)),
        ("claims_invalid", text.replace(r#""risk":"low""#, r#""risk":"low","risk":"high""#)),
        ("claims_invalid", text.replace(&exp, &format!("{exp}.0"))),
        ("claims_invalid", text.replace(&exp, &format!("{exp}e0"))),
        ("claims_invalid", text.replace(&exp, &format!("\"{exp}\""))),
        ("claims_invalid", text.replace(&exp, "18446744073709551617")),
        ("claims_invalid", text.replace(r#""low""#, r#""none""#)),
        ("claims_invalid", format!("{text} {{}}")),
        ("claims_invalid", text.replace(r#""tests""#, r#""\ud800""#)),
        ("claims_unknown", text.replacen('{', r#"{"admin":true,"#, 1)),
        ("claims_unknown", text.replace(r#""risk":"low""#, r#""risk":"low","ip":"10.0.0.0/8""#)),
    ];
    for (reason, payload) in twisted {
        assert_ne!(payload, text);
        assert_eq!(stage.refused(&stage.issuer.sign(&header, &payload)).await, reason, "{payload}");
    }
    let doubled = r#"{"alg":"EdDSA","typ":"cap+jwt","typ":"cap+jwt","kid":"KID"}"#.replace("KID", &stage.issuer.kid);
    let signer = SigningKey::from_bytes(&[7; 32]);
    assert_eq!(stage.refused(&sign(&signer, &doubled, &text)).await, "header_param_refused");
    stage.end().await;
}

#[tokio::test]
async fn encoding_malleability() {
    let stage = Stage::set().await;
    let token = stage.issuer.bearer(&["ROW"]).await;
    let parts: Vec<&str> = token.split('.').collect();
    let (header, claims, signature) = (parts[0], parts[1], parts[2]);
    // a 64-byte signature ends in a character with four unused bits
    let last = signature.chars().last().unwrap();
    let sibling = if last == 'A' { 'B' } else { char::from(last as u8 + 1) };
    let loose = format!("{}{sibling}", &signature[..signature.len() - 1]);
    let standard = signature.replace('-', "+").replace('_', "/");
    let malformed = [
        format!("{header}.{claims}.{signature}="),
        format!("{header}.{claims}.{signature}=="),
        format!("{header}.{claims}.{loose}"),
        format!("{header}.{claims}.{signature}.{signature}"),
        format!("{header}.{claims}"),
        format!("{token}~"),
        format!("~{token}"),
        format!("{header}. {claims}.{signature}"),
    ];
    for text in malformed {
        assert_eq!(stage.refused(&text).await, "token_malformed", "{text}");
    }
    if standard != signature {
        assert_eq!(stage.refused(&format!("{header}.{claims}.{standard}")).await, "token_malformed");
    }
    let mut bytes = BASE64URL_NOPAD.decode(signature.as_bytes()).unwrap();
    add_the_order(&mut bytes[32..]);
    let malleated = format!("{header}.{claims}.{}", encoded(&bytes));
    assert_eq!(stage.refused(&malleated).await, "bad_signature", "S and S + L are not the same signature");
    let cut = format!("{header}.{claims}.{}", encoded(&bytes[..63]));
    assert_eq!(stage.refused(&cut).await, "bad_signature");
    stage.end().await;
}

/// Adds the order of the group to a little-endian number.
fn add_the_order(number: &mut [u8]) {
    let order: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let mut carry = 0u16;
    for (byte, add) in number.iter_mut().zip(order) {
        let sum = u16::from(*byte) + u16::from(add) + carry;
        (*byte, carry) = ((sum & 0xff) as u8, sum >> 8);
    }
}

#[tokio::test]
async fn small_order_points() {
    let stage = Stage::set().await;
    let mut identity = [0u8; 32];
    identity[0] = 1;
    let mut unreduced = [0xff; 32];
    unreduced[31] = 0x7f;
    let order_eight =
        data_encoding::HEXLOWER.decode(b"c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a").unwrap();
    for point in [&identity[..], &[0; 32], &unreduced, &order_eight] {
        let mut claims = stage.issuer.claims(&["ROW"]);
        claims["cnf"] = json!({"jwk": {"crv": "Ed25519", "kty": "OKP", "x": encoded(point)}});
        let token = stage.issuer.root(&claims).await;
        assert_eq!(stage.refused(&token).await, "claims_invalid", "{point:?}");
    }
    stage.end().await;
}

#[tokio::test]
async fn clock_skew_both_ways() {
    let start = OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap();
    let clock = Clock::held(start);
    let stage = Stage::at(clock.clone()).await;
    let issued = |iat: i64, life: i64| {
        let mut claims = stage.issuer.claims(&["ROW"]);
        claims["iat"] = (start.unix_timestamp() + iat).into();
        claims["exp"] = (start.unix_timestamp() + iat + life).into();
        claims
    };
    let early = stage.issuer.root(&issued(6, 900)).await;
    assert_eq!(stage.refused(&early).await, "iat_in_future");
    let long = stage.issuer.root(&issued(0, 8 * 86_400)).await;
    assert_eq!(stage.refused(&long).await, "ttl_too_long");
    let over = stage.issuer.root(&issued(-900, 900)).await;
    assert_eq!(stage.refused(&over).await, "expired", "an end is an end on our clock, to the second");

    let holder = Holder::new(&clock);
    let token = stage.issuer.root(&stage.issuer.claims_of(&holder, &["ROW"])).await;
    let aim = Aim { token: &token, key: "ROW", sent: SENT };
    for away in [-31, 31] {
        let mut claims = holder.proof_claims(&aim);
        claims["iat"] = (start.unix_timestamp() + away).into();
        assert_eq!(stage.refused_proof(&token, &holder.sign_proof(&claims)).await, "pop_invalid", "{away} s");
    }
    clock.advance(Duration::from_secs(900));
    assert_eq!(stage.refused(&token).await, "expired", "a token that was believed ends like another");
    stage.end().await;
}

#[tokio::test]
async fn replay_at_another_executor() {
    let stage = Stage::set().await;
    let mut claims = stage.issuer.claims(&["ROW"]);
    claims["aud"] = json!(["elsewhere", "there"]);
    let token = stage.issuer.root(&claims).await;
    assert_eq!(stage.refused(&token).await, "audience_bound:elsewhere,there");
    claims["iss"] = "elsewhere".into();
    let other =
        stage.issuer.sign(&json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": stage.issuer.kid}), &claims.to_string());
    assert_eq!(stage.refused(&other).await, "claims_invalid");

    let holder = Holder::new(&stage.world.clock);
    let token = stage.issuer.root(&stage.issuer.claims_of(&holder, &["ROW"])).await;
    let mut proof = holder.proof_claims(&Aim { token: &token, key: "ROW", sent: SENT });
    proof["aud"] = "elsewhere".into();
    assert_eq!(stage.refused_proof(&token, &holder.sign_proof(&proof)).await, "pop_invalid");
    stage.end().await;
}

#[tokio::test]
async fn proof_for_other_arguments_another_key_another_token_and_by_another_holder() {
    let stage = Stage::set().await;
    let (holder, thief) = (Holder::new(&stage.world.clock), Holder::new(&stage.world.clock));
    let token = stage.issuer.root(&stage.issuer.claims_of(&holder, &["ROW", "OTHER"])).await;
    let second = stage.issuer.root(&stage.issuer.claims_of(&holder, &["ROW"])).await;
    assert_eq!(stage.refused(&token).await, "pop_required", "the token alone is nothing");
    let aim = Aim { token: &token, key: "ROW", sent: SENT };
    for (what, proof) in [
        ("other arguments", holder.proof(&Aim { sent: r#""b""#, ..aim.clone() })),
        ("args for a body", holder.proof(&Aim { sent: r#"["a"]"#, ..aim.clone() })),
        ("another key", holder.proof(&Aim { key: "OTHER", ..aim.clone() })),
        ("another token", holder.proof(&Aim { token: &second, ..aim.clone() })),
        ("another holder", thief.proof(&aim)),
    ] {
        assert_eq!(stage.refused_proof(&token, &proof).await, "pop_invalid", "{what}");
    }
    stage.end().await;
}

/// What somebody does to the claims of a link.
type Twist = fn(&mut Value);

#[tokio::test]
async fn widening_of_every_field_and_dropped_constraints() {
    let stage = Stage::set().await;
    let (holder, next) = (Holder::new(&stage.world.clock), Holder::new(&stage.world.clock));
    let mut claims = stage.issuer.claims_of(&holder, &[]);
    let pin = format!("sha256:{}", "0".repeat(64));
    claims["cap"] = json!({
        "keys": {"ROW": pin}, "prefixes": ["TEAM_"], "risk": "low", "effect": "read", "body": pin, "max_bytes": 100,
        "uses": 5, "owner_gate": true,
    });
    claims["del"]["max"] = 2.into();
    let root = stage.issuer.root(&claims).await;
    let twisted: [(&str, Twist); 20] = [
        ("iss", |c| c["iss"] = "other".into()),
        ("sub", |c| c["sub"] = "other".into()),
        ("aud", |c| c["aud"] = json!(["callbook", "other"])),
        ("exp", |c| c["exp"] = (c["exp"].as_i64().unwrap() + 1).into()),
        ("del", |c| c["del"]["max"] = 3.into()),
        ("keys", |c| c["cap"]["keys"]["OTHER"] = Value::Null),
        ("prefixes", |c| c["cap"]["prefixes"] = json!([""])),
        ("prefixes", |c| c["cap"]["prefixes"] = json!(["TEAM"])),
        ("pin", |c| c["cap"]["keys"]["ROW"] = Value::Null),
        ("pin", |c| c["cap"]["keys"]["ROW"] = format!("sha256:{}", "1".repeat(64)).into()),
        ("risk", |c| c["cap"]["risk"] = "high".into()),
        ("effect", |c| c["cap"]["effect"] = "write".into()),
        ("body", |c| c["cap"]["body"] = format!("sha256:{}", "1".repeat(64)).into()),
        ("body", |c| drop(c["cap"].as_object_mut().unwrap().remove("body"))),
        ("max_bytes", |c| c["cap"]["max_bytes"] = 101.into()),
        ("max_bytes", |c| drop(c["cap"].as_object_mut().unwrap().remove("max_bytes"))),
        ("uses", |c| c["cap"]["uses"] = 6.into()),
        ("uses", |c| drop(c["cap"].as_object_mut().unwrap().remove("uses"))),
        ("owner_gate", |c| c["cap"]["owner_gate"] = false.into()),
        ("owner_gate", |c| drop(c["cap"].as_object_mut().unwrap().remove("owner_gate"))),
    ];
    for (field, twist) in twisted {
        let token = holder.derive(&root, &next, twist);
        assert_eq!(
            stage.refused(&token).await,
            format!("widened:{field}"),
            "{}",
            payload(token.split('~').nth(1).unwrap())
        );
    }
    let bearer = holder.derive(&root, &next, |claims| drop(claims.as_object_mut().unwrap().remove("cnf")));
    assert_eq!(stage.refused(&bearer).await, "claims_invalid", "a derived link has a holder");
    stage.end().await;
}

#[tokio::test]
async fn grant_swap_and_depth_skip() {
    let stage = Stage::set().await;
    let (holder, next) = (Holder::new(&stage.world.clock), Holder::new(&stage.world.clock));
    let wide = stage.issuer.root(&stage.issuer.claims_of(&holder, &["ROW", "OTHER"])).await;
    let narrow = stage.issuer.root(&stage.issuer.claims_of(&holder, &["ROW"])).await;
    let child = holder.derive(&narrow, &next, |_| {});
    let (_, link) = child.split_once('~').unwrap();
    assert_eq!(stage.refused(&format!("{wide}~{link}")).await, "chain_broken", "a link of another chain");
    assert_eq!(stage.refused(&format!("{narrow}~{narrow}")).await, "chain_broken", "a root is no child");
    assert_eq!(stage.refused(link).await, "bad_signature", "a link without its parents");
    for (depth, max) in [(0, 3), (2, 3), (3, 3)] {
        let skipped = holder.derive(&narrow, &next, |claims| claims["del"] = json!({"d": depth, "max": max}));
        assert_eq!(stage.refused(&skipped).await, "chain_broken", "depth {depth}");
    }
    let mut shallow = stage.issuer.claims_of(&holder, &["ROW"]);
    shallow["del"]["max"] = 0.into();
    let shallow = stage.issuer.root(&shallow).await;
    assert_eq!(
        stage.refused(&holder.derive(&shallow, &next, |_| {})).await,
        "chain_broken",
        "nobody may derive from it"
    );
    let grandchild = next.derive(&child, &holder, |_| {});
    let (root, rest) = grandchild.split_once('~').unwrap();
    let (_, last) = rest.split_once('~').unwrap();
    assert_eq!(stage.refused(&format!("{root}~{last}")).await, "bad_signature", "a link is left out");
    let stolen = next.derive(&narrow, &next, |_| {});
    assert_eq!(stage.refused(&stolen).await, "bad_signature", "only the holder derives");
    stage.end().await;
}

#[tokio::test]
async fn ten_thousand_link_chain() {
    let stage = Stage::set().await;
    assert_eq!(stage.refused(&vec!["a.b.c"; 10_000].join("~")).await, "chain_too_long");
    let (mut token, mut holder) = (String::new(), Holder::new(&stage.world.clock));
    for depth in 0..=4 {
        let next = Holder::new(&stage.world.clock);
        token = match depth {
            0 => stage.issuer.root(&stage.issuer.claims_of(&next, &["ROW"])).await,
            _ => holder.derive(&token, &next, |claims| claims["del"]["d"] = depth.min(3).into()),
        };
        holder = next;
    }
    assert_eq!(stage.refused(&token).await, "chain_too_long", "five links that are good else");
    assert_eq!(stage.refused(&format!("{}.b.c", "a".repeat(8 * 1024))).await, "token_too_large");
    stage.end().await;
}
