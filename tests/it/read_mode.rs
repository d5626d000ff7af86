//! The operator's switch: rows that read are committed after their call, and the receipt says so.

use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{World, send};
use callbook_tests::{book, database};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

/// A deployment in read mode whose upstream says how many calls are on record when it is asked.
async fn world() -> (World, Upstream) {
    let url = database::fresh().await;
    let looked_at = url.clone();
    let upstream = Upstream::thinking(move |seen| {
        let url = looked_at.clone();
        async move {
            let running: i64 = sqlx::query_scalar("select count(*) from invocation where state = 'running'")
                .fetch_one(&mut database::owner(&url).await)
                .await
                .unwrap();
            let status = if seen.target.contains("fail") { 500 } else { 200 };
            answered(status, &format!("{{\"running\":{running}}}"))
        }
    })
    .await;
    let on = |overrides: &mut callbook_runtime::settings::Overrides| overrides.read_mode = Some("on".into());
    let world = World::with().allow(&[upstream.origin()]).database(&url).set(on).start().await;
    world.create(&book::http("READ", &format!("GET {}/$1", upstream.origin()), "$1=mark", "")).await;
    world.create(&book::http("WRITE", &format!("POST {}/$1", upstream.origin()), "$1=mark", "")).await;
    (world, upstream)
}

async fn receipt(world: &World, id: &str) -> Value {
    let receipt = world.get(&format!("/api/dispatch?receipt={id}")).await;
    assert_eq!(receipt.status, 200, "{}", receipt.text);
    receipt.json()
}

fn kinds(receipt: &Value) -> Vec<&str> {
    receipt["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn in_read_mode_a_read_is_committed_after_its_call_and_a_write_before() {
    let (world, _upstream) = world().await;
    let read = world.invoke("READ", "a").await;
    assert_eq!((&read.json()["mode"], &read.json()["output"]["running"]), (&json!("read"), &json!(0)), "{}", read.text);
    let write = world.invoke("WRITE", "a").await;
    assert_eq!(
        (&write.json()["mode"], &write.json()["output"]["running"]),
        (&Value::Null, &json!(1)),
        "{}",
        write.text
    );
    for (answer, mode) in [(&read, "read"), (&write, "durable")] {
        let receipt = receipt(&world, &answer.id()).await;
        assert_eq!((receipt["mode"].as_str(), receipt["material"].as_bool()), (Some(mode), Some(true)), "{receipt}");
        assert_eq!(kinds(&receipt), ["intent", "result"]);
        let events = receipt["events"].as_array().unwrap();
        assert!(events.iter().all(|event| event["body"]["mode"] == mode), "{receipt}");
        let confirmed = world.get(&format!("/api/dispatch?confirm={}", answer.id())).await.json();
        assert_eq!((&confirmed["confirmed"], confirmed["mode"].as_str()), (&json!(true), Some(mode)), "{confirmed}");
    }
    world.stop().await;
}

#[tokio::test]
async fn in_read_mode_a_read_with_an_idempotency_key_is_durable_and_fires_once() {
    let (world, upstream) = world().await;
    let call = || {
        let body = json!({"key": "READ", "body": "a", "idempotency_key": "once"});
        send(world.owner(Method::POST, "/api/dispatch").json(&body))
    };
    let (first, again) = (call().await, call().await);
    let (mode, running) = (&first.json()["mode"], &first.json()["output"]["running"]);
    assert_eq!((mode, running), (&Value::Null, &json!(1)), "{}", first.text);
    assert_eq!((&again.json()["replayed"], again.id(), upstream.count()), (&json!(true), first.id(), 1));
    world.stop().await;
}

#[tokio::test]
async fn in_read_mode_every_answer_has_its_receipt_at_once_and_failures_too() {
    let (world, upstream) = world().await;
    let calls = (0..40).map(|n| {
        let (world, mark) = (&world, if n % 4 == 0 { "fail" } else { "fine" });
        async move {
            let answer = world.invoke("READ", mark).await;
            let receipt = receipt(world, &answer.id()).await;
            let status = if mark == "fail" { "PROVEN_ATTEMPT_NO_MATERIAL_RESULT" } else { "PROVEN_MATERIAL_RESULT" };
            assert_eq!((&receipt["mode"], receipt["status"].as_str()), (&json!("read"), Some(status)), "{receipt}");
            assert_eq!(kinds(&receipt), ["intent", "result"]);
        }
    });
    join_all(calls).await;
    assert_eq!(upstream.count(), 40);
    world.stop().await;
}

#[tokio::test]
async fn what_is_answered_once_it_is_committed_is_committed_in_read_mode_too() {
    let (world, _upstream) = world().await;
    let accepted = world.post("/api/dispatch", &json!({"key": "READ", "body": "a", "async": true})).await;
    assert_eq!(accepted.status, 202, "{}", accepted.text);
    assert_eq!(receipt(&world, &accepted.id()).await["mode"], "durable", "it is on record with its answer");
    world.stop().await;
}
