//! I9: a process that is killed loses no acknowledged receipt, and what it left open is resolved. A process that is
//! asked to stop leaves nothing open.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use callbook_tests::door::{Answer, Door, attempt};
use callbook_tests::process::Process;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::{book, database};
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use sqlx::PgConnection;

fn up(url: &str, upstream: &Upstream) -> Process {
    Process::start(&["up"], &[("DATABASE_URL", url), ("CALLBOOK_ALLOW_ORIGINS", &upstream.origin())])
}

/// An upstream that is quick for every fourth mark and slow for the others.
async fn sluggish(slow: Duration) -> Upstream {
    Upstream::thinking(move |seen| async move {
        let quick = number(&seen.target).is_multiple_of(4);
        tokio::time::sleep(if quick { Duration::from_millis(30) } else { slow }).await;
        answered(200, r#"{"done":true}"#)
    })
    .await
}

fn number(target: &str) -> u64 {
    target.rsplit('/').next().and_then(|mark| mark.parse().ok()).unwrap_or_default()
}

/// Calls the row with each mark at once. What got no answer is left out.
async fn call(door: &Door, marks: std::ops::Range<u64>) -> Vec<(u64, Answer)> {
    let calls = marks.map(|mark| async move {
        let body = json!({"key": "WORK", "body": mark.to_string(), "idempotency_key": format!("mark-{mark}")});
        Some((mark, attempt(door.owner(Method::POST, "/api/dispatch").json(&body)).await.ok()?))
    });
    join_all(calls).await.into_iter().flatten().collect()
}

/// What is on record of each mark: the state, and the log.
async fn recorded(database: &mut PgConnection) -> BTreeMap<u64, (String, Vec<String>)> {
    let found: Vec<(String, String, Vec<String>)> = sqlx::query_as(
        "select idempotency_key, state, array(select kind from event where invocation = i.id order by id)
         from invocation i where idempotency_key is not null",
    )
    .fetch_all(database)
    .await
    .unwrap();
    let number = |key: &str| key.trim_start_matches("mark-").parse().unwrap();
    found.into_iter().map(|(key, state, kinds)| (number(&key), (state, kinds))).collect()
}

async fn running(database: &mut PgConnection) -> i64 {
    sqlx::query_scalar("select count(*) from invocation where state = 'running'").fetch_one(database).await.unwrap()
}

/// Everything that was answered has its receipt; everything that reached the upstream has its intent, once.
async fn nothing_is_lost(
    door: &Door,
    acknowledged: &[(u64, Answer)],
    upstream: &Upstream,
    database: &mut PgConnection,
) {
    for (mark, answer) in acknowledged.iter().filter(|(_, answer)| answer.status == 200) {
        let receipt = door.get(&format!("/api/dispatch?receipt={}", answer.id())).await;
        let body = receipt.json();
        assert_eq!((receipt.status, &body["material"]), (200, &json!(true)), "{mark}: {}", receipt.text);
        assert_eq!(body["output"]["text"], r#"{"done":true}"#, "{}", receipt.text);
    }
    let recorded = recorded(database).await;
    let mut hits: BTreeMap<u64, usize> = BTreeMap::new();
    for seen in upstream.seen() {
        *hits.entry(number(&seen.target)).or_default() += 1;
    }
    for (mark, hits) in hits {
        assert_eq!(hits, 1, "{mark} reached the upstream {hits} times");
        assert_eq!(recorded[&mark].1[0], "intent", "{mark} reached the upstream without an intent");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_kill_9_during_two_hundred_calls_loses_no_receipt_and_every_intent_ends() {
    let url = database::fresh().await;
    let upstream = sluggish(Duration::from_secs(20)).await;
    let first = up(&url, &upstream);
    first.create(&book::http("WORK", &format!("POST {}/$1", upstream.origin()), "$1=mark", "")).await;
    let calling = tokio::spawn({
        let door = (*first).clone();
        async move { call(&door, 0..200).await }
    });
    while upstream.count() < 200 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    first.kill();
    let killed = Instant::now();
    let acknowledged = calling.await.unwrap();
    assert!(acknowledged.len() >= 40, "only {} calls were quick enough", acknowledged.len());

    let second = up(&url, &upstream);
    let mut database = database::owner(&url).await;
    nothing_is_lost(&second, &acknowledged, &upstream, &mut database).await;
    let open = running(&mut database).await;
    assert!(open >= 100, "{open} were open");
    let early = call(&second, 1..2).await;
    assert_eq!((early[0].1.status, early[0].1.error().as_str()), (409, "in_progress"), "{}", early[0].1.text);
    while running(&mut database).await > 0 {
        assert!(killed.elapsed() < Duration::from_secs(60), "intents are open after a minute");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    for (mark, (state, kinds)) in recorded(&mut database).await {
        let end = if state == "done" { "result" } else { "unknown" };
        assert_eq!(kinds, ["intent", end], "{mark} is {state}");
    }
    let late = call(&second, 1..2).await.remove(0).1;
    let answer = late.json();
    assert_eq!(
        (&answer["ok"], &answer["replayed"], &answer["error"]["code"]),
        (&json!(false), &json!(true), &json!("unknown")),
        "{answer}"
    );
    let confirmed = second.get(&format!("/api/dispatch?confirm={}", late.id())).await.json();
    assert_eq!(confirmed["status"], "UNKNOWN", "{confirmed}");
    assert_eq!(upstream.count(), 200, "nothing was fired again");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_kills_at_any_moment_lose_nothing_and_a_restart_ends_what_the_dead_left_open() {
    let url = database::fresh().await;
    let upstream = sluggish(Duration::from_millis(250)).await;
    let mut process = up(&url, &upstream);
    process.create(&book::http("WORK", &format!("POST {}/$1", upstream.origin()), "$1=mark", "")).await;
    let mut database = database::owner(&url).await;
    let mut acknowledged = Vec::new();
    for round in 0..5u64 {
        let before = upstream.count();
        let calling = tokio::spawn({
            let door = (*process).clone();
            async move { call(&door, round * 100..round * 100 + 60).await }
        });
        tokio::time::sleep(Duration::from_millis(40 + round * 70)).await;
        if round == 4 {
            // somebody has an answer now, however busy the machine is
            while upstream.count() == before {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(Duration::from_millis(400)).await;
        }
        process.kill();
        acknowledged.extend(calling.await.unwrap());
        // twenty seconds of silence, without the wait
        let silence = "update executor set heartbeat_at = heartbeat_at - interval '1 minute'";
        sqlx::query(silence).execute(&mut database).await.unwrap();
        process = up(&url, &upstream);
        nothing_is_lost(&process, &acknowledged, &upstream, &mut database).await;
        let began = Instant::now();
        while running(&mut database).await > 0 {
            assert!(began.elapsed() < Duration::from_secs(8), "a restart does not end the calls of the dead");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    assert!(!acknowledged.is_empty(), "no call was quick enough");
    let (code, _) = tokio::task::spawn_blocking(move || process.terminate()).await.unwrap();
    assert_eq!(code, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_asked_to_stop_answers_what_runs_and_ends_at_once() {
    let url = database::fresh().await;
    let upstream = sluggish(Duration::from_millis(900)).await;
    let process = up(&url, &upstream);
    process.create(&book::http("WORK", &format!("POST {}/$1", upstream.origin()), "$1=mark", "")).await;
    let door = (*process).clone();
    let calling = tokio::spawn({
        let door = door.clone();
        async move { call(&door, 0..60).await }
    });
    while upstream.count() < 60 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (code, took) = tokio::task::spawn_blocking(move || process.terminate()).await.unwrap();
    assert_eq!(code, Some(0));
    assert!(took < Duration::from_secs(4), "it took {took:?} to stop");
    let answers = calling.await.unwrap();
    assert_eq!(answers.len(), 60, "a call in flight was not answered");
    for (mark, answer) in &answers {
        assert_eq!((answer.status, &answer.json()["ok"]), (200, &json!(true)), "{mark}: {}", answer.text);
    }
    let mut database = database::owner(&url).await;
    assert_eq!(running(&mut database).await, 0);
    let left: i64 = sqlx::query_scalar("select count(*) from executor").fetch_one(&mut database).await.unwrap();
    assert_eq!(left, 0, "an executor that left in order is not waited for");
    assert!(attempt(door.owner(Method::GET, "/healthz")).await.is_err(), "nobody listens any more");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_kill_9_takes_the_private_postgres_along_and_a_restart_finds_every_acknowledged_receipt() {
    let upstream = sluggish(Duration::from_secs(20)).await;
    let data = tempfile::tempdir().unwrap();
    let (folder, origin) = (data.path().to_str().unwrap().to_owned(), upstream.origin());
    let start = || {
        let own = [("DATABASE_URL", ""), ("CALLBOOK_DATA_DIR", &*folder), ("CALLBOOK_ALLOW_ORIGINS", &*origin)];
        Process::start(&["up"], &own)
    };
    let first = start();
    first.create(&book::http("WORK", &format!("POST {origin}/$1"), "$1=mark", "")).await;
    let calling = tokio::spawn({
        let door = (*first).clone();
        async move { call(&door, 0..120).await }
    });
    while upstream.count() < 120 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(700)).await;
    first.kill();
    let acknowledged = calling.await.unwrap();
    assert!(acknowledged.len() >= 25, "only {} calls were quick enough", acknowledged.len());
    let second = start();
    for (mark, answer) in &acknowledged {
        let receipt = second.get(&format!("/api/dispatch?receipt={}", answer.id())).await;
        assert_eq!((receipt.status, &receipt.json()["material"]), (200, &json!(true)), "{mark}: {}", receipt.text);
    }
    let listed = second.get("/api/invocations?limit=500").await.json();
    assert_eq!(listed["invocations"].as_array().unwrap().len(), 120, "every upstream hit has its intent");
    let (code, took) = tokio::task::spawn_blocking(move || second.terminate()).await.unwrap();
    assert!(code == Some(0) && took < Duration::from_secs(5), "{code:?} after {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_a_call_past_its_lease_is_unknown_for_good_and_its_late_answer_says_that_it_was_fired() {
    let url = database::fresh().await;
    let upstream = sluggish(Duration::from_secs(8)).await;
    let process = up(&url, &upstream);
    process.create(&book::http("WORK", &format!("POST {}/$1", upstream.origin()), "$1=mark", "")).await;
    let calling = tokio::spawn({
        let door = (*process).clone();
        async move { call(&door, 1..2).await.remove(0).1 }
    });
    while upstream.count() == 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let mut database = database::owner(&url).await;
    sqlx::query("update invocation set lease_until = clock_timestamp()").execute(&mut database).await.unwrap();
    let late = calling.await.unwrap();
    assert_eq!((late.status, late.error().as_str()), (503, "result_not_stored"), "{}", late.text);
    assert_eq!((&late.json()["ran"], &late.json()["fired"]), (&json!(true), &json!(true)), "{}", late.text);
    let receipt = process.get(&format!("/api/dispatch?receipt={}", late.id())).await.json();
    let kinds: Vec<&str> = receipt["events"].as_array().unwrap().iter().filter_map(|e| e["kind"].as_str()).collect();
    assert_eq!((receipt["status"].as_str(), kinds), (Some("UNKNOWN"), vec!["intent", "unknown"]), "{receipt}");
}
