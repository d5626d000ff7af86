//! Repair and replay: a call that mends or repeats another one is linked with it, and runs by its own caller's right.

use callbook_tests::book;
use callbook_tests::door::{Answer, send};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{World, owned};
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::executor::v1::{InvokeRequest, RepairRequest, ReplayRequest};
use reqwest::Method;
use serde_json::{Value, json};

/// A deployment with the row `SEND`, whose upstream refuses the argument `bad`.
async fn world() -> (World, Upstream) {
    let upstream = Upstream::start(|seen| match seen.target.ends_with("bad") {
        true => answered(422, r#"{"no":true}"#),
        false => answered(200, r#"{"yes":true}"#),
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&book::http("SEND", &format!("POST {}/$1", upstream.origin()), "$1=word", "")).await;
    (world, upstream)
}

async fn receipt(world: &World, id: &str) -> Value {
    world.get(&format!("/api/dispatch?receipt={id}")).await.json()
}

async fn call(world: &World, key: &str, body: &Value) -> Answer {
    send(world.bearer(key, Method::POST, "/api/dispatch").json(body)).await
}

#[tokio::test]
async fn a_repair_is_linked_both_ways() {
    let (world, upstream) = world().await;
    let failed = world.invoke("SEND", "bad").await;
    assert_eq!(failed.json()["error"]["code"], "http:422", "{}", failed.text);
    let mended = world.post("/api/dispatch", &json!({"key": "SEND", "body": "good", "repairs": failed.id()})).await;
    assert_eq!((mended.status, &mended.json()["ok"]), (200, &json!(true)), "{}", mended.text);
    let same_row = world.post("/api/dispatch", &json!({"body": "better", "repairs": failed.id()})).await;
    assert_eq!(
        (same_row.status, &same_row.json()["ok"]),
        (200, &json!(true)),
        "the row of the source: {}",
        same_row.text
    );
    let (source, mend) = (receipt(&world, &failed.id()).await, receipt(&world, &mended.id()).await);
    assert_eq!(source["repaired_by"], json!([mended.id(), same_row.id()]), "{source}");
    assert_eq!((&mend["repairs"], &mend["replay_of"]), (&json!(failed.id()), &Value::Null), "{mend}");
    assert_eq!(mend["events"][0]["body"]["repairs"], json!(failed.id()), "the log says so too");
    let confirmed = world.look(&format!("/api/dispatch?confirm={}", mended.id())).await.json();
    assert_eq!(confirmed["repairs"], json!(failed.id()), "{confirmed}");
    assert_eq!(upstream.count(), 3);
    world.stop().await;
}

#[tokio::test]
async fn a_replay_sends_the_same_request_again_and_is_no_repetition_of_the_source() {
    let (world, upstream) = world().await;
    let body = json!({"key": "SEND", "body": "good", "idempotency_key": "once"});
    let source = world.post("/api/dispatch", &body).await;
    let replay = world.post("/api/dispatch", &json!({"replay": source.id()})).await;
    assert_eq!((replay.status, &replay.json()["replayed"]), (200, &Value::Null), "{}", replay.text);
    assert_ne!(replay.id(), source.id());
    let record = receipt(&world, &replay.id()).await;
    assert_eq!((&record["replay_of"], &record["repairs"]), (&json!(source.id()), &Value::Null), "{record}");
    assert_eq!(record["input"], receipt(&world, &source.id()).await["input"]);
    assert_eq!(upstream.seen().iter().map(|seen| seen.target.as_str()).collect::<Vec<_>>(), ["/good", "/good"]);

    let keyed = json!({"replay": source.id(), "idempotency_key": "again"});
    let (first, second) = (world.post("/api/dispatch", &keyed).await, world.post("/api/dispatch", &keyed).await);
    assert_eq!((&second.json()["replayed"], second.id()), (&json!(true), first.id()), "{}", second.text);

    world.change("SEND", &json!({"target": format!("POST {}/new/$1", upstream.origin())})).await;
    world.post("/api/dispatch", &json!({"replay": source.id()})).await;
    assert_eq!(upstream.seen().last().unwrap().target, "/new/good", "the row as it is now");
    world.delete("SEND").await;
    let gone = world.post("/api/dispatch", &json!({"replay": source.id()})).await;
    assert_eq!((gone.status, gone.error().as_str()), (404, "unknown_key"), "{}", gone.text);
    world.stop().await;
}

#[tokio::test]
async fn typed_arguments_are_replayed_to_the_last_digit() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let text = r#"{"key":"ECHO","args":[{"n":9007199254740993,"m":1.10,"z":-0,"big":1e400}]}"#;
    let request = world.owner(Method::POST, "/api/dispatch").header("content-type", "application/json").body(text);
    let source = send(request).await;
    let replay = world.post("/api/dispatch", &json!({"replay": source.id()})).await;
    for answer in [&source, &replay] {
        assert!(answer.text.contains(r#"{"n":9007199254740993,"m":1.10,"z":-0,"big":1e400}"#), "{}", answer.text);
    }
    world.stop().await;
}

#[tokio::test]
async fn who_has_no_right_to_the_source_does_not_learn_that_it_exists() {
    let (world, upstream) = world().await;
    let (own, others) = (world.principal("own", &json!([{"may": "invoke"}])).await, "inv_01M8Q84YJ6FJKBYQHMM4PATHEA");
    let source = world.invoke("SEND", "good").await.id();
    let before = upstream.count();
    for id in [source.as_str(), others, "nonsense"] {
        for body in [
            json!({"replay": id}),
            json!({"repairs": id, "body": "x"}),
            json!({"repairs": id, "key": "SEND", "body": "x"}),
        ] {
            let refused = call(&world, &own, &body).await;
            assert_eq!(
                (refused.status, refused.error().as_str()),
                (404, "unknown_invocation"),
                "{body}: {}",
                refused.text
            );
            assert_eq!(refused.json()["ran"], false);
            let nobody = send(world.anyone(Method::POST, "/api/dispatch").json(&body)).await;
            assert!(matches!(nobody.status, 401 | 404), "{body}: {}", nobody.text);
        }
        let full = send(world.bearer(&own, Method::GET, &format!("/api/dispatch?receipt={id}"))).await;
        assert_eq!((full.status, full.error().as_str()), (404, "unknown_invocation"), "{}", full.text);
    }
    assert_eq!(upstream.count(), before, "nothing was fired");
    world.stop().await;
}

#[tokio::test]
async fn a_replay_runs_by_the_right_of_who_asks_for_it() {
    let (world, upstream) = world().await;
    let caller = world.principal("caller", &json!([{"may": "invoke", "prefix": "SEND"}])).await;
    let reader = world.principal("reader", &json!([{"may": "read_receipts", "prefix": "SEND"}])).await;
    let both = json!([{"may": "read_receipts", "prefix": "SEND"}, {"may": "invoke", "prefix": "SEND"}]);
    let both = world.principal("both", &both).await;
    let source = call(&world, &caller, &json!({"key": "SEND", "body": "good"})).await.id();

    let refused = call(&world, &reader, &json!({"replay": source})).await;
    assert_eq!((refused.status, refused.error().as_str()), (403, "forbidden"), "{}", refused.text);
    assert_eq!((&refused.json()["needs"], upstream.count()), (&json!("invoke:SEND"), 1));
    for (key, actor) in [(&both, "principal:both"), (&caller, "principal:caller")] {
        let replay = call(&world, key, &json!({"replay": source})).await;
        assert_eq!(receipt(&world, &replay.id()).await["actor"], actor, "{}", replay.text);
    }
    let owners = world.post("/api/dispatch", &json!({"replay": source})).await;
    assert_eq!(receipt(&world, &owners.id()).await["actor"], "owner:terminal-key");
    let other = call(&world, &caller, &json!({"replay": owners.id()})).await;
    assert_eq!(other.status, 404, "the owner's replay is not the caller's: {}", other.text);
    world.stop().await;
}

#[tokio::test]
async fn repair_and_replay_are_the_same_over_grpc() {
    let (world, _upstream) = world().await;
    let source = world.invoke("SEND", "bad").await.id();
    let mut executor = ExecutorServiceClient::new(world.channel().await);
    let id = |answer: Option<callbook_wire::executor::v1::Answer>| answer.unwrap().proof.unwrap().invocation_id;
    let repair = RepairRequest { invocation_id: source.clone(), ..RepairRequest::default() };
    let refused = executor.repair(owned(repair)).await.unwrap_err();
    assert_eq!(callbook_runtime::grpc::from_status(&refused).error_text(), "missing_argument:$1");
    let repairs = InvokeRequest { repairs: Some(source.clone()), ..request("good") };
    let mended = id(executor.invoke(owned(repairs)).await.unwrap().into_inner().answer);
    let replay = ReplayRequest { invocation_id: mended.clone(), ..ReplayRequest::default() };
    let replayed = id(executor.replay(owned(replay)).await.unwrap().into_inner().answer);
    assert_eq!(receipt(&world, &mended).await["repairs"], json!(source));
    assert_eq!(receipt(&world, &replayed).await["replay_of"], json!(mended));
    world.stop().await;
}

fn request(word: &str) -> InvokeRequest {
    let form = callbook_wire::executor::v1::arguments::Form::Body(word.into());
    let arguments = Some(callbook_wire::executor::v1::Arguments { form: Some(form) });
    InvokeRequest { key: "SEND".into(), arguments, ..InvokeRequest::default() }
}
