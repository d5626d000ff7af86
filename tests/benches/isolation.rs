//! Whether a dead upstream starves other rows (I11), and whether writes of the book slow down asks: five paired runs each,
//! of which the median counts.
//!
//!     cargo bench -p callbook-tests --bench isolation
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that prints its figures")]

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use callbook_tests::{book, database};
use hdrhistogram::Histogram;
use serde_json::json;

/// Calls that hang on the dead upstream.
const HANGING: usize = 20;
/// Callers of the row that is measured.
const CALLERS: usize = 4;
/// Paired runs.
const RUNS: usize = 5;
/// How long one side of a run is measured.
const SIDE: Duration = Duration::from_secs(4);

fn main() {
    let data = tempfile::tempdir().unwrap();
    database::durable(data.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        dead_upstream().await;
        writes_beside_asks().await;
    });
}

/// One row over a live upstream, with and without calls that hang on a dead one.
async fn dead_upstream() {
    let live = Upstream::start(|_| answered(200, "{}")).await;
    let dead = Upstream::thinking(|_| async { pending::<axum::response::Response>().await }).await;
    let world = World::with().allow(&[live.origin(), dead.origin()]).start().await;
    world.create(&book::http("LIVE", &format!("GET {}/", live.origin()), "none", "")).await;
    world.create(&book::http("DEAD", &format!("GET {}/", dead.origin()), "none", "")).await;
    let world = Arc::new(world);
    let mut ratios = Vec::new();
    for _ in 0..RUNS {
        let alone = p99(&world, |world| async move { world.invoke("LIVE", "").await.status }).await;
        let hanging: Vec<_> = (0..HANGING)
            .map(|_| {
                let world = world.clone();
                tokio::spawn(async move { world.invoke("DEAD", "").await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(300)).await;
        let beside = p99(&world, |world| async move { world.invoke("LIVE", "").await.status }).await;
        hanging.iter().for_each(tokio::task::JoinHandle::abort);
        println!("  p99 alone {alone:?}, beside {HANGING} hanging calls {beside:?}");
        ratios.push(beside.as_secs_f64() / alone.as_secs_f64());
    }
    println!("I11, p99 beside a dead upstream, median of {RUNS}: {:.2}x", median(&mut ratios));
}

/// Asks, with and without writes of the book.
async fn writes_beside_asks() {
    let world = Arc::new(World::start().await);
    for n in 0..500 {
        world.create(&book::saying(&format!("ROW_{n}"), &format!("Say the number {n} in words"))).await;
    }
    // as the owner: anonymous callers may ask 1,000 times a second, which is not enough here
    let ask = |world: Arc<World>| async move { world.get("/api/dispatch?ask=say+a+number+in+words").await.status };
    let mut ratios = Vec::new();
    for _ in 0..RUNS {
        let alone = p99(&world, ask).await;
        let stop = Arc::new(AtomicBool::new(false));
        let writer = tokio::spawn(write(world.clone(), stop.clone()));
        let beside = p99(&world, ask).await;
        stop.store(true, Ordering::SeqCst);
        let writes = writer.await.unwrap();
        println!("  p99 of asks alone {alone:?}, beside {writes} writes {beside:?}");
        ratios.push(beside.as_secs_f64() / alone.as_secs_f64());
    }
    println!("asks beside writes, p99, median of {RUNS}: {:.2}x", median(&mut ratios));
}

/// One write after the other, with a pause in between, until it is told to stop; gives how many.
async fn write(world: Arc<World>, stop: Arc<AtomicBool>) -> usize {
    let mut writes = 0;
    while !stop.load(Ordering::SeqCst) {
        world.patch(&format!("ROW_{}", writes % 500), &json!({"planner_rank": 100 + writes % 7})).await;
        writes += 1;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    writes
}

async fn p99<F>(world: &Arc<World>, call: impl Fn(Arc<World>) -> F + Copy + Send + 'static) -> Duration
where
    F: Future<Output = u16> + Send + 'static,
{
    let callers = (0..CALLERS).map(|_| {
        let world = world.clone();
        tokio::spawn(async move {
            let (until, mut times) = (Instant::now() + SIDE, Vec::new());
            while Instant::now() < until {
                let began = Instant::now();
                assert_eq!(call(world.clone()).await, 200);
                times.push(began.elapsed());
            }
            times
        })
    });
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    for caller in callers.collect::<Vec<_>>() {
        for time in caller.await.unwrap() {
            histogram.record(time.as_micros() as u64).unwrap();
        }
    }
    Duration::from_micros(histogram.value_at_quantile(0.99))
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
