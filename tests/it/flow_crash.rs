//! I9 for trees: a process that is killed in the middle of a flow leaves a tree in which each call is a result or unknown.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use callbook_tests::door::attempt;
use callbook_tests::process::Process;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::{book, database};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::PgConnection;

fn up(url: &str, upstream: &Upstream) -> Process {
    Process::start(&["up"], &[("DATABASE_URL", url), ("CALLBOOK_ALLOW_ORIGINS", &upstream.origin())])
}

/// An upstream that answers `quick` at once and anything else never in time.
async fn sluggish() -> Upstream {
    Upstream::thinking(|seen| async move {
        let slow = !seen.target.ends_with("quick");
        tokio::time::sleep(Duration::from_secs(if slow { 60 } else { 0 })).await;
        answered(200, r#"{"done":true}"#)
    })
    .await
}

/// For each key its calls: whether a parent is named, the state, and the log.
async fn tree(database: &mut PgConnection) -> BTreeMap<String, Vec<(bool, String, Vec<String>)>> {
    let found: Vec<(String, bool, String, Vec<String>)> = sqlx::query_as(
        "select key, parent is not null, state, array(select kind from event where invocation = i.id order by id)
         from invocation i order by id",
    )
    .fetch_all(database)
    .await
    .unwrap();
    let mut tree: BTreeMap<String, Vec<(bool, String, Vec<String>)>> = BTreeMap::new();
    for (key, has_parent, state, kinds) in found {
        tree.entry(key).or_default().push((has_parent, state, kinds));
    }
    tree
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_kill_9_in_the_middle_of_a_flow_leaves_each_step_a_result_or_unknown() {
    let url = database::fresh().await;
    let upstream = sluggish().await;
    let first = up(&url, &upstream);
    first.create(&book::http("WORK", &format!("POST {}/$1", upstream.origin()), "$1=mark", "")).await;
    first.create(&book::flow("INNER", "WORK: quick > WORK: slow > WORK: never")).await;
    first
        .create(&book::flow("OUTER", "WORK: quick > { INNER: [\"$1\"] | WORK: quick | WORK: slow } > WORK: never"))
        .await;
    let calling = tokio::spawn({
        let door = (*first).clone();
        let body = json!({"key": "OUTER", "body": "x", "idempotency_key": "the-flow"});
        async move { attempt(door.owner(Method::POST, "/api/dispatch").json(&body)).await }
    });
    while upstream.count() < 5 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    first.kill();
    assert!(calling.await.unwrap().is_err(), "the flow had not ended");

    let mut database = database::owner(&url).await;
    // twenty seconds of silence, without the wait
    sqlx::query("update executor set heartbeat_at = heartbeat_at - interval '1 minute'")
        .execute(&mut database)
        .await
        .unwrap();
    let second = up(&url, &upstream);
    let began = Instant::now();
    while tree(&mut database).await.values().flatten().any(|(_, state, _)| state == "running") {
        assert!(began.elapsed() < Duration::from_secs(20), "a restart does not end the calls of the dead");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let tree = tree(&mut database).await;
    let ended =
        |has_parent, state: &str, end: &str| (has_parent, state.to_owned(), vec!["intent".to_owned(), end.to_owned()]);
    assert_eq!(tree["OUTER"], [ended(false, "unknown", "unknown")]);
    assert_eq!(tree["INNER"], [ended(true, "unknown", "unknown")]);
    let mut work = tree["WORK"].clone();
    work.sort();
    let (done, unknown) = (ended(true, "done", "result"), ended(true, "unknown", "unknown"));
    assert_eq!(work, [done.clone(), done.clone(), done, unknown.clone(), unknown]);
    assert_eq!(upstream.count(), 5, "nothing was fired again");

    let body = json!({"key": "OUTER", "body": "x", "idempotency_key": "the-flow"});
    let again = second.post("/api/dispatch", &body).await.json();
    assert_eq!((&again["replayed"], &again["error"]["code"]), (&json!(true), &json!("unknown")), "{again}");
    let id = again["proof"]["invocation_id"].as_str().unwrap();
    let receipt = second.get(&format!("/api/dispatch?receipt={id}")).await.json();
    let children: Vec<&Value> = receipt["children"].as_array().unwrap().iter().collect();
    assert_eq!((children.len(), &receipt["status"]), (4, &json!("UNKNOWN")), "{receipt}");
    let told = second.get(&format!("/api/invocations/{id}/events")).await;
    assert_eq!(told.text.matches("event: step").count(), 6, "a tree of the dead can be followed: {}", told.text);
    assert_eq!(upstream.count(), 5, "nothing was fired again");
}
