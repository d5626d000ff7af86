//! A large import while the book is used, and the large book read from end to end.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callbook_tests::book::{echo, saying, with};
use callbook_tests::world::World;
use serde_json::json;

const ROWS: usize = 20_000;
/// On a release build; a debug build gets the time that its code takes.
const BOUND: Duration = if cfg!(debug_assertions) { Duration::from_secs(60) } else { Duration::from_secs(15) };

fn text() -> String {
    let words = ["amber", "basalt", "copper", "diamond", "emerald", "flint", "garnet", "hematite", "iron", "jade"];
    let mut text = String::new();
    for n in 0..ROWS {
        let (a, b, c) = (words[n % 10], words[n / 10 % 10], words[n / 100 % 10]);
        let row = saying(&format!("ROW_{n}"), &format!("Mix {a} with {b} and {c} for batch {n}"));
        let row = with(row, &json!({"category": format!("shelf {}", n % 40)}));
        text.push_str(&row.to_string());
        text.push('\n');
    }
    text
}

/// Asks or calls again and again until told to stop; gives how often, and the longest wait. None may fail.
async fn go_on(world: Arc<World>, stop: Arc<AtomicBool>, calls: bool) -> (u32, Duration) {
    let (mut times, mut longest) = (0, Duration::ZERO);
    while !stop.load(Ordering::Relaxed) {
        let began = Instant::now();
        let answer = match calls {
            true => world.invoke("ECHO", "hello").await,
            false => world.look("/api/dispatch?ask=give%20back%20what%20came").await,
        };
        longest = longest.max(began.elapsed());
        times += 1;
        let good = if calls { answer.json()["ok"] == true } else { answer.json()["best"]["key"] == "ECHO" };
        assert!(answer.status == 200 && good, "{}", answer.text);
    }
    (times, longest)
}

#[expect(clippy::print_stdout, reason = "the figure is what a reader looks for")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_rows_come_in_while_asks_and_calls_go_on() {
    let world = Arc::new(World::start().await);
    world.create(&echo("ECHO")).await;
    let stop = Arc::new(AtomicBool::new(false));
    let users: Vec<_> = [true, false].map(|calls| tokio::spawn(go_on(world.clone(), stop.clone(), calls))).into();
    let text = text();
    let began = Instant::now();
    let told = world.import("", text).await;
    let took = began.elapsed();
    stop.store(true, Ordering::Relaxed);
    assert_eq!((told.status, &told.json()["created"]), (200, &json!(ROWS)), "{}", told.text);
    for (user, name) in users.into_iter().zip(["calls", "asks"]) {
        let (times, longest) = user.await.unwrap();
        println!("{name}: {times} during the import, the longest took {longest:?}");
        assert!(times > 10 && longest < Duration::from_secs(5), "{name}: {times}, {longest:?}");
    }
    println!("{ROWS} rows in {took:?}");
    assert!(took < BOUND, "{took:?}");
    let asked = world.look("/api/dispatch?ask=ROW_19999").await.json();
    assert_eq!(asked["best"]["key"], "ROW_19999");
    assert_eq!(world.invoke("ROW_12345", "x").await.json()["ok"], true);
    every_row_is_listed_once(&world).await;
}

async fn every_row_is_listed_once(world: &World) {
    let (mut seen, mut order, mut cursor) = (HashSet::new(), Vec::new(), String::new());
    loop {
        let page = world.look(&format!("/api/directory:list{cursor}")).await.json();
        assert_eq!(page["total"], ROWS + 1, "{page}");
        for row in page["results"].as_array().unwrap() {
            let key = row["key"].as_str().unwrap().to_owned();
            assert!(seen.insert(key.clone()), "{key} is listed twice");
            order.push(key);
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("?cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), ROWS + 1);
    assert!(order.is_sorted(), "keys without a dot are in byte order");
}
