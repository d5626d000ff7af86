//! I5 for tokens: whatever is done with one, its text is found in no answer but the one that made it, in no log line at
//! any level, in no span, no figure and no record.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use callbook_tests::door::{Answer, send};
use callbook_tests::dump::dump;
use callbook_tests::issuer::Holder;
use callbook_tests::process::Process;
use callbook_tests::token::{jti, proof};
use callbook_tests::upstream::Upstream;
use callbook_tests::{book, database};
use reqwest::Method;
use serde_json::{Value, json};

/// The parts of a token or a proof that would give it away: what is signed, and each signature.
fn parts(text: &str) -> Vec<String> {
    let links = text.split('~').flat_map(|link| link.split('.').skip(1));
    links.map(str::to_owned).collect()
}

fn assert_clean(place: &str, bytes: &[u8], secrets: &[String]) {
    let finder = aho_corasick::AhoCorasick::new(secrets).unwrap();
    if let Some(found) = finder.find(bytes) {
        let around = &bytes[found.start().saturating_sub(120)..found.end()];
        panic!("{place} ({} bytes) holds a token: {}", bytes.len(), String::from_utf8_lossy(around));
    }
}

fn keep(answer: &Answer, seen: &mut Vec<u8>) {
    seen.extend_from_slice(format!("{:?}", answer.headers).as_bytes());
    seen.extend_from_slice(answer.text.as_bytes());
}

/// Shows a token at every door and in every place, right ones and wrong ones.
async fn show_everywhere(process: &Process, token: &str, proof: Option<&str>, seen: &mut Vec<u8>) {
    keep(&process.spend(token, proof, "ECHO", "a").await, seen);
    keep(&send(process.bearer(token, Method::GET, "/api/dispatch?ask=give+back")).await, seen);
    for path in [
        "/api/tokens/explain?key=ECHO",
        "/api/dispatch?key=ECHO&format=markdown",
        "/api/invocations",
        "/api/tokens",
        "/nothing",
    ] {
        keep(&send(process.cap(token, None, Method::GET, path)).await, seen);
    }
    for query in [
        "invoke=ECHO&body=a",
        "ask=give+back",
        "key=ECHO",
        "map=1",
        "limit=x",
        "share=again",
        "invoke=ECHO&args=1",
        "confirm=x",
    ] {
        keep(&process.look(&format!("/api/dispatch?{query}&share={token}")).await, seen);
    }
    keep(&process.look(&format!("/api/directory?share={token}")).await, seen);
    keep(&process.look(&format!("/receipt/inv_x?share={token}")).await, seen);
    let posted = process.anyone(Method::POST, &format!("/api/dispatch?share={token}")).json(&json!({}));
    keep(&send(posted).await, seen);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i5_a_token_is_found_nowhere_but_in_the_answer_that_made_it() {
    let collector = Upstream::start(|_| {
        let answer = Response::builder().header("content-type", "application/grpc").header("grpc-status", "0");
        answer.body(Body::empty()).unwrap()
    })
    .await;
    let url = database::fresh().await;
    let environment = [
        ("DATABASE_URL", url.as_str()),
        ("RUST_LOG", "trace"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.origin()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let process = Process::start(&["up"], &environment);
    process.create(&book::echo("ECHO")).await;
    let alice = Holder::new(&callbook_domain::clock::Clock::system());
    let bearer = process.mint(&json!({"keys": ["ECHO"], "uses": 50})).await;
    let held = process.mint(&json!({"keys": ["ECHO"], "holder": alice.jwk()})).await;
    let share = process.mint(&json!({"keys": ["ECHO"], "url": true, "uses": 50})).await;
    let expired = process.mint(&json!({"keys": ["ECHO"]})).await;
    process.post("/api/tokens/revoke", &json!({"jti": jti(&expired)})).await;
    let narrowed = send(process.cap(&bearer, None, Method::POST, "/api/tokens/narrow").json(&json!({"uses": 2}))).await;
    let narrowed = narrowed.json()["token"].as_str().unwrap().to_owned();
    let proven = proof(&alice, &held, "ECHO", "a");
    let forged = format!("{}AAAA", &bearer[..bearer.len() - 4]);
    let tokens = [&bearer, &held, &share, &expired, &narrowed, &proven, &forged];
    let secrets: Vec<String> = tokens.into_iter().flat_map(|text| parts(text)).collect();

    let mut seen = Vec::new();
    for token in [&bearer, &held, &share, &expired, &narrowed, &forged] {
        let proof = Some(proven.as_str()).filter(|_| token == &held);
        show_everywhere(&process, token, proof, &mut seen).await;
    }
    for path in ["/api/tokens?include_ended=true", "/api/invocations?limit=500", "/.well-known/jwks.json"] {
        keep(&process.get(path).await, &mut seen);
    }
    let ids: Value = process.get("/api/invocations?limit=500").await.json();
    for call in ids["invocations"].as_array().unwrap() {
        let id = call["invocation_id"].as_str().unwrap();
        keep(&process.get(&format!("/api/dispatch?receipt={id}")).await, &mut seen);
    }
    assert!(String::from_utf8_lossy(&seen).contains("cap:"), "somebody called with a token");
    assert_clean("an answer", &seen, &secrets);
    let metrics = process.client.get(format!("{}/metrics", process.admin)).send().await.unwrap().text().await.unwrap();
    assert_clean("the metrics", metrics.as_bytes(), &secrets);
    tokio::time::sleep(Duration::from_millis(400)).await;
    let log = process.log();
    assert!(log.len() > 100_000, "the log at trace level has {} bytes only", log.len());
    assert_clean("the log", log.as_bytes(), &secrets);
    assert_clean("the database", &dump(&url).await, &secrets);
    let spans: Vec<u8> = collector.seen().iter().flat_map(|seen| seen.body.to_vec()).collect();
    assert!(spans.len() > 1_000, "{} bytes of spans", spans.len());
    assert_clean("the spans", &spans, &secrets);
}
