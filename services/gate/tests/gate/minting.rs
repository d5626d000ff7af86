//! Who may mint what, and what is minted.

use callbook_caller::Deployment;
use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason};
use callbook_domain::row::{Effect, Risk};
use callbook_domain::token::{Digest, Expect, Keys, PrivateKey, PublicKey, verify};
use callbook_gate::signing::Source;
use callbook_runtime::key_file::KeyFolder;
use callbook_wire::gate::v1 as wire;
use serde_json::Value;
use sqlx::PgPool;
use tempfile::tempdir;
use time::Duration;

use crate::common::{Gate, OWNER, claims, held, keys, of, prefixes, with_key};

fn field(fault: &Fault) -> (Reason, String) {
    let field = fault.metadata().iter().find(|(name, _)| *name == "field").map(|(_, value)| value.clone());
    (fault.reason(), field.unwrap_or_default())
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_minted_token_is_the_narrowest_and_good_for_whoever_has_the_public_keys(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool, &folder).await;
    let (text, issued) = gate.minted(of(keys(&["TEAM_ECHO"]))).await;
    let claims = claims(&issued);
    let cap = &claims.cap;
    assert_eq!((cap.risk, cap.effect, claims.life(), claims.del.max), (Risk::Low, Effect::Read, 900, 0));
    assert_eq!(
        (claims.sub.as_str(), claims.iss.as_str(), &claims.aud[..]),
        ("owner", "callbook", &["callbook".into()][..])
    );
    assert_eq!((issued.minted_by.as_str(), issued.jti.as_str()), ("owner:terminal-key", &*claims.jti.to_string()));
    assert!(cap.keys.values().all(Option::is_none) && !cap.owner_gate && !cap.url && cap.uses.is_none());

    let published = gate.client.get_keys(wire::GetKeysRequest {}).await.unwrap().into_inner().keys;
    let mut known = Keys::default();
    for key in &published {
        let jwk: Value = serde_json::from_slice(&key.jwk_json).unwrap();
        let public = ["crv", "kty", "x"].map(|name| (name.to_owned(), jwk[name].clone())).into_iter().collect();
        assert_eq!((&jwk["kid"], &jwk["alg"], &jwk["use"]), (&key.kid.as_str().into(), &"EdDSA".into(), &"sig".into()));
        known.add(PublicKey::from_jwk(&public).unwrap());
    }
    let expect = Expect { audience: "callbook", iss: "callbook", now: gate.clock.now(), max_ttl: Duration::days(7) };
    assert_eq!(verify(&text, &known, &expect, None).unwrap().chain.leaf().claims, claims);

    for scheme in ["Cap", "Bearer", "cap"] {
        let Caller::Holder(holder) = gate.seen(&format!("{scheme} {text}")).await.unwrap() else { panic!("a holder") };
        assert_eq!(holder.chain.leaf().claims, claims);
        assert!(holder.names.contains(&format!("jti:{}", claims.jti)) && holder.counters.is_empty());
    }
    let in_url = gate.seen(&format!("Url {text}")).await.unwrap_err();
    assert_eq!(in_url.reason(), Reason::Unauthorized, "it was not minted for addresses");
    gate.clock.advance(std::time::Duration::from_secs(900));
    assert_eq!(gate.seen(&format!("Cap {text}")).await.unwrap_err().error_text(), "expired");
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_token_is_what_was_asked_and_nothing_is_made_wider(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool, &folder).await;
    let holder = PrivateKey::from_seed(&[7; 32]);
    let mut asked = held(
        wire::TokenScope {
            pin: true,
            risk: Some("high".into()),
            effect: Some("write".into()),
            max_bytes: Some(64),
            uses: Some(3),
            body_json: Some(br#"{"b":1,"a":[true]}"#.to_vec().into()),
            owner_gate: true,
            ..keys(&["TEAM_ECHO", "ALONE"])
        },
        &holder,
    );
    asked.ttl_seconds = Some(3_600);
    asked.subject = "agent:alice".into();
    asked.purpose = "a test".into();
    asked.audience = vec!["callbook".into(), "elsewhere".into()];
    let jwk = format!(
        r#"{{"kty":"OKP","crv":"Ed25519","x":{},"ext":true,"key_ops":["verify"]}}"#,
        holder.public().jwk()["x"]
    );
    asked.holder_jwk = jwk.into();
    let (_, issued) = gate.minted(asked).await;
    let claims = claims(&issued);
    let row = |key: &str| Digest::parse(&gate.directory.snapshot().get(key).unwrap().row.contract_hash);
    let pins: Vec<Option<Digest>> = claims.cap.keys.values().copied().collect();
    assert_eq!(pins, [row("ALONE"), row("TEAM_ECHO")]);
    assert_eq!((claims.cnf, claims.del.max, claims.life()), (Some(holder.public()), 3, 3_600));
    assert_eq!(claims.cap.body, Some(Digest::of(r#"{"a":[true],"b":1}"#)));
    let cap = &claims.cap;
    assert_eq!((cap.risk, cap.effect, cap.max_bytes, cap.uses), (Risk::High, Effect::Write, Some(64), Some(3)));
    assert!(cap.owner_gate && !cap.url);
    assert_eq!((issued.holder, issued.used), (holder.public().thumbprint(), Some(0)));
    assert_eq!((issued.purpose.as_str(), issued.subject.as_str()), ("a test", "agent:alice"));
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn what_breaks_a_rule_is_refused_with_its_field(pool: PgPool) {
    let folder = tempdir().unwrap();
    let source = Source::Folder(KeyFolder::of(folder.path()));
    let mut gate = Gate::open(pool, source, Deployment { max_ttl: Duration::hours(1), ..Deployment::default() }).await;
    let scope = || keys(&["TEAM_ECHO"]);
    let holder = PrivateKey::from_seed(&[7; 32]);
    let text = |text: &str| Some(text.to_owned());
    let mint = |change: fn(&mut wire::MintTokenRequest)| {
        let mut asked = of(scope());
        change(&mut asked);
        asked
    };
    let cases = [
        ("keys", of(wire::TokenScope::default())),
        ("pin", of(wire::TokenScope { pin: true, ..prefixes(&["TEAM_"]) })),
        ("prefixes", of(prefixes(&["a b"]))),
        ("risk", of(wire::TokenScope { risk: text("medium"), ..scope() })),
        ("effect", of(wire::TokenScope { effect: text("Read"), ..scope() })),
        ("uses", of(wire::TokenScope { uses: Some(0), ..scope() })),
        ("uses", of(wire::TokenScope { effect: text("write"), ..scope() })),
        ("uses", of(wire::TokenScope { risk: text("high"), uses: Some(101), ..scope() })),
        ("ttl", mint(|asked| asked.ttl_seconds = Some(59))),
        ("ttl", mint(|asked| asked.ttl_seconds = Some(3_601))),
        (
            "ttl",
            wire::MintTokenRequest {
                ttl_seconds: Some(901),
                ..of(wire::TokenScope { effect: text("write"), uses: Some(1), ..scope() })
            },
        ),
        ("max_bytes", of(wire::TokenScope { max_bytes: Some(1 << 53), ..scope() })),
        ("body", of(wire::TokenScope { body_json: Some(b"7".to_vec().into()), ..scope() })),
        ("holder", mint(|asked| asked.holder_jwk = b"{}".to_vec().into())),
        ("url", wire::MintTokenRequest { url: true, ..held(scope(), &holder) }),
        ("uses", mint(|asked| asked.url = true)),
        ("max_depth", mint(|asked| asked.max_depth = Some(1))),
        ("max_depth", wire::MintTokenRequest { max_depth: Some(4), ..held(scope(), &holder) }),
        ("subject", mint(|asked| asked.subject = "a\nb".into())),
        ("purpose", mint(|asked| asked.purpose = "p".repeat(257))),
        ("audience", mint(|asked| asked.audience = vec!["a".into(), "a".into()])),
    ];
    for (wanted, asked) in cases {
        let refused = gate.mint(OWNER, asked.clone()).await.expect_err(&format!("{asked:?}"));
        assert_eq!(field(&refused), (Reason::InvalidRequest, wanted.to_owned()), "{refused} of {asked:?}");
    }
    let private = r#"{"kty":"OKP","crv":"Ed25519","d":"secret","x":"x"}"#.to_owned();
    let refused = gate.mint(OWNER, wire::MintTokenRequest { holder_jwk: private.into(), ..of(scope()) }).await;
    assert!(refused.unwrap_err().message().contains("private key"));
    let count: i64 = sqlx::query_scalar("select count(*) from token").fetch_one(&gate.pool).await.unwrap();
    assert_eq!(count, 0, "nothing was minted");
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_principal_mints_within_its_grants_and_learns_nothing_of_the_rest(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool, &folder).await;
    let grants = [(wire::May::Mint, "TEAM_"), (wire::May::Invoke, "TEAM_E"), (wire::May::Invoke, "ALONE")];
    let team = gate.principal("team", &grants).await;
    let issued = gate.mint(&team, of(keys(&["TEAM_ECHO"]))).await.unwrap().issued.unwrap();
    assert_eq!((issued.minted_by.as_str(), issued.subject.as_str()), ("principal:team", "team"));
    gate.mint(&team, of(prefixes(&["TEAM_EC"]))).await.unwrap();
    for (scope, needs) in [
        (keys(&["ALONE"]), "mint:ALONE"),
        (keys(&["TEAM_OTHER"]), "invoke:TEAM_OTHER"),
        (keys(&["OF_NOBODY"]), "mint:OF_NOBODY"),
        (prefixes(&["TEAM_"]), "invoke:TEAM_"),
        (prefixes(&[""]), "mint:"),
    ] {
        let refused = gate.mint(&team, of(scope)).await.unwrap_err();
        assert_eq!((refused.reason(), refused.metadata()[0].1.as_str()), (Reason::Forbidden, needs));
    }
    let unknown = gate.mint(&team, of(keys(&["TEAM_ECHO", "TEAM_ECH0"]))).await.unwrap_err();
    assert_eq!(unknown.reason(), Reason::UnknownKey);
    assert!(unknown.metadata().contains(&("attempted", "TEAM_ECH0".to_owned())), "{:?}", unknown.metadata());

    let nobody = gate.client.mint_token(of(keys(&["TEAM_ECHO"]))).await.unwrap_err();
    assert_eq!(nobody.code(), tonic::Code::Unauthenticated);
    let (token, _) = gate.minted(of(prefixes(&[""]))).await;
    let holder = gate.mint(&token, of(keys(&["TEAM_ECHO"]))).await.unwrap_err();
    assert_eq!(holder.reason(), Reason::Forbidden, "a token mints nothing");
    let end = wire::RevokePrincipalRequest { name: "team".into() };
    gate.client.revoke_principal(with_key(OWNER, end)).await.unwrap();
    let late = gate.mint(&team, of(keys(&["TEAM_ECHO"]))).await.unwrap_err();
    assert_eq!(late.reason(), Reason::Unauthorized, "although the key is believed for a second");
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_proof_makes_the_caller_the_holder_and_nothing_else_does(pool: PgPool) {
    use callbook_domain::token::{Proof, argument_hash};
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool, &folder).await;
    let holder = PrivateKey::from_seed(&[7; 32]);
    let (text, _) = gate.minted(held(keys(&["TEAM_ECHO"]), &holder)).await;
    let (bearer, _) = gate.minted(of(keys(&["TEAM_ECHO"]))).await;
    let (cap, bearer) = (format!("Cap {text}"), format!("Cap {bearer}"));
    let proof = Proof {
        ath: Proof::ath(&text),
        aud: "callbook".into(),
        iat: gate.clock.now().unix_timestamp(),
        jti: "call-1".into(),
        key: "TEAM_ECHO".to_owned().try_into().unwrap(),
        arg: argument_hash(&callbook_domain::arguments::Sent::Nothing).unwrap(),
    };
    let good = proof.sign(&holder);
    let (caller, id) = gate.calls(&cap, Some(&good)).await.unwrap();
    assert!(matches!(caller, Caller::Holder(_)) && id.as_deref() == Some("call-1"));
    let (_, none) = gate.calls(&bearer, None).await.unwrap();
    assert_eq!(none, None);
    let refusal = async |credential: &str, proof: Option<&str>| {
        gate.calls(credential, proof).await.map_or_else(|fault| fault.error_text(), |_| "taken".into())
    };
    assert_eq!(refusal(&cap, None).await, "pop_required");
    assert_eq!(refusal(&bearer, Some(&good)).await, "pop_invalid");
    let other = callbook_domain::token::Proof { key: "ALONE".to_owned().try_into().unwrap(), ..proof.clone() };
    assert_eq!(refusal(&cap, Some(&other.sign(&holder))).await, "pop_invalid");
    assert_eq!(refusal(&cap, Some(&proof.sign(&PrivateKey::from_seed(&[8; 32])))).await, "pop_invalid");
    gate.clock.advance(std::time::Duration::from_secs(31));
    assert_eq!(refusal(&cap, Some(&good)).await, "pop_invalid");
    assert!(gate.seen(&cap).await.is_ok(), "to read asks for no proof");
}
