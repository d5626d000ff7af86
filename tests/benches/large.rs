//! A book of 100,000 rows through the front door: imported, asked, listed whole, projected on MCP, changed, and loaded
//! by a replica.
//!
//!     cargo bench -p callbook-tests --bench large
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that prints its figures")]

use std::collections::HashSet;
use std::time::{Duration, Instant};

use callbook_tests::book::{saying, with};
use callbook_tests::database;
use callbook_tests::mcp::{Client, last};
use callbook_tests::world::World;
use hdrhistogram::Histogram;
use serde_json::{Value, json};

const ROWS: usize = 100_000;
/// Rows of one import; the body of one has a bound.
const PART: usize = 50_000;
const ASKS: usize = 2_000;
const WORDS: [&str; 24] = [
    "amber", "basalt", "copper", "diamond", "emerald", "flint", "garnet", "hematite", "iron", "jade", "kyanite",
    "lapis", "marble", "nickel", "onyx", "pearl", "quartz", "ruby", "silver", "topaz", "umber", "vanadium", "wolfram",
    "zircon",
];

fn main() {
    let data = tempfile::tempdir().unwrap();
    database::durable(data.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let world = World::start().await;
        let imported = import(&world).await;
        line("100,000 rows imported and indexed", format!("{:.1} s", imported.as_secs_f64()));
        asks(&world).await;
        listing(&world).await;
        mcp(&world).await;
        changes(&world).await;
        let began = Instant::now();
        let replica = World::with().database(&world.database_url).start().await;
        line("a replica is ready, with its own index", format!("{:.1} s", began.elapsed().as_secs_f64()));
        assert_eq!(stamp(&replica).await, stamp(&world).await, "equal catalogues have equal stamps");
        replica.stop().await;
        world.stop().await;
    });
}

fn line(figure: &str, value: impl std::fmt::Display) {
    println!("{figure:<58} {value:>12}");
}

fn row(n: usize) -> Value {
    let word = |place: u32| WORDS[n / WORDS.len().pow(place) % WORDS.len()];
    let what = format!("Mix {} with {} and {} for batch {n}", word(0), word(1), word(2));
    with(saying(&format!("{}.{}.MIX_{n}", word(0), word(1)), &what), &json!({"category": word(2)}))
}

async fn import(world: &World) -> Duration {
    let began = Instant::now();
    for part in (0..ROWS).step_by(PART) {
        let text: String = (part..part + PART).map(|n| format!("{}\n", row(n))).collect();
        let told = world.import("?allow_lookalike=true", text).await;
        assert_eq!((told.status, &told.json()["created"]), (200, &json!(PART)), "{}", told.text);
    }
    began.elapsed()
}

async fn asks(world: &World) {
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    for at in 0..ASKS {
        let n = at * 7_919 % ROWS;
        let words = row(n)["content"].as_str().unwrap()["# WHAT: ".len()..].split('\n').next().unwrap().to_owned();
        let began = Instant::now();
        let request = world.anyone(reqwest::Method::GET, "/api/dispatch").query(&[("ask", &words)]);
        let told = callbook_tests::world::send(request).await;
        histogram.record(began.elapsed().as_micros() as u64).unwrap();
        assert_eq!(told.json()["best"]["key"], row(n)["key"], "{words}: {}", told.text);
    }
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let millis = histogram.value_at_quantile(quantile) as f64 / 1_000.0;
        line(&format!("ask over REST, one after the other, {name}"), format!("{millis:.2} ms"));
    }
}

/// Every row exactly once, in the order of the listing.
async fn listing(world: &World) {
    let (mut seen, mut cursor, mut pages) = (HashSet::new(), String::new(), 0);
    let mut before = (String::new(), String::new());
    let began = Instant::now();
    loop {
        let page = world.look(&format!("/api/directory:list{cursor}")).await.json();
        assert_eq!(page["total"], ROWS, "{page}");
        for row in page["results"].as_array().unwrap() {
            let key = row["key"].as_str().unwrap();
            let place = (key.split('.').next().unwrap().to_owned(), key.to_owned());
            assert!(before < place, "{place:?} after {before:?}");
            before = place;
            assert!(seen.insert(key.to_owned()), "{key} is listed twice");
        }
        pages += 1;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("?cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen.len(), ROWS);
    assert!((0..ROWS).all(|n| seen.contains(row(n)["key"].as_str().unwrap())), "a row is not listed");
    line(&format!("every row listed once, {pages} pages"), format!("{:.1} s", began.elapsed().as_secs_f64()));
}

/// The four tools stay what they are, and the typed ones are every row once.
async fn mcp(world: &World) {
    let four = Client::modern(world, "/mcp").send("tools/list", json!({})).await;
    assert_eq!(last(&four)["result"]["tools"].as_array().map(Vec::len), Some(4), "{}", four.text);
    line("tools/list of /mcp", format!("{} bytes", four.text.len()));
    let began = Instant::now();
    let typed = Client::modern(world, "/mcp/tools").all("tools/list", "tools").await;
    let names: HashSet<&str> = typed.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!((typed.len(), names.len()), (ROWS, ROWS), "a row is not a tool, or is one twice");
    line("every row listed once as a tool of /mcp/tools", format!("{:.1} s", began.elapsed().as_secs_f64()));
}

/// One new row at a time, each found by the next ask.
async fn changes(world: &World) {
    let mut longest = Duration::ZERO;
    for n in 0..20 {
        let key = format!("late.ROW_{n}");
        let began = Instant::now();
        world.create(&saying(&key, &format!("Polish the zeppelin number {n}"))).await;
        longest = longest.max(began.elapsed());
        let told = world.look(&format!("/api/dispatch?ask=polish+zeppelin+number+{n}")).await.json();
        let found = told["matches"].as_array().unwrap().iter().any(|row| row["key"] == key.as_str());
        assert!(found, "{key}: {told}");
    }
    line("one row written, found by the next ask, longest of 20", format!("{:.0} ms", longest.as_secs_f64() * 1_000.0));
}

async fn stamp(world: &World) -> Value {
    world.look("/api/directory:stamp").await.json()["stamp"].clone()
}
