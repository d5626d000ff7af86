//! I12: without Postgres the book is still read and nothing is fired; with it everything goes on.

use std::path::Path;
use std::time::{Duration, Instant};

use callbook::cluster::{Cluster, DATABASE, ensure_database};
use callbook_tests::book;
use callbook_tests::door::Answer;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{World, send};
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

/// A server of the test's own, which can be stopped and started again where it was.
async fn cluster(data: &Path) -> Cluster {
    let data = data.to_owned();
    tokio::task::spawn_blocking(move || Cluster::start(&data, None).unwrap()).await.unwrap()
}

async fn stop(cluster: Cluster) {
    tokio::task::spawn_blocking(move || drop(cluster)).await.unwrap();
}

fn is_stale(answer: &Answer) -> bool {
    answer.headers.contains_key("x-callbook-stale")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_without_postgres_ask_and_contract_go_on_and_invoke_refuses_before_it_fires() {
    let data = tempfile::tempdir().unwrap();
    let first = cluster(data.path()).await;
    let url = first.url(DATABASE);
    ensure_database(&url).await.unwrap();
    let upstream = Upstream::slow(Duration::from_millis(20), |_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).database(&url).start().await;
    world.create(&book::http("PAY", &format!("POST {}/pay/$1", upstream.origin()), "$1=amount", "")).await;
    let team = world.principal("team", &json!([{"may": "invoke"}])).await;
    // many connections, all of which will be dead
    let calls = join_all((0..60).map(|_| world.invoke("PAY", "1"))).await;
    let id = calls[0].id();
    let fired = upstream.count();
    assert_eq!(fired, 60);

    stop(first).await;
    for _ in 0..3 {
        let began = Instant::now();
        let asked = world.look("/api/dispatch?ask=ask%20the%20upstream").await;
        assert_eq!((asked.status, &asked.json()["best"]["key"]), (200, &json!("PAY")), "{}", asked.text);
        let contract = world.look("/api/dispatch?key=PAY").await;
        assert_eq!((contract.status, &contract.json()["key"]), (200, &json!("PAY")), "{}", contract.text);
        assert!(is_stale(&contract) && began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        for request in [world.owner(Method::POST, "/api/dispatch"), world.bearer(&team, Method::POST, "/api/dispatch")]
        {
            let refused = send(request.json(&json!({"key": "PAY", "body": "1"}))).await;
            assert_eq!((refused.status, refused.error().as_str()), (503, "database_unavailable"), "{}", refused.text);
            assert_eq!(refused.json()["ran"], false, "{}", refused.text);
            assert!(refused.headers.contains_key("retry-after"));
        }
        assert_eq!(world.get(&format!("/api/dispatch?confirm={id}")).await.status, 503);
    }
    assert!(is_stale(&world.look("/api/dispatch?ask=ask%20the%20upstream").await));
    assert_eq!(world.look("/healthz").await.status, 200, "the process lives");
    assert_eq!(upstream.count(), fired, "nothing was fired");

    let second = cluster(data.path()).await;
    let began = Instant::now();
    while world.invoke("PAY", "2").await.status != 200 {
        assert!(began.elapsed() < Duration::from_secs(2), "invoke does not come back");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    while is_stale(&world.look("/api/dispatch?key=PAY").await) {
        assert!(began.elapsed() < Duration::from_secs(2), "the book stays stale");
    }
    tokio::time::sleep(Duration::from_secs(2).saturating_sub(began.elapsed())).await;
    for answer in join_all((0..60).map(|_| world.invoke("PAY", "3"))).await {
        assert_eq!(answer.status, 200, "two seconds later everything works: {}", answer.text);
    }
    let receipt = world.get(&format!("/api/dispatch?receipt={id}")).await;
    assert_eq!((receipt.status, &receipt.json()["material"]), (200, &json!(true)), "{}", receipt.text);
    world.create(&book::echo("LATER")).await;
    assert_eq!(world.invoke("LATER", "a").await.status, 200);
    world.stop().await;
    stop(second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i12_two_seconds_after_a_restart_of_postgres_no_request_meets_a_dead_connection() {
    let data = tempfile::tempdir().unwrap();
    let first = cluster(data.path()).await;
    let url = first.url(DATABASE);
    ensure_database(&url).await.unwrap();
    let world = World::with().database(&url).start().await;
    world.create(&book::echo("ECHO")).await;
    let receipt = format!("/api/dispatch?receipt={}", world.invoke("ECHO", "a").await.id());
    let read = || join_all((0..120).map(|_| world.get(&receipt)));
    assert!(read().await.iter().all(|answer| answer.status == 200), "this opens every connection");
    stop(first).await;
    let second = cluster(data.path()).await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let failed: Vec<Answer> = read().await.into_iter().filter(|answer| answer.status != 200).collect();
    assert!(failed.is_empty(), "{} of 120 failed, such as {}", failed.len(), failed[0].text);
    for answer in join_all((0..40).map(|_| world.invoke("ECHO", "b"))).await {
        assert_eq!(answer.status, 200, "{}", answer.text);
    }
    world.stop().await;
    stop(second).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i2_a_result_that_cannot_be_written_is_written_when_postgres_is_back() {
    let data = tempfile::tempdir().unwrap();
    let first = cluster(data.path()).await;
    let url = first.url(DATABASE);
    ensure_database(&url).await.unwrap();
    let upstream = Upstream::slow(Duration::from_millis(1_500), |_| answered(200, r#"{"paid":true}"#)).await;
    let world = World::with().allow(&[upstream.origin()]).database(&url).start().await;
    world.create(&book::http("PAY", &format!("POST {}/pay/$1", upstream.origin()), "$1=amount", "")).await;
    let calling = join_all((0..10).map(|_| world.invoke("PAY", "1")));
    let outage = async {
        while upstream.count() < 10 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop(first).await;
        tokio::time::sleep(Duration::from_millis(2_500)).await;
        cluster(data.path()).await
    };
    let (answers, second) = tokio::join!(calling, outage);
    for answer in answers {
        assert_eq!((answer.status, &answer.json()["ok"]), (200, &json!(true)), "{}", answer.text);
        let receipt = world.get(&format!("/api/dispatch?receipt={}", answer.id())).await.json();
        assert_eq!(receipt["output"]["text"], r#"{"paid":true}"#, "{receipt}");
    }
    assert_eq!(upstream.count(), 10);
    world.stop().await;
    stop(second).await;
}
