//! Calls without a listener, and listeners: `async`, server-sent events, and the same over gRPC.

use std::time::{Duration, Instant};

use callbook_tests::book::{echo, flow, http};
use callbook_tests::door::send;
use callbook_tests::issuer::Holder;
use callbook_tests::token::{proof, proof_for_receipt};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{World, keyed, owned};
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::executor::v1::progress::What;
use reqwest::Method;
use serde_json::{Value, json};
use tokio_stream::StreamExt as _;
use tonic::Code;

/// One event: its name and its data.
type Event = (String, Value);

fn read(text: &str) -> Vec<Event> {
    let fields = |block: &str, name: &str| {
        let mut lines = block.lines().filter_map(|line| line.strip_prefix(name));
        lines.next().map(|value| value.trim_start_matches(':').trim().to_owned())
    };
    let blocks = text.split("\n\n").filter_map(|block| Some((fields(block, "event")?, fields(block, "data")?)));
    blocks.map(|(name, data)| (name, serde_json::from_str(&data).unwrap())).collect()
}

fn names(events: &[Event]) -> Vec<&str> {
    events.iter().map(|(name, _)| name.as_str()).collect()
}

/// A deployment with a flow of three steps, the second of which takes its time.
async fn stage(delay: Duration) -> (World, Upstream) {
    let upstream = Upstream::slow(delay, |_| answered(200, r#"{"n":1.10}"#)).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&echo("SAY")).await;
    world.create(&http("SLOW", &format!("POST {}/slow", upstream.origin()), "none", "")).await;
    world.create(&flow("INNER", "SLOW:")).await;
    world.create(&flow("FLOW", "SAY: $1 > INNER: => N > SAY: $1 > MERGE: said=$PREV, n=$N")).await;
    (world, upstream)
}

async fn accepted(world: &World, body: &str) -> String {
    let answer = world.post("/api/dispatch", &json!({"key": "FLOW", "body": body, "async": true})).await;
    let told = answer.json();
    assert_eq!(
        (answer.status, &told["ok"], &told["ran"], &told["accepted"]),
        (202, &json!(false), &json!(false), &json!(true))
    );
    answer.id()
}

#[tokio::test]
async fn an_accepted_call_runs_on_and_is_followed_from_its_beginning_to_its_answer() {
    let (world, _upstream) = stage(Duration::from_millis(600)).await;
    let began = Instant::now();
    let id = accepted(&world, "a").await;
    assert!(began.elapsed() < Duration::from_millis(500), "it was waited for");
    let pending = world.get(&format!("/api/dispatch?receipt={id}")).await.json();
    assert_eq!(pending["status"], "PENDING", "{pending}");

    let told = world.get(&format!("/api/invocations/{id}/events")).await;
    assert_eq!((told.status, &told.headers["content-type"]), (200, &"text/event-stream".parse().unwrap()));
    let events = read(&told.text);
    assert_eq!(names(&events), ["accepted", "step", "step", "step", "step", "result"], "{}", told.text);
    assert_eq!(events[0].1, json!({"invocation_id": id}));
    let keys: Vec<&Value> = events[1..5].iter().map(|(_, step)| &step["key"]).collect();
    assert_eq!(keys, ["SAY", "SLOW", "INNER", "SAY"], "each step of any depth as it ended");
    assert!(events[1..5].iter().all(|(_, step)| step["status"] == "PROVEN_MATERIAL_RESULT"), "{events:?}");
    let result = &events[5].1;
    assert_eq!(
        (&result["ok"], &result["ran"], &result["proof"]["invocation_id"]),
        (&json!(true), &json!(true), &json!(id))
    );
    assert!(told.text.contains(r#""output":{"said":"a","n":{"n":1.10}}"#), "{}", told.text);
    assert_eq!(result.get("replayed"), None, "{result}");
    let again = world.get(&format!("/api/invocations/{id}/events")).await;
    assert_eq!(names(&read(&again.text)), names(&events), "what is over can be followed too");
    world.stop().await;
}

#[tokio::test]
async fn events_come_as_they_happen_and_who_hangs_up_changes_nothing() {
    let (world, upstream) = stage(Duration::from_millis(1_500)).await;
    let id = accepted(&world, "a").await;
    let mut response = world.owner(Method::GET, &format!("/api/invocations/{id}/events")).send().await.unwrap();
    let (began, mut text) = (Instant::now(), String::new());
    while !text.contains("event: step") {
        let chunk = tokio::time::timeout(Duration::from_secs(1), response.chunk()).await;
        text.push_str(std::str::from_utf8(&chunk.expect("the first step is told at once").unwrap().unwrap()).unwrap());
    }
    assert!(began.elapsed() < Duration::from_secs(1), "after {:?}", began.elapsed());
    drop(response);
    let told = world.get(&format!("/api/invocations/{id}/events")).await;
    assert_eq!(read(&told.text).last().unwrap().1["ok"], true, "{}", told.text);
    assert_eq!(upstream.count(), 1);
    world.stop().await;
}

#[tokio::test]
async fn a_call_is_followed_by_whoever_may_read_its_receipt_and_nobody_else() {
    let (world, _upstream) = stage(Duration::ZERO).await;
    let own = world.principal("own", &json!([{"may": "invoke", "prefix": "FLOW"}])).await;
    let other = world.principal("other", &json!([{"may": "invoke"}])).await;
    let body = json!({"key": "FLOW", "body": "a", "async": true});
    let answer = send(world.bearer(&own, Method::POST, "/api/dispatch").json(&body)).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    let path = format!("/api/invocations/{}/events", answer.id());
    assert_eq!(send(world.bearer(&own, Method::GET, &path)).await.status, 200);
    let refused = send(world.bearer(&other, Method::GET, &path)).await;
    assert_eq!((refused.status, refused.error().as_str()), (404, "unknown_invocation"), "{}", refused.text);
    assert_eq!(world.look(&path).await.status, 401);
    assert_eq!(world.get("/api/invocations/inv_0/events").await.status, 404);
    world.stop().await;
}

#[tokio::test]
async fn a_holder_proves_that_it_may_follow_and_is_not_told_of_rows_that_it_does_not_see() {
    let (world, _upstream) = stage(Duration::ZERO).await;
    let alice = Holder::new(&world.clock);
    let wanted = json!({"keys": ["FLOW", "INNER"], "effect": "write", "holder": alice.jwk()});
    let token = world.mint(&wanted).await;
    let done = world.spend(&token, Some(&proof(&alice, &token, "FLOW", "a")), "FLOW", "a").await;
    assert_eq!(done.json()["ok"], true, "{}", done.text);
    let path = format!("/api/invocations/{}/events", done.id());
    let stolen = send(world.cap(&token, None, Method::GET, &path)).await;
    assert_eq!((stolen.status, &*stolen.error()), (401, "pop_required"), "{}", stolen.text);
    let asking = proof_for_receipt(&alice, &token, "FLOW", &done.id());
    let told = send(world.cap(&token, Some(&asking), Method::GET, &path)).await;
    let events = read(&told.text);
    assert_eq!(names(&events), ["accepted", "step", "result"], "{}", told.text);
    assert_eq!(events[1].1["key"], "INNER");
    world.stop().await;
}

#[tokio::test]
async fn async_goes_with_a_call_alone_and_a_refusal_is_told_at_once() {
    let (world, _upstream) = stage(Duration::ZERO).await;
    let id = world.invoke("SAY", "a").await.id();
    for body in [
        json!({"replay": id, "async": true}),
        json!({"key": "SAY", "body": "a", "repairs": id, "async": true}),
        json!({"key": "SAY", "body": "a", "shape": true, "async": true}),
    ] {
        let refused = world.post("/api/dispatch", &body).await;
        assert_eq!((refused.status, &refused.json()["field"]), (400, &json!("async")), "{}", refused.text);
    }
    let refused = world.post("/api/dispatch", &json!({"key": "SAY", "body": "a|b", "async": true})).await;
    assert_eq!((refused.status, refused.json()["ran"].clone()), (400, json!(false)), "{}", refused.text);
    let once = json!({"key": "SAY", "body": "a", "async": true, "idempotency_key": "k"});
    let first = world.post("/api/dispatch", &once).await;
    world.get(&format!("/api/invocations/{}/events", first.id())).await;
    let second = world.post("/api/dispatch", &once).await;
    assert_eq!((second.status, second.id(), &second.json()["replayed"]), (200, first.id(), &json!(true)));
    world.stop().await;
}

async fn told(mut stream: tonic::Streaming<wire::StreamInvocationResponse>) -> Vec<What> {
    let mut told = Vec::new();
    while let Some(message) = stream.next().await {
        told.push(message.unwrap().progress.unwrap().what.unwrap());
    }
    told
}

#[tokio::test]
async fn a_call_tells_of_its_progress_over_grpc_at_any_executor() {
    let (world, upstream) = stage(Duration::from_millis(700)).await;
    let replica = World::with().allow(&[upstream.origin()]).database(&world.database_url).start().await;
    let mut client = ExecutorServiceClient::new(world.channel().await);
    let form = Some(wire::arguments::Form::Body("a".to_owned()));
    let call =
        wire::InvokeRequest { key: "FLOW".into(), arguments: Some(wire::Arguments { form }), ..Default::default() };
    let request = wire::StreamInvocationRequest { call: Some(call.clone()) };
    let mut stream = client.stream_invocation(owned(request.clone())).await.unwrap().into_inner();
    let Some(What::Accepted(id)) = stream.next().await.unwrap().unwrap().progress.unwrap().what else {
        panic!("no id")
    };

    let mut elsewhere = ExecutorServiceClient::new(replica.channel().await);
    let follow = wire::FollowInvocationRequest { invocation_id: id.clone() };
    let mut followed = elsewhere.follow_invocation(owned(follow.clone())).await.unwrap().into_inner();
    let mut seen = Vec::new();
    while let Some(message) = followed.next().await {
        seen.push(message.unwrap().progress.unwrap().what.unwrap());
    }
    let here = told(stream).await;
    assert_eq!(seen[1..], here[..], "both executors tell the same");
    assert_eq!(seen[0], What::Accepted(id.clone()));
    let Some(What::Answer(answer)) = here.last() else { panic!("{here:?}") };
    assert!(answer.ok && answer.ran && !answer.replayed && !answer.accepted, "{answer:?}");
    assert_eq!(answer.output, r#"{"said":"a","n":{"n":1.10}}"#);

    let key = world.principal("other", &json!([{"may": "invoke"}])).await;
    assert_eq!(elsewhere.follow_invocation(keyed(&key, follow)).await.unwrap_err().code(), Code::NotFound);
    let nobody = wire::StreamInvocationRequest { call: Some(wire::InvokeRequest { key: "NOBODY".into(), ..call }) };
    assert_eq!(client.stream_invocation(owned(nobody)).await.unwrap_err().code(), Code::NotFound);
    let mut short = owned(request);
    short.set_timeout(Duration::from_millis(300));
    let mut stream = client.stream_invocation(short).await.unwrap().into_inner();
    let mut last = None;
    while let Some(message) = stream.next().await {
        last = Some(message);
    }
    let last = last.unwrap();
    let is_typed = match &last {
        Ok(message) => matches!(message.progress.as_ref().unwrap().what, Some(What::Answer(_))),
        Err(status) => matches!(status.code(), Code::DeadlineExceeded | Code::Cancelled),
    };
    assert!(is_typed, "{last:?}");
    replica.stop().await;
    world.stop().await;
}

#[tokio::test]
async fn a_gateway_that_stops_does_not_wait_for_its_listeners() {
    let (world, _upstream) = stage(Duration::from_secs(4)).await;
    let id = accepted(&world, "a").await;
    let listening = tokio::spawn(world.owner(Method::GET, &format!("/api/invocations/{id}/events")).send());
    let response = listening.await.unwrap().unwrap();
    let began = Instant::now();
    let (text, ()) = tokio::join!(response.text(), world.stop());
    let text = text.unwrap();
    assert!(text.contains("event: problem") && text.contains("shutting_down"), "{text}");
    assert!(began.elapsed() < Duration::from_secs(8), "it took {:?}", began.elapsed());
}
