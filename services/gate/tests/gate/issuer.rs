//! JWTs of an outside issuer act as principals.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use callbook_caller::{Deployment, Issuer};
use callbook_domain::caller::{Caller, Grant, May};
use callbook_domain::fault::Reason;
use callbook_domain::token::PrivateKey;
use callbook_gate::signing::Source;
use callbook_runtime::key_file::KeyFolder;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use sqlx::PgPool;
use tempfile::{TempDir, tempdir};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::common::{Gate, keys, of};

const ISS: &str = "https://id.example";

/// Publishes a set of keys; how often it was asked is counted.
async fn publish(set: Value) -> (String, Arc<AtomicUsize>) {
    publish_what_stands_in(Arc::new(Mutex::new(set))).await
}

async fn publish_what_stands_in(set: Arc<Mutex<Value>>) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (url, asked) = (format!("http://{}/keys", listener.local_addr().unwrap()), Arc::new(AtomicUsize::new(0)));
    let counted = asked.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            let mut request = [0u8; 4_096];
            let _ = stream.read(&mut request).await;
            let body = set.lock().unwrap().to_string();
            let answer =
                format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
            let _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    (url, asked)
}

fn jwk(seed: u8, kid: &str) -> Value {
    let mut jwk = PrivateKey::from_seed(&[seed; 32]).public().jwk();
    jwk["kid"] = kid.into();
    jwk
}

