//! I3: at most one upstream request for each caller and idempotency key in 24 hours.

use std::collections::BTreeSet;
use std::time::Duration;

use callbook_domain::clock::Clock;
use callbook_runtime::grpc::from_status;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{Answer, World, owned, send};
use callbook_tests::{book, database};
use callbook_wire::executor::v1::arguments::Form;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::executor::v1::{Arguments, InvokeRequest};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use time::macros::datetime;

/// A deployment with the row `PAY`, which posts its argument to the upstream.
async fn payments(upstream: &Upstream, clock: Clock) -> World {
    let world = World::with().allow(&[upstream.origin()]).clock(clock).start().await;
    world.create(&book::http("PAY", &format!("POST {}/pay/$1", upstream.origin()), "$1=amount", "")).await;
    world
}

async fn pay(world: &World, amount: &str, key: &str) -> Answer {
    let body = json!({"key": "PAY", "body": amount});
    send(world.owner(Method::POST, "/api/dispatch").header("idempotency-key", key).json(&body)).await
}

#[tokio::test]
async fn i3_fifty_tries_with_one_key_fire_once_and_every_loser_gets_the_stored_or_the_running_answer() {
    let upstream = Upstream::slow(Duration::from_millis(300), |_| answered(200, r#"{"paid":true}"#)).await;
    let world = payments(&upstream, Clock::system()).await;
    let tries = join_all((0..50).map(|_| pay(&world, "7", "order-1"))).await;
    let (fired, lost): (Vec<Answer>, Vec<Answer>) =
        tries.into_iter().partition(|answer| answer.status == 200 && answer.json()["replayed"] != true);
    assert_eq!((fired.len(), upstream.count()), (1, 1));
    for loser in &lost {
        match (loser.status, loser.error().as_str()) {
            (200, "") => assert_eq!(loser.json()["replayed"], true, "{}", loser.text),
            (409, "in_progress") => assert_eq!(loser.json()["ran"], false, "{}", loser.text),
            _ => panic!("a loser got {}: {}", loser.status, loser.text),
        }
    }
    let ids: BTreeSet<String> = fired.iter().chain(&lost).map(Answer::id).collect();
    assert_eq!(ids, BTreeSet::from([fired[0].id()]), "every answer names the one call");
    assert!(lost.iter().any(|loser| loser.status == 409), "some came while it ran");

    let later = pay(&world, "7", "order-1").await;
    let (stored, first) = (later.json(), fired[0].json());
    assert_eq!((later.status, &stored["replayed"]), (200, &json!(true)), "{}", later.text);
    for field in ["ok", "ran", "result", "output", "proof", "cost", "trace"] {
        assert_eq!(stored[field], first[field], "the stored answer is the answer: {field}");
    }
    assert_eq!(upstream.count(), 1);
    world.stop().await;
}

#[tokio::test]
async fn i3_fifty_tries_on_two_deployments_of_one_database_fire_once() {
    let upstream = Upstream::slow(Duration::from_millis(100), |_| answered(200, "{}")).await;
    let first = payments(&upstream, Clock::system()).await;
    let second = World::with().allow(&[upstream.origin()]).database(&first.database_url).start().await;
    let worlds = [&first, &second];
    let tries = join_all((0..50).map(|n| pay(worlds[n % 2], "7", "order-1"))).await;
    assert!(tries.iter().all(|answer| matches!(answer.status, 200 | 409)), "{tries:?}");
    assert_eq!(upstream.count(), 1);
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn i3_the_same_key_with_other_arguments_or_another_row_is_refused_and_nothing_fires() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = payments(&upstream, Clock::system()).await;
    world.create(&book::http("REFUND", &format!("POST {}/refund/$1", upstream.origin()), "$1=amount", "")).await;
    let first = pay(&world, "7", "order-1").await;
    assert_eq!(first.status, 200, "{}", first.text);
    for body in [json!({"key": "PAY", "body": "8"}), json!({"key": "REFUND", "body": "7"})] {
        let request = world.owner(Method::POST, "/api/dispatch").header("idempotency-key", "order-1").json(&body);
        let refused = send(request).await;
        assert_eq!((refused.status, refused.error().as_str()), (409, "idempotency_mismatch"), "{}", refused.text);
        assert_eq!((refused.json()["ran"].clone(), refused.id()), (json!(false), first.id()));
    }
    assert_eq!(upstream.count(), 1);
    world.stop().await;
}

#[tokio::test]
async fn the_key_is_the_same_in_the_header_in_the_body_and_over_grpc() {
    let upstream = Upstream::start(|_| answered(200, r#"{"paid":1.10}"#)).await;
    let world = payments(&upstream, Clock::system()).await;
    let first = pay(&world, "7", "order-1").await;
    let body = json!({"key": "PAY", "body": "7", "idempotency_key": "order-1"});
    let field = world.post("/api/dispatch", &body).await;
    assert_eq!((field.json()["replayed"].clone(), field.id()), (json!(true), first.id()), "{}", field.text);

    let mut executor = ExecutorServiceClient::new(world.channel().await);
    let request = |amount: &str| InvokeRequest {
        key: "PAY".into(),
        arguments: Some(Arguments { form: Some(Form::Body(amount.into())) }),
        idempotency_key: Some("order-1".into()),
        repairs: None,
        ..InvokeRequest::default()
    };
    let answer = executor.invoke(owned(request("7"))).await.unwrap().into_inner().answer.unwrap();
    assert!(answer.replayed && answer.ok);
    assert_eq!((answer.proof.unwrap().invocation_id, &answer.output[..]), (first.id(), &br#"{"paid":1.10}"#[..]));
    let refused = executor.invoke(owned(request("8"))).await.unwrap_err();
    assert_eq!(from_status(&refused).error_text(), "idempotency_mismatch");

    let both = json!({"key": "PAY", "body": "7", "idempotency_key": "order-2"});
    let two = send(world.owner(Method::POST, "/api/dispatch").header("idempotency-key", "order-1").json(&both)).await;
    assert_eq!((two.status, two.error().as_str()), (400, "invalid_request"), "two keys are one too many");
    for bad in ["", &"k".repeat(256), "a\u{e9}", "a\nb"] {
        let body = json!({"key": "PAY", "body": "7", "idempotency_key": bad});
        assert_eq!(world.post("/api/dispatch", &body).await.status, 400, "{bad:?}");
    }
    assert_eq!(upstream.count(), 1);
    world.stop().await;
}

#[tokio::test]
async fn a_failed_call_is_the_stored_answer_too() {
    let upstream = Upstream::start(|_| answered(402, r#"{"why":"no funds"}"#)).await;
    let world = payments(&upstream, Clock::system()).await;
    let (first, again) = (pay(&world, "7", "order-1").await.json(), pay(&world, "7", "order-1").await.json());
    assert_eq!((&first["ok"], &first["error"]["code"]), (&json!(false), &json!("http:402")), "{first}");
    for field in ["ok", "ran", "result", "output", "error", "proof"] {
        assert_eq!(again[field], first[field], "{field}");
    }
    assert_eq!((&again["replayed"], upstream.count()), (&json!(true), 1));
    world.stop().await;
}

#[tokio::test]
async fn two_callers_may_use_the_same_key() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = payments(&upstream, Clock::system()).await;
    let team = world.principal("team", &json!([{"may": "invoke"}])).await;
    let body = json!({"key": "PAY", "body": "7", "idempotency_key": "order-1"});
    let owners = world.post("/api/dispatch", &body).await;
    let teams = send(world.bearer(&team, Method::POST, "/api/dispatch").json(&body)).await;
    assert_eq!((owners.status, teams.status, upstream.count()), (200, 200, 2));
    assert!(teams.json()["replayed"].is_null() && teams.id() != owners.id(), "{}", teams.text);
    world.stop().await;
}

#[tokio::test]
async fn i3_after_its_day_a_key_fires_again_and_not_a_moment_sooner() {
    let clock = Clock::held(datetime!(2026-07-26 04:36 UTC));
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = payments(&upstream, clock.clone()).await;
    let first = pay(&world, "7", "order-1").await;
    clock.advance(Duration::from_secs(24 * 3_600 - 1));
    let within = pay(&world, "7", "order-1").await;
    assert_eq!((within.json()["replayed"].clone(), upstream.count()), (json!(true), 1), "{}", within.text);
    clock.advance(Duration::from_secs(1));
    let tries = join_all((0..20).map(|_| pay(&world, "8", "order-1"))).await;
    assert!(tries.iter().all(|answer| matches!(answer.status, 200 | 409)), "{tries:?}");
    assert_eq!(upstream.count(), 2, "once more, however many came");
    let fired: BTreeSet<String> = tries.iter().map(Answer::id).collect();
    assert!(fired.len() == 1 && !fired.contains(&first.id()), "{fired:?}");
    let old = world.get(&format!("/api/dispatch?receipt={}", first.id())).await;
    assert_eq!(old.status, 200, "the receipt of the first stays: {}", old.text);
    world.stop().await;
}

#[tokio::test]
async fn i3_an_erased_answer_is_told_and_never_fired_again() {
    let upstream = Upstream::start(|_| answered(200, r#"{"name":"Ada"}"#)).await;
    let world = payments(&upstream, Clock::system()).await;
    let first = pay(&world, "7", "order-1").await;
    let mut owner = database::owner(&world.database_url).await;
    sqlx::query("delete from payload").execute(&mut owner).await.unwrap();
    let again = pay(&world, "7", "order-1").await;
    assert_eq!((again.status, again.error().as_str(), again.id()), (409, "erased", first.id()), "{}", again.text);
    assert_eq!((again.json()["ran"].clone(), upstream.count()), (Value::Bool(false), 1));
    world.stop().await;
}
