//! Batches: calls that do not know of each other, in one request.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use callbook_tests::book::{echo, flow, http};
use callbook_tests::door::{Answer, send};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{World, keyed, owned};
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::executor::v1::invoke_batch_response::Result as Given;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_stream::StreamExt as _;
use tonic::Code;

async fn batch(world: &World, calls: &Value) -> Answer {
    world.post("/api/dispatch:batch", &json!({"calls": calls})).await
}

fn call(key: &str, body: &str) -> wire::InvokeRequest {
    let form = Some(wire::arguments::Form::Body(body.to_owned()));
    wire::InvokeRequest { key: key.into(), arguments: Some(wire::Arguments { form }), ..Default::default() }
}

#[tokio::test]
async fn each_call_of_a_batch_is_answered_as_if_it_were_alone_and_in_its_place() {
    let upstream = Upstream::start(|_| answered(500, "{\"n\":1.10}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&echo("SAY")).await;
    world.create(&flow("FLOW", "SAY: $1 > SAY: <$PREV|$1")).await;
    world.create(&flow("TWICE", "SAY: $1 > SAY: $PREV$1")).await;
    world.create(&http("FAIL", &format!("GET {}/x", upstream.origin()), "none", "")).await;
    let calls = json!([
        {"key": "SAY", "body": "first"},
        {"key": "NOBODY", "body": "x"},
        {"key": "FAIL"},
        {"key": "SAY", "args": [1.10], "surplus": 1},
        {"key": "TWICE", "body": "a"},
        {"key": "FAIL", "shape": true},
        {"key": "SAY", "body": "a|b"},
        {"body": "nothing"},
        "SAY",
        {"key": "SAY", "body": "once", "idempotency_key": "k"},
        {"key": "SAY", "body": "last"},
    ]);
    let answer = batch(&world, &calls).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let results = answer.json()["results"].clone();
    let words: Vec<String> = results.as_array().unwrap().iter().map(word).collect();
    assert_eq!(
        words,
        [
            "first",
            "404 unknown_key",
            "ERR:http:500:{\"n\":1.10}",
            "400 invalid_request",
            "aa",
            "DRY-RUN — FAIL",
            "400 extra_arguments:expected 1, got 2",
            "400 invalid_request",
            "400 invalid_request",
            "once",
            "last"
        ]
    );
    assert_eq!(upstream.count(), 1);
    let alone = world.invoke("NOBODY", "x").await.json();
    assert_eq!(results[1], alone, "a refusal is the same in a batch");
    assert!(results.as_array().unwrap().iter().all(|result| result["ran"].is_boolean()), "{results}");
    let again = batch(&world, &json!([{"key": "SAY", "body": "once", "idempotency_key": "k"}])).await.json();
    assert_eq!((&again["results"][0]["replayed"], &again["results"][0]["result"]), (&json!(true), &json!("once")));
    world.stop().await;
}

/// A result in a word: what it gave, what it would do, or why it was refused.
fn word(result: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match (&result["result"], &result["status"]) {
        (Value::String(given), _) => given.clone(),
        (_, Value::Number(status)) => format!("{status} {}", text(&result["error"])),
        _ => text(&result["proof"]["did"]),
    }
}

#[tokio::test]
async fn a_batch_as_a_whole_is_refused_before_any_of_its_calls() {
    let world = World::start().await;
    world.create(&echo("SAY")).await;
    let many = |n: usize| Value::from(vec![json!({"key": "SAY", "body": "a"}); n]);
    for bad in [json!({"calls": []}), json!({"calls": many(101)}), json!({"calls": {}}), json!([]), json!({"call": []})]
    {
        let refused = world.post("/api/dispatch:batch", &bad).await;
        assert_eq!((refused.status, refused.error().as_str()), (400, "invalid_request"), "{}", refused.text);
    }
    let request = world.owner(Method::POST, "/api/dispatch:batch").header("idempotency-key", "k");
    let refused = send(request.json(&json!({"calls": many(1)}))).await;
    assert_eq!((refused.status, &refused.json()["field"]), (400, &json!("idempotency_key")), "{}", refused.text);
    assert_eq!(world.get("/api/invocations").await.json()["invocations"], json!([]));
    let full = batch(&world, &many(100)).await.json();
    assert!(full["results"].as_array().unwrap().iter().all(|result| result["ok"] == true), "{full}");
    assert_eq!(full["results"].as_array().unwrap().len(), 100);

    let unreadable = world.post("/api/dispatch:batch", &json!({"calls": [{"kex": 1}, 7]})).await;
    assert_eq!((unreadable.status, &*unreadable.error()), (400, "invalid_request"), "{}", unreadable.text);
    let calls = json!({"calls": [{"kex": 1}, {"key": "SAY", "body": "a"}]});
    let stranger = send(world.anyone(Method::POST, "/api/dispatch:batch").json(&calls)).await;
    assert_eq!((stranger.status, stranger.error().as_str()), (401, "unauthorized"), "{}", stranger.text);
    let stranger = send(world.anyone(Method::POST, "/api/dispatch:batch").json(&json!({"calls": many(2)}))).await;
    assert_eq!((stranger.status, stranger.error().as_str()), (401, "unauthorized"), "{}", stranger.text);
    world.stop().await;
}

#[tokio::test]
async fn calls_of_a_batch_run_at_once_and_one_that_hangs_holds_no_other() {
    let upstream = Upstream::thinking(|seen| async move {
        let slow = seen.target.ends_with("slow");
        tokio::time::sleep(Duration::from_millis(if slow { 1_500 } else { 300 })).await;
        answered(200, "{}")
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&http("GET_IT", &format!("GET {}/$1", upstream.origin()), "$1=word", "")).await;
    let mut calls = vec![json!({"key": "GET_IT", "body": "quick"}); 15];
    calls.insert(0, json!({"key": "GET_IT", "body": "slow", "deadline_ms": 700}));
    let began = Instant::now();
    let results = batch(&world, &calls.into()).await.json()["results"].clone();
    assert!(began.elapsed() < Duration::from_millis(1_400), "it took {:?}", began.elapsed());
    assert_eq!(results[0]["error"]["code"], "http:timeout", "{results}");
    assert!(results.as_array().unwrap()[1..].iter().all(|result| result["ok"] == true), "{results}");
    world.stop().await;
}

#[tokio::test]
async fn a_batch_over_grpc_gives_each_call_its_own_result_with_its_place() {
    let world = World::start().await;
    world.create(&echo("TEAM.SAY")).await;
    world.create(&echo("OTHER")).await;
    let key = world.principal("team", &json!([{"may": "invoke", "prefix": "TEAM."}])).await;
    let mut client = ExecutorServiceClient::new(world.channel().await);
    let calls: Vec<wire::InvokeRequest> = vec![
        call("TEAM.SAY", "a"),
        call("OTHER", "b"),
        call("TEAM.GONE", "c"),
        call("TEAM.SAY", "d|e"),
        wire::InvokeRequest { r#async: true, ..call("TEAM.SAY", "f") },
    ];
    let mut stream = client.invoke_batch(keyed(&key, wire::InvokeBatchRequest { calls })).await.unwrap().into_inner();
    let mut results: BTreeMap<u32, Given> = BTreeMap::new();
    while let Some(message) = stream.next().await {
        let message = message.unwrap();
        assert!(results.insert(message.index, message.result.unwrap()).is_none(), "a place is there twice");
    }
    let shown: Vec<String> = results
        .values()
        .map(|given| match given {
            Given::Answer(answer) => format!("{} {} {}", answer.ran, answer.accepted, answer.result),
            Given::Refusal(refusal) => format!("{} {} {}", refusal.code, refusal.http_status, refusal.error),
        })
        .collect();
    assert_eq!(
        shown,
        [
            "true false a",
            "7 403 forbidden",
            "5 404 unknown_key",
            "3 400 extra_arguments:expected 1, got 2",
            "false true "
        ]
    );
    for calls in [Vec::new(), vec![call("TEAM.SAY", "a"); 101]] {
        let refused = client.invoke_batch(owned(wire::InvokeBatchRequest { calls })).await.unwrap_err();
        assert_eq!(refused.code(), Code::InvalidArgument);
    }
    world.stop().await;
}
