//! A flood of tokens that are none takes nothing from callers that are known.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use callbook_tests::book;
use callbook_tests::issuer::Holder;
use callbook_tests::world::World;
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_verification_flood_starves_nobody_who_is_known() {
    let limits = "[limits]\nanonymous_per_second = 50\nprincipal_per_second = 5000\n";
    let world = World::with().toml(limits).start().await;
    world.create(&book::echo("ECHO")).await;
    let alice = Holder::new(&world.clock);
    let root = world.mint(&json!({"keys": ["ECHO"], "holder": alice.jwk()})).await;
    let good = world.mint(&json!({"keys": ["ECHO"]})).await;
    let team = world.principal("team", &json!([{"may": "invoke"}])).await;
    assert_eq!(world.spend(&good, None, "ECHO", "a").await.status, 200);
    let known = world.bearer(&team, Method::POST, "/api/dispatch").json(&json!({"key": "ECHO", "body": "a"}));
    assert_eq!(callbook_tests::door::send(known).await.status, 200);
    // each costs four signatures to find out, if anybody lets it come so far
    let chain = (0..3).fold(root, |token, _| alice.derive(&token, &alice, |_| {}));
    let forged = |n: usize| format!("{}{n:0>8}", &chain[..chain.len() - 8]);
    let (stop, refused, shed) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let flood = join_all((0..16).map(|lane| {
        let (world, forged, stop, refused, shed) = (&world, &forged, &stop, &refused, &shed);
        async move {
            for n in 0.. {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let answer = world.spend(&forged(lane * 1_000_000 + n), None, "ECHO", "a").await;
                match answer.status {
                    401 => refused.fetch_add(1, Ordering::SeqCst),
                    429 => shed.fetch_add(1, Ordering::SeqCst),
                    _ => panic!("{} {}", answer.status, answer.text),
                };
            }
        }
    }));
    let callers = async {
        let began = Instant::now();
        let mut slowest = Duration::ZERO;
        while began.elapsed() < Duration::from_secs(2) {
            let asked = Instant::now();
            let done = world.spend(&good, None, "ECHO", "a").await;
            assert_eq!(done.status, 200, "{}", done.text);
            let request = world.bearer(&team, Method::POST, "/api/dispatch").json(&json!({"key": "ECHO", "body": "a"}));
            let done = callbook_tests::door::send(request).await;
            assert_eq!(done.status, 200, "{}", done.text);
            slowest = slowest.max(asked.elapsed());
        }
        stop.store(true, Ordering::SeqCst);
        slowest
    };
    let (_, slowest) = tokio::join!(flood, callers);
    let (refused, shed) = (refused.into_inner(), shed.into_inner());
    assert!(refused > 0 && shed > refused, "{refused} were looked at, {shed} were shed");
    assert!(slowest < Duration::from_secs(2), "a known caller waited {slowest:?}");
    world.stop().await;
}
