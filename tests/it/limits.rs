//! I10: what is too much is refused with 429 and the time after which to come back, and nothing of it is fired.

use std::time::{Duration, Instant};

use callbook_tests::book;
use callbook_tests::door::{Answer, send};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{World, owned};
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::executor::v1::{Arguments, InvokeRequest, arguments::Form};
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

fn shed(answer: &Answer, error: &str) {
    assert_eq!((answer.status, answer.error().as_str()), (429, error), "{}", answer.text);
    let seconds: u64 = answer.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds} s");
    assert_eq!(answer.json()["ran"], false, "{}", answer.text);
}

#[tokio::test]
async fn i10_a_caller_over_its_rate_is_told_when_to_come_back_and_others_are_not_held_up() {
    let limits = "[limits]\nanonymous_per_second = 2\nprincipal_per_second = 8\n";
    let world = World::with().toml(limits).start().await;
    world.create(&book::echo("ECHO")).await;
    let team = world.principal("team", &json!([{"may": "invoke"}])).await;
    let began = Instant::now();
    let strangers = join_all((0..30).map(|_| world.look("/api/dispatch?key=ECHO"))).await;
    let most = 3.0 + 2.0 * began.elapsed().as_secs_f64();
    let (served, over): (Vec<Answer>, Vec<Answer>) = strangers.into_iter().partition(|answer| answer.status == 200);
    assert!(served.len() >= 2 && served.len() as f64 <= most, "{} were served", served.len());
    over.iter().for_each(|answer| shed(answer, "rate_limited"));
    let call = || send(world.bearer(&team, Method::POST, "/api/dispatch").json(&json!({"key": "ECHO", "body": "a"})));
    let first = call().await;
    assert_eq!(first.status, 200, "a principal has a rate of its own: {}", first.text);
    let teams = join_all((0..30).map(|_| call())).await;
    assert!(teams.iter().any(|answer| answer.status == 200), "and what is left of it is served");
    teams.iter().filter(|answer| answer.status != 200).for_each(|answer| shed(answer, "rate_limited"));
    assert_eq!(world.look("/healthz").await.status, 200, "an orchestrator is always answered");
    let wait = over[0].json()["retry_after_ms"].as_u64().unwrap();
    tokio::time::sleep(Duration::from_millis(wait.max(1_000))).await;
    assert_eq!(world.look("/api/dispatch?key=ECHO").await.status, 200, "who waits is served");
    world.stop().await;
}

#[tokio::test]
async fn i10_a_caller_with_too_much_open_is_refused() {
    let upstream = Upstream::slow(Duration::from_millis(1_500), |_| answered(200, "{}")).await;
    let limits = "[limits]\nconcurrency = 3\n";
    let world = World::with().allow(&[upstream.origin()]).toml(limits).start().await;
    world.create(&book::http("SLOW", &format!("POST {}/$1", upstream.origin()), "$1=word", "")).await;
    let answers = join_all((0..10).map(|_| world.invoke("SLOW", "a"))).await;
    let (ran, over): (Vec<Answer>, Vec<Answer>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((ran.len(), upstream.count()), (3, 3));
    over.iter().for_each(|answer| shed(answer, "rate_limited"));
    assert_eq!(world.invoke("SLOW", "a").await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn i10_an_executor_at_its_limit_sheds_before_anything_is_committed_or_fired() {
    let upstream = Upstream::slow(Duration::from_millis(1_500), |_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).toml("[limits]\nin_flight = 2\n").start().await;
    world.create(&book::http("SLOW", &format!("POST {}/$1", upstream.origin()), "$1=word", "")).await;
    let answers = join_all((0..12).map(|_| world.invoke("SLOW", "a"))).await;
    let (ran, over): (Vec<Answer>, Vec<Answer>) = answers.into_iter().partition(|answer| answer.status == 200);
    assert_eq!((ran.len(), upstream.count()), (2, 2));
    over.iter().for_each(|answer| shed(answer, "overloaded"));
    let listed = world.get("/api/invocations").await.json();
    assert_eq!(listed["invocations"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(world.invoke("SLOW", "a").await.status, 200, "a place that is free again is given");

    let channel = world.channel().await;
    let calls = (0..6).map(|_| {
        let mut executor = ExecutorServiceClient::new(channel.clone());
        let arguments = Some(Arguments { form: Some(Form::Body("a".into())) });
        async move {
            executor.invoke(owned(InvokeRequest { key: "SLOW".into(), arguments, ..InvokeRequest::default() })).await
        }
    });
    let codes: Vec<tonic::Code> =
        join_all(calls).await.into_iter().filter_map(|answer| answer.err().map(|refused| refused.code())).collect();
    assert_eq!(codes, [tonic::Code::ResourceExhausted; 4]);
    world.stop().await;
}

#[tokio::test]
async fn what_is_too_large_is_refused_by_its_part() {
    let limits = "[limits]\nrequest_bytes = 2000\nimport_bytes = 3000\nurl_bytes = 500\n";
    let world = World::with().toml(limits).start().await;
    world.create(&book::echo("ECHO")).await;
    let large = world.invoke("ECHO", &"a".repeat(3_000)).await;
    assert_eq!((large.status, large.error().as_str()), (413, "request_too_large"), "{}", large.text);
    let import = world.import("", "a".repeat(4_000)).await;
    assert_eq!(import.status, 413, "{}", import.text);
    let long = world.look(&format!("/api/dispatch?ask={}", "a".repeat(600))).await;
    assert_eq!((long.status, long.error().as_str()), (414, "request_too_large"), "{}", long.text);
    let headers = world.anyone(Method::GET, "/api/dispatch").header("x-long", "a".repeat(9 * 1_024));
    assert_eq!(send(headers).await.status, 431);
    world.stop().await;
}
