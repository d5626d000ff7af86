//! I8: a row that was changed, disabled or deleted is never fired in its old form once the write is acknowledged.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use callbook_tests::book;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use futures::future::join_all;
use serde_json::json;

/// How often a call is tried against the writer.
const TRIES: usize = 10_000;
/// Callers at the same time.
const CALLERS: usize = 48;

/// The target of a version: the path says which version fired, the argument what was acknowledged when the call began.
fn target(upstream: &Upstream, version: u64) -> String {
    format!("GET {}/{}/{version}/$1", upstream.origin(), if version.is_multiple_of(2) { "left" } else { "right" })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i8_ten_thousand_tries_against_a_writer_never_fire_what_was_acknowledged_to_be_gone() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let first = World::with().allow(&[upstream.origin()]).start().await;
    let second = World::with().allow(&[upstream.origin()]).database(&first.database_url).start().await;
    first.create(&book::http("MOVES", &target(&upstream, 0), "$1=acknowledged", "")).await;
    let (acknowledged, tried, moved) = (AtomicU64::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let caller = |n: usize| {
        let (world, acknowledged, tried, moved) = ([&first, &second][n % 2], &acknowledged, &tried, &moved);
        async move {
            while tried.fetch_add(1, Ordering::SeqCst) < TRIES {
                let known = acknowledged.load(Ordering::SeqCst);
                let answer = world.invoke("MOVES", &known.to_string()).await;
                match (answer.status, answer.error().as_str()) {
                    (200, _) => assert_eq!(answer.json()["ok"], true, "{}", answer.text),
                    (409, "row_moved") => drop(moved.fetch_add(1, Ordering::SeqCst)),
                    _ => panic!("{} {}", answer.status, answer.text),
                }
            }
        }
    };
    let writer = async {
        for version in 1.. {
            if tried.load(Ordering::SeqCst) >= TRIES {
                break;
            }
            first.change("MOVES", &json!({"target": target(&upstream, version)})).await;
            acknowledged.store(version, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::join!(join_all((0..CALLERS).map(caller)), writer);
    let seen = upstream.seen();
    for seen in &seen {
        let mut parts = seen.target.rsplit('/').map(|part| part.parse::<u64>());
        let (Some(Ok(known)), Some(Ok(fired))) = (parts.next(), parts.next()) else { panic!("{}", seen.target) };
        assert!(fired >= known, "version {fired} was fired by a call that began when {known} was acknowledged");
    }
    let (moved, versions) = (moved.load(Ordering::SeqCst), acknowledged.load(Ordering::SeqCst));
    assert_eq!(seen.len() + moved, TRIES, "every try fired once or was refused");
    assert!(versions > 50 && seen.len() > TRIES / 2, "{versions} writes, {} fired", seen.len());
    first.stop().await;
    second.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i8_a_disabled_or_deleted_row_never_fires_once_that_is_acknowledged() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let first = World::with().allow(&[upstream.origin()]).start().await;
    let second = World::with().allow(&[upstream.origin()]).database(&first.database_url).start().await;
    let row = book::http("GONE", &format!("GET {}/$1", upstream.origin()), "$1=mark", "");
    first.create(&row).await;
    let stop = AtomicUsize::new(0);
    let background = join_all((0..6).map(|n| {
        let (world, stop) = ([&first, &second][n % 2], &stop);
        async move {
            while stop.load(Ordering::SeqCst) == 0 {
                world.invoke("GONE", "any").await;
            }
        }
    }));
    let rounds = async {
        for round in 0..24 {
            match round % 2 {
                0 => drop(first.change("GONE", &json!({"enabled": false})).await),
                _ => drop(first.delete("GONE").await),
            }
            let tries = (0..8).map(|n| [&first, &second][n % 2].invoke("GONE", "late"));
            for refused in join_all(tries).await {
                assert_eq!((refused.status, refused.error().as_str()), (404, "unknown_key"), "{}", refused.text);
            }
            match round % 2 {
                0 => drop(first.change("GONE", &json!({"enabled": true})).await),
                _ => drop(first.create(&row).await),
            }
            assert_eq!(second.invoke("GONE", "back").await.status, 200, "a row that is back is called at once");
        }
        stop.store(1, Ordering::SeqCst);
    };
    tokio::join!(background, rounds);
    assert!(!upstream.seen().iter().any(|seen| seen.target == "/late"));
    first.stop().await;
    second.stop().await;
}