/// The key of a seed as PKCS#8.
fn signer(seed: u8) -> EncodingKey {
    let mut der = vec![0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
    der.extend([seed; 32]);
    EncodingKey::from_ed_der(&der)
}

async fn believing(pool: PgPool, folder: &TempDir, jwks_url: String) -> Gate {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let grants = |may, prefix: &str| vec![Grant { may, prefix: prefix.into() }];
    let scopes = [
        ("book.read", grants(May::Invoke, "TEAM_")),
        ("book.mint", grants(May::Mint, "TEAM_")),
        ("book.all", grants(May::Edit, "")),
    ];
    let issuer = Issuer {
        name: "corp".into(),
        iss: ISS.into(),
        audience: "callbook".into(),
        jwks_url,
        scopes: scopes.into_iter().map(|(scope, grants)| (scope.to_owned(), grants)).collect::<BTreeMap<_, _>>(),
    };
    let source = Source::Folder(KeyFolder::of(folder.path()));
    Gate::with(pool, source, Deployment::default(), vec![issuer]).await
}

fn named(kid: &str) -> Header {
    Header { kid: Some(kid.into()), ..Header::new(Algorithm::EdDSA) }
}

fn good(gate: &Gate) -> Value {
    let now = gate.clock.now().unix_timestamp();
    json!({"iss": ISS, "sub": "alice", "aud": ["callbook", "x"], "exp": now + 60, "nbf": now, "scope": "book.read book.mint other"})
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_jwt_of_the_issuer_is_a_principal_with_the_grants_of_its_scopes(pool: PgPool) {
    let folder = tempdir().unwrap();
    let (url, asked) = publish(json!({"keys": [jwk(1, "one"), jwk(2, "two")]})).await;
    let mut gate = believing(pool, &folder, url).await;
    let token = encode(&named("two"), &good(&gate), &signer(2)).unwrap();
    let Caller::Principal(alice) = gate.seen(&format!("Bearer {token}")).await.unwrap() else { panic!("a principal") };
    assert_eq!((alice.name.as_str(), alice.is_outside()), ("corp:alice", true));
    let grant = |may| Grant { may, prefix: "TEAM_".into() };
    assert_eq!(alice.grants.len(), 2);
    assert!(alice.grants.contains(&grant(May::Invoke)) && alice.grants.contains(&grant(May::Mint)));
    let minted = gate.mint(&token, of(keys(&["TEAM_ECHO"]))).await.unwrap().issued.unwrap();
    assert_eq!((minted.minted_by.as_str(), minted.subject.as_str()), ("principal:corp:alice", "corp:alice"));
    assert_eq!(gate.mint(&token, of(keys(&["ALONE"]))).await.unwrap_err().reason(), Reason::Forbidden);

    let mut claims = good(&gate);
    claims["scope"] = Value::Null;
    claims.as_object_mut().unwrap().remove("scope");
    claims["scp"] = json!(["book.all"]);
    let other = encode(&named("one"), &claims, &signer(1)).unwrap();
    let Caller::Principal(again) = gate.seen(&format!("Bearer {other}")).await.unwrap() else { panic!("a principal") };
    assert_eq!((again.id, &again.grants[..]), (alice.id, &[Grant { may: May::Edit, prefix: String::new() }][..]));
    assert_eq!(asked.load(Ordering::SeqCst), 1, "the keys are read once");
    gate.clock.advance(std::time::Duration::from_secs(60));
    let late = gate.seen(&format!("Bearer {token}")).await.unwrap_err();
    assert_eq!(late.reason(), Reason::Unauthorized, "an end is an end, also of what is remembered");
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn what_the_issuer_did_not_say_is_refused_and_a_flood_of_names_asks_it_once(pool: PgPool) {
    let folder = tempdir().unwrap();
    let (url, asked) = publish(json!({"keys": [jwk(1, "one"), {"kty": "oct", "k": "c2VjcmV0", "kid": "mac"}]})).await;
    let gate = believing(pool, &folder, url).await;
    let with = |name: &str, value: Value| {
        let mut claims = good(&gate);
        claims[name] = value;
        encode(&named("one"), &claims, &signer(1)).unwrap()
    };
    let without = |name: &str| {
        let mut claims = good(&gate);
        claims.as_object_mut().unwrap().remove(name);
        encode(&named("one"), &claims, &signer(1)).unwrap()
    };
    let now = gate.clock.now().unix_timestamp();
    let mac = Header { kid: Some("mac".into()), ..Header::new(Algorithm::HS256) };
    let confused = Header { kid: Some("one".into()), ..Header::new(Algorithm::HS256) };
    let public = PrivateKey::from_seed(&[1; 32]).public().to_bytes();
    let of_type = Header { typ: Some("id+jwt".into()), ..named("one") };
    let cases = [
        ("another key", encode(&named("one"), &good(&gate), &signer(2)).unwrap()),
        ("another issuer", with("iss", json!("https://evil.example"))),
        ("another audience", with("aud", json!("elsewhere"))),
        ("no audience", without("aud")),
        ("no end", without("exp")),
        ("an end of text", with("exp", json!("never"))),
        ("over", with("exp", json!(now))),
        ("not yet", with("nbf", json!(now + 31))),
        ("no subject", without("sub")),
        ("an empty subject", with("sub", json!(""))),
        ("a subject with a line end", with("sub", json!("a\nb"))),
        ("another type", encode(&of_type, &good(&gate), &signer(1)).unwrap()),
        ("a shared secret", encode(&mac, &good(&gate), &EncodingKey::from_secret(b"secret").unwrap()).unwrap()),
        (
            "a public key as a secret",
            encode(&confused, &good(&gate), &EncodingKey::from_secret(&public).unwrap()).unwrap(),
        ),
    ];
    for (why, token) in cases {
        let refused = gate.seen(&format!("Bearer {token}")).await.expect_err(why);
        assert_eq!(refused.reason(), Reason::Unauthorized, "{why}");
    }
    for n in 0..50 {
        let token = encode(&named(&format!("unknown-{n}")), &good(&gate), &signer(1)).unwrap();
        assert_eq!(gate.seen(&format!("Bearer {token}")).await.unwrap_err().reason(), Reason::Unauthorized);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 1);
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn an_issuer_that_does_not_answer_is_no_hang(pool: PgPool) {
    let folder = tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/keys", silent.local_addr().unwrap());
    let gate = believing(pool, &folder, url).await;
    let token = format!("Bearer {}", encode(&named("one"), &good(&gate), &signer(1)).unwrap());
    let began = std::time::Instant::now();
    assert_eq!(gate.seen(&token).await.unwrap_err().reason(), Reason::ServiceUnavailable);
    assert!(began.elapsed() < std::time::Duration::from_secs(4));
    let began = std::time::Instant::now();
    assert_eq!(gate.seen(&token).await.unwrap_err().reason(), Reason::ServiceUnavailable);
    assert!(began.elapsed() < std::time::Duration::from_millis(500), "nobody waits for it again at once");
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_jwt_ends_with_the_key_that_signed_it_also_where_it_is_remembered(pool: PgPool) {
    let folder = tempdir().unwrap();
    let set = Arc::new(Mutex::new(json!({"keys": [jwk(1, "one"), jwk(2, "two")]})));
    let (url, _) = publish_what_stands_in(set.clone()).await;
    let gate = believing(pool, &folder, url).await;
    let [one, two] = ["one", "two"].map(|kid| {
        let seed = if kid == "one" { 1 } else { 2 };
        encode(&named(kid), &good(&gate), &signer(seed)).unwrap()
    });
    for token in [&one, &two] {
        gate.seen(&format!("Bearer {token}")).await.unwrap();
    }
    *set.lock().unwrap() = json!({"keys": [jwk(2, "two")]});
    // the pace at which its keys are read anew, for a name that nobody knows
    tokio::time::sleep(std::time::Duration::from_millis(5_100)).await;
    let unknown = encode(&named("three"), &good(&gate), &signer(3)).unwrap();
    gate.seen(&format!("Bearer {unknown}")).await.unwrap_err();
    let refused = gate.seen(&format!("Bearer {one}")).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::Unauthorized);
    gate.seen(&format!("Bearer {two}")).await.unwrap();
}
