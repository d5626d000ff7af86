//! The way out: where a row may go, how long and how much it may take, and what its failure says.

use std::time::{Duration, Instant};

use async_compression::tokio::write::GzipEncoder;
use axum::body::Body;
use axum::response::Response;
use callbook_tests::book::{http, with};
use callbook_tests::secrets::Secrets;
use callbook_tests::shared;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

fn row(key: &str, target: &str) -> Value {
    http(key, target, "none", "")
}

/// A server that answers every connection with these bytes and closes it.
async fn bytes_and_close(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            let _ = socket.read(&mut [0; 4096]).await;
            let _ = socket.write_all(bytes).await;
            let _ = socket.shutdown().await;
        }
    });
    origin
}

#[tokio::test]
async fn a_row_ends_in_its_own_time_and_says_whether_it_may_be_tried_again() {
    let upstream = Upstream::slow(Duration::from_secs(4), |_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    for (key, method) in [("READ", "GET"), ("WRITE", "POST")] {
        let target = format!("{method} {}/", upstream.origin());
        world.create(&with(row(key, &target), &json!({"timeout_ms": 300}))).await;
        let began = Instant::now();
        let answer = world.invoke(key, "").await.json();
        assert!(began.elapsed() < Duration::from_millis(3_000), "{:?}", began.elapsed());
        let error = &answer["error"];
        assert_eq!(
            (&answer["ok"], &answer["ran"], &error["code"]),
            (&json!(false), &json!(true), &json!("http:timeout")),
            "{answer}"
        );
        assert_eq!(error["retryable"], method == "GET", "a write that may have left is never called retryable");
        assert!(answer["result"].as_str().unwrap().starts_with("ERR:http:timeout:"), "{answer}");
    }
    world.change("READ", &json!({"timeout_ms": null})).await;
    let began = Instant::now();
    let answer = world.post("/api/dispatch", &json!({"key": "READ", "body": "", "deadline_ms": 500})).await.json();
    assert_eq!(answer["error"]["code"], "http:timeout", "{answer}");
    assert!(began.elapsed() < Duration::from_millis(3_000), "{:?}", began.elapsed());
    let receipt = world
        .get(&format!("/api/dispatch?receipt={}", answer["proof"]["invocation_id"].as_str().unwrap()))
        .await
        .json();
    assert_eq!(
        (&receipt["status"], &receipt["error"]["code"]),
        (&json!("PROVEN_ATTEMPT_NO_MATERIAL_RESULT"), &json!("http:timeout"))
    );
    world.stop().await;
}

#[tokio::test]
async fn a_long_answer_keeps_its_head_and_says_that_it_is_one() {
    let upstream = Upstream::start(|seen| match seen.target.as_str() {
        "/text" => {
            Response::builder().header("content-type", "text/plain").body(Body::from("é".repeat(3_000))).unwrap()
        }
        "/json" => answered(200, &json!(vec![7; 3_000]).to_string()),
        _ => Response::new(Body::from(vec![7; 5 * 1024 * 1024])),
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    for (key, max) in [("TEXT", Some(1_001)), ("JSON", Some(1_000)), ("BIG", None), ("GREEDY", Some(i32::MAX))] {
        let target = format!("GET {}/{}", upstream.origin(), key.to_lowercase());
        world.create(&with(row(key, &target), &json!({"max_response_bytes": max}))).await;
    }
    let text = world.invoke("TEXT", "").await.json();
    assert_eq!((&text["ok"], &text["output"]["truncated"]), (&json!(true), &json!(true)), "{text}");
    assert_eq!(text["output"]["text"], "é".repeat(500), "a character that the bound cut is left out");
    let cut = world.invoke("JSON", "").await.json();
    assert_eq!(
        (&cut["output"]["truncated"], cut["output"]["text"].as_str().unwrap().len()),
        (&json!(true), 1_000),
        "{cut}"
    );
    for key in ["BIG", "GREEDY"] {
        let big = world.invoke(key, "").await.json();
        assert_eq!(big["output"]["truncated"], true, "{key}");
        assert_eq!(big["output"]["text"].as_str().unwrap().len(), 4 * 1024 * 1024, "{key}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_bomb_is_cut_before_it_is_large() {
    let mut packed = GzipEncoder::new(Vec::new());
    packed.write_all(&vec![b'0'; 3 * 1024 * 1024]).await.unwrap();
    packed.shutdown().await.unwrap();
    let packed = packed.into_inner();
    let upstream = Upstream::start(move |_| {
        let head = Response::builder().header("content-type", "text/plain").header("content-encoding", "gzip");
        head.body(Body::from(packed.clone())).unwrap()
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&row("BOMB", &format!("GET {}/", upstream.origin()))).await;
    let answer = world.invoke("BOMB", "").await.json();
    assert_eq!(answer["output"]["truncated"], true, "{}", answer["error"]);
    assert!(
        answer["output"]["text"].as_str().unwrap().len() < 1024 * 1024,
        "{}",
        answer["output"]["text"].as_str().unwrap().len()
    );
    world.stop().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_takes_no_credential_along() {
    let thief = Upstream::start(|_| answered(200, "{}")).await;
    let elsewhere = thief.origin();
    let upstream = Upstream::start(move |seen| {
        let status = seen.target.trim_start_matches('/').parse::<u16>().unwrap();
        Response::builder().status(status).header("location", format!("{elsewhere}/steal")).body(Body::empty()).unwrap()
    })
    .await;
    let secrets = Secrets::bound_to(&upstream.origin(), &[("TOKEN", "tok-1234567890")]);
    let world = secrets.give(World::with().allow(&[upstream.origin(), thief.origin()])).start().await;
    for status in [301, 302, 303, 307, 308] {
        for (method, effect) in [("GET", "read"), ("POST", "write")] {
            let key = format!("{method}_{status}");
            let target = format!("{method} {}/{status}", upstream.origin());
            world.create(&with(row(&key, &target), &json!({"auth": "bearer:TOKEN"}))).await;
            let answer = world.invoke(&key, "").await.json();
            assert_eq!(
                (&answer["ok"], &answer["error"]["code"]),
                (&json!(false), &json!(format!("http:{status}"))),
                "{effect}: {answer}"
            );
            assert_eq!(
                (&answer["error"]["upstream_status"], &answer["error"]["retryable"]),
                (&json!(status), &json!(false)),
                "{answer}"
            );
            let id = answer["proof"]["invocation_id"].as_str().unwrap();
            let confirm = world.look(&format!("/api/dispatch?confirm={id}")).await.json();
            assert_eq!(confirm["status"], "PROVEN_ATTEMPT_NO_MATERIAL_RESULT", "{key}");
        }
    }
    assert_eq!((thief.count(), upstream.count()), (0, 10));
    world.stop().await;
}

#[tokio::test]
async fn a_connection_that_fails_is_a_failed_run_with_a_receipt() {
    let nobody = format!("http://127.0.0.1:{}", callbook_tests::process::free_port());
    let silent = bytes_and_close(b"").await;
    let garbage = bytes_and_close(b"SSH-2.0-OpenSSH_9.2\r\n").await;
    let broken =
        bytes_and_close(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 100\r\n\r\nbut less").await;
    let unknown = bytes_and_close(b"HTTP/1.1 200 OK\r\ncontent-encoding: zstd\r\ncontent-length: 4\r\n\r\nabcd").await;
    let origins = [nobody.clone(), silent.clone(), garbage.clone(), broken.clone(), unknown.clone()];
    let world = World::with().allow(&origins).start().await;
    for (name, origin, code, write_may_be_repeated) in [
        ("NOBODY", nobody, "http:fetch", true),
        ("SILENT", silent, "http:fetch", false),
        ("GARBAGE", garbage, "http:fetch", false),
        ("BROKEN", broken, "http:fetch", false),
        ("UNKNOWN", unknown, "http:decode", false),
    ] {
        for (method, retryable) in [("GET", true), ("POST", write_may_be_repeated)] {
            let key = format!("{name}_{method}");
            world.create(&row(&key, &format!("{method} {origin}/secret-path?q=secret-query"))).await;
            let answer = world.invoke(&key, "").await.json();
            assert_eq!((&answer["ran"], &answer["error"]["code"]), (&json!(true), &json!(code)), "{key}: {answer}");
            assert_eq!(answer["error"]["retryable"], retryable, "{key}: {answer}");
            assert!(!answer["result"].as_str().unwrap().contains("secret-"), "{answer}");
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn a_row_reaches_no_address_that_is_not_public_unless_the_operator_listed_its_origin() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let world = World::with().allow(&["http://127.0.0.1:1".to_owned()]).start().await;
    for (at, (url, refusal)) in [
        (format!("http://127.0.0.1:{port}/"), "scheme"),
        (format!("http://localhost:{port}/"), "scheme"),
        (format!("https://127.0.0.1:{port}/"), "ip"),
        (format!("https://localhost:{port}/"), "name"),
        (format!("https://[::1]:{port}/"), "ip"),
        (format!("https://2130706433:{port}/"), "ip"),
        (format!("https://0x7f.1:{port}/"), "ip"),
        ("https://169.254.169.254/latest/meta-data/".to_owned(), "ip"),
        ("https://10.0.0.1/".to_owned(), "ip"),
        ("https://metadata.google.internal/".to_owned(), "name"),
        ("http://127.0.0.1:2/".to_owned(), "scheme"),
    ]
    .into_iter()
    .enumerate()
    {
        let key = format!("ROW_{at}");
        world.create(&row(&key, &format!("GET {url}"))).await;
        let shaped = world.post("/api/dispatch", &json!({"key": key, "shape": true})).await.json();
        assert_eq!(shaped["verdict"], format!("http:refused:{refusal}"), "{url}: {shaped}");
        let answer = world.invoke(&key, "").await.json();
        assert_eq!(
            (&answer["ran"], &answer["error"]["code"]),
            (&json!(true), &json!(format!("http:refused:{refusal}"))),
            "{url}: {answer}"
        );
        assert_eq!(answer["error"]["retryable"], false);
    }
    let came = tokio::time::timeout(Duration::from_millis(50), listener.accept()).await;
    assert!(came.is_err(), "somebody connected");
    world.stop().await;
}

#[tokio::test]
async fn every_url_of_the_vectors_is_refused_by_a_row_too() {
    let Some(path) = shared("vectors/ssrf.json") else { return };
    let vectors: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let world = World::start().await;
    let mut called = 0;
    for (at, vector) in vectors["urls"].as_array().unwrap().iter().enumerate() {
        let (url, expected) = (vector["url"].as_str().unwrap(), vector["expect"].as_str().unwrap());
        if expected == "resolve" {
            continue;
        }
        let key = format!("ROW_{at}");
        let written = world.post("/api/directory", &row(&key, &format!("GET {url}"))).await;
        if written.status == 422 {
            assert_eq!(written.error(), "registry_hygiene_refused: bad_template", "{url}");
            continue;
        }
        let answer = world.invoke(&key, "").await.json();
        let code = answer["error"]["code"].as_str().unwrap_or_default();
        let word = expected.trim_start_matches("refuse:").split(' ').next().unwrap();
        assert_eq!(code, format!("http:refused:{word}"), "{url}: {answer}");
        called += 1;
    }
    assert!(called > 30, "{called}");
    world.stop().await;
}

#[tokio::test]
async fn a_sensitive_row_waits_for_a_person_unless_the_owner_calls_it() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let sensitive =
        json!({"sensitive": true, "input_schema": {"type": "object", "properties": {"id": {"type": "string"}}}});
    world.create(&with(http("DROP", &format!("DELETE {}/$1", upstream.origin()), "id", ""), &sensitive)).await;
    let team = world.principal("team", &json!([{"may": "invoke", "prefix": "DROP"}])).await;
    let as_team = |body: Value| {
        callbook_tests::world::send(world.bearer(&team, reqwest::Method::POST, "/api/dispatch").json(&body))
    };
    let held = as_team(json!({"key": "DROP", "body": "7"})).await;
    assert_eq!((held.status, &held.json()["ran"]), (202, &json!(false)), "{}", held.text);
    assert_eq!(held.json()["held"]["reason"], "sensitive", "{}", held.text);
    let shape = as_team(json!({"key": "DROP", "body": "7", "shape": true})).await;
    assert_eq!((shape.status, &shape.json()["verdict"]), (200, &json!("owner_gate_required")), "{}", shape.text);
    for key in ["OTHER", "NOPE"] {
        let refused = as_team(json!({"key": key, "body": "7"})).await;
        assert_eq!(
            (refused.status, &refused.json()["needs"]),
            (403, &json!(format!("invoke:{key}"))),
            "{}",
            refused.text
        );
    }
    assert_eq!(upstream.count(), 0);
    assert_eq!(world.invoke("DROP", "7").await.json()["ok"], true);
    world.change("DROP", &json!({"sensitive": false})).await;
    assert_eq!(as_team(json!({"key": "DROP", "body": "7"})).await.json()["ok"], true);
    world.stop().await;
}
