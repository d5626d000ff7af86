//! Several deployments on one database: a write on one is used by the others, whether they are told or not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callbook_tests::book::{echo, flow, saying};
use callbook_tests::database;
use callbook_tests::world::World;
use serde_json::json;

/// What a replica may take to use a write of another.
const BOUND: Duration = Duration::from_millis(500);

async fn pair() -> (World, World) {
    let one = World::start().await;
    let two = World::with().database(&one.database_url).start().await;
    (one, two)
}

/// Keeps breaking every connection that listens, until told to stop, so that no notice arrives.
fn lose_notices(url: &str) -> (Arc<AtomicBool>, tokio::task::JoinHandle<u64>) {
    let (stop, url) = (Arc::new(AtomicBool::new(false)), url.to_owned());
    let stopped = stop.clone();
    let breaking = tokio::spawn(async move {
        let mut owner = database::owner(&url).await;
        let mut broken = 0;
        while !stopped.load(Ordering::Relaxed) {
            let ended: i64 = sqlx::query_scalar(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity
                 where datname = current_database() and query ilike 'listen %'",
            )
            .fetch_one(&mut owner)
            .await
            .unwrap();
            broken += u64::try_from(ended).unwrap();
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        broken
    });
    (stop, breaking)
}

/// How long it takes until `ask` of a deployment gives the key first. Nothing but the snapshot is asked.
async fn until_asked(world: &World, question: &str, key: &str) -> Duration {
    let began = Instant::now();
    loop {
        let asked = world.look(&format!("/api/dispatch?ask={question}")).await;
        if asked.json()["best"]["key"] == key {
            return began.elapsed();
        }
        assert!(began.elapsed() < Duration::from_secs(5), "{key} is not found: {}", asked.text);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The longest of eight times but one: a machine that stands still once is no replica that is late.
async fn longest_until_asked(one: &World, two: &World) -> Duration {
    let mut times = Vec::new();
    for word in ["amber", "basalt", "copper", "diamond", "emerald", "flint", "garnet", "hematite"] {
        let key = word.to_uppercase();
        let row = saying(&key, &format!("Weigh a piece of {word}"));
        one.create(&row).await;
        times.push(until_asked(two, &format!("weigh%20{word}"), &key).await);
    }
    times.sort_unstable();
    times[times.len() - 2]
}

#[expect(clippy::print_stdout, reason = "the figure is what a reader looks for")]
#[tokio::test]
async fn i7_a_write_on_one_replica_is_used_by_the_other_within_the_bound() {
    let (one, two) = pair().await;
    let longest = longest_until_asked(&one, &two).await;
    println!("a write is asked for on another replica after {longest:?} at most");
    assert!(longest < BOUND, "{longest:?}");
    one.stop().await;
    two.stop().await;
}

#[expect(clippy::print_stdout, reason = "the figure is what a reader looks for")]
#[tokio::test]
async fn i7_also_when_every_notice_is_lost() {
    let (one, two) = pair().await;
    let (stop, breaking) = lose_notices(&one.database_url);
    let longest = longest_until_asked(&one, &two).await;
    stop.store(true, Ordering::Relaxed);
    println!("without notices after {longest:?} at most");
    assert!(breaking.await.unwrap() > 2, "no notice was lost");
    assert!(longest < BOUND, "{longest:?}");
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn i8_contract_and_invoke_use_a_write_of_another_replica_at_once() {
    let (one, two) = pair().await;
    let (stop, breaking) = lose_notices(&one.database_url);
    one.create(&echo("ROW")).await;
    for round in 0..12 {
        let columns = json!({"timeout_ms": 1_000 + round, "target": if round % 2 == 0 { "upper" } else { "lower" }});
        one.change("ROW", &columns).await;
        let (contract, called) = tokio::join!(two.look("/api/dispatch?key=ROW"), two.invoke("ROW", "Word"));
        let said = if round % 2 == 0 { "WORD" } else { "word" };
        assert!(called.json()["result"].as_str().unwrap().contains(said), "{round}: {}", called.text);
        let hash = one.row("ROW").await["contract_hash"].clone();
        assert_eq!(contract.json()["contract_hash"], hash, "{round}");
        assert_eq!(called.json()["proof"]["contract_hash"], hash, "{round}");
    }
    stop.store(true, Ordering::Relaxed);
    breaking.await.unwrap();
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn i8_what_one_replica_disables_or_takes_out_no_other_calls() {
    let (one, two) = pair().await;
    let (stop, breaking) = lose_notices(&one.database_url);
    for round in 0..6 {
        one.create(&echo("ROW")).await;
        assert_eq!(two.invoke("ROW", "x").await.status, 200, "{round}: a new row is called at once");
        one.change("ROW", &json!({"enabled": false})).await;
        assert_eq!(two.invoke("ROW", "x").await.error(), "unknown_key", "{round}");
        one.change("ROW", &json!({"enabled": true, "sensitive": true, "input_schema": {"type": "object"}})).await;
        assert_eq!(two.look("/api/dispatch?key=ROW").await.json()["risk"], "high", "{round}");
        one.delete("ROW").await;
        assert_eq!(two.look("/api/dispatch?key=ROW").await.error(), "unknown_key", "{round}");
        assert_eq!(two.invoke("ROW", "x").await.error(), "unknown_key", "{round}");
    }
    stop.store(true, Ordering::Relaxed);
    breaking.await.unwrap();
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn replicas_agree_on_hashes_stamps_and_standing_answers() {
    let (one, two) = pair().await;
    one.create(&echo("STEP")).await;
    two.create(&flow("FLOW", "STEP: $1")).await;
    one.change("STEP", &json!({"timeout_ms": 5})).await;
    let set = two.post("/api/recommended", &json!({"pattern": "belongs", "key": "STEP"})).await;
    assert!((200..300).contains(&set.status), "{}", set.text);
    for key in ["STEP", "FLOW"] {
        assert_eq!(one.row(key).await, two.row(key).await);
    }
    until_asked(&one, "what%20belongs%20together", "STEP").await;
    until_asked(&two, "what%20belongs%20together", "STEP").await;
    assert_eq!(one.look("/api/directory:stamp").await.json(), two.look("/api/directory:stamp").await.json());
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn writers_on_two_replicas_lose_no_update_and_share_one_line_of_revisions() {
    let (one, two) = pair().await;
    let (one, two) = (Arc::new(one), Arc::new(two));
    let writing: Vec<_> = [(one.clone(), "A"), (two.clone(), "B"), (one.clone(), "C"), (two.clone(), "D")]
        .into_iter()
        .map(|(world, name)| {
            tokio::spawn(async move {
                let mut revisions = Vec::new();
                for n in 0..10 {
                    revisions.push(world.create(&echo(&format!("{name}_{n}"))).await["revision"].as_i64().unwrap());
                }
                revisions
            })
        })
        .collect();
    let mut revisions = Vec::new();
    for writer in writing {
        revisions.extend(writer.await.unwrap());
    }
    revisions.sort_unstable();
    assert_eq!(revisions, (1..=40).collect::<Vec<_>>());
    assert_eq!(one.get("/api/directory").await.json()["count"], 40);
    assert_eq!(two.get("/api/directory").await.json()["count"], 40);
}
