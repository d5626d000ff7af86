//! Listings and figures: what was called, by whom, and how it went.

use std::collections::BTreeSet;
use std::time::Duration;

use callbook_domain::clock::Clock;
use callbook_tests::book;
use callbook_tests::door::{Answer, send};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use reqwest::Method;
use serde_json::{Value, json};
use time::macros::datetime;

/// Two rows, one of which fails for `bad`.
async fn world(clock: Clock) -> (World, Upstream) {
    let upstream = Upstream::start(|seen| match seen.target.ends_with("bad") {
        true => answered(500, "{}"),
        false => answered(200, r#"{"yes":true}"#),
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).clock(clock).start().await;
    world.create(&book::http("TEAM_SEND", &format!("GET {}/$1", upstream.origin()), "$1=word", "")).await;
    world.create(&book::echo("ECHO")).await;
    (world, upstream)
}

async fn list(world: &World, query: &str) -> Vec<Value> {
    let page = world.get(&format!("/api/invocations{query}")).await;
    assert_eq!(page.status, 200, "{query}: {}", page.text);
    page.json()["invocations"].as_array().unwrap().clone()
}

fn ids(list: &[Value]) -> Vec<String> {
    list.iter().map(|call| call["invocation_id"].as_str().unwrap().to_owned()).collect()
}

async fn as_team(world: &World, key: &str, path: &str) -> Answer {
    send(world.bearer(key, Method::GET, path)).await
}

#[tokio::test]
async fn a_listing_is_narrowed_by_key_actor_status_and_time() {
    let clock = Clock::held(datetime!(2026-07-26 04:36 UTC));
    let (world, _upstream) = world(clock.clone()).await;
    let team = world.principal("team", &json!([{"may": "invoke"}])).await;
    let mut made = Vec::new();
    for (key, body) in [("ECHO", "a"), ("TEAM_SEND", "good"), ("TEAM_SEND", "bad")] {
        made.push(world.invoke(key, body).await.id());
        clock.advance(Duration::from_secs(60));
    }
    let call = world.bearer(&team, Method::POST, "/api/dispatch").json(&json!({"key": "ECHO", "body": "b"}));
    made.push(send(call).await.id());
    made.reverse();
    assert_eq!(ids(&list(&world, "").await), made, "newest first");
    for (query, expected) in [
        ("?key=ECHO", vec![0, 3]),
        ("?key=NONE", vec![]),
        ("?actor=principal:team", vec![0]),
        ("?actor=owner:terminal-key", vec![1, 2, 3]),
        ("?status=PROVEN_MATERIAL_RESULT", vec![0, 2, 3]),
        ("?status=PROVEN_ATTEMPT_NO_MATERIAL_RESULT", vec![1]),
        ("?status=PENDING", vec![]),
        ("?status=UNKNOWN", vec![]),
        ("?status=HELD", vec![]),
        ("?since=2026-07-26T04:37:00Z", vec![0, 1, 2]),
        ("?until=2026-07-26T04:37:00Z", vec![3]),
        ("?since=2026-07-26T04:37:00Z&until=2026-07-26T04:38:00%2B00:00&key=TEAM_SEND", vec![2]),
        ("?parent=inv_01M8Q84YJ6FJKBYQHMM4PATHEA", vec![]),
    ] {
        let expected: Vec<String> = expected.into_iter().map(|at: usize| made[at].clone()).collect();
        assert_eq!(ids(&list(&world, query).await), expected, "{query}");
    }
    let failed = &list(&world, "?status=PROVEN_ATTEMPT_NO_MATERIAL_RESULT").await[0];
    assert_eq!((&failed["error"], &failed["upstream_status"]), (&json!("http:500"), &json!(500)), "{failed}");
    for bad in ["?since=yesterday", "?limit=0", "?status=done", "?colour=red", "?cursor=nonsense"] {
        assert_eq!(world.get(&format!("/api/invocations{bad}")).await.status, 400, "{bad}");
    }
    assert_eq!(world.get("/api/invocations?parent=nonsense").await.status, 404);
    world.stop().await;
}

#[tokio::test]
async fn pages_join_without_a_gap_while_calls_go_on() {
    let (world, _upstream) = world(Clock::system()).await;
    let mut made = BTreeSet::new();
    for n in 0..25 {
        made.insert(world.invoke("ECHO", &n.to_string()).await.id());
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = world.get(&format!("/api/invocations?limit=10{cursor}")).await.json();
        found.extend(ids(page["invocations"].as_array().unwrap()));
        world.invoke("ECHO", "later").await;
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found.len(), 25);
    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), made);
    world.stop().await;
}

#[tokio::test]
async fn a_principal_sees_its_own_calls_and_those_of_rows_whose_receipts_it_may_read() {
    let (world, _upstream) = world(Clock::system()).await;
    let own = world.principal("own", &json!([{"may": "invoke"}])).await;
    let grants = json!([{"may": "invoke", "prefix": "ECHO"}, {"may": "read_receipts", "prefix": "TEAM_"}]);
    let reads = world.principal("reads", &grants).await;
    let owners = [world.invoke("ECHO", "a").await.id(), world.invoke("TEAM_SEND", "b").await.id()];
    let mut theirs = Vec::new();
    for key in [&own, &reads] {
        let call = world.bearer(key, Method::POST, "/api/dispatch").json(&json!({"key": "ECHO", "body": "c"}));
        theirs.push(send(call).await.id());
    }
    let listed = async |key: &str, query: &str| {
        let page = as_team(&world, key, &format!("/api/invocations{query}")).await;
        ids(page.json()["invocations"].as_array().unwrap())
    };
    assert_eq!(listed(&own, "").await, [theirs[0].clone()]);
    assert_eq!(listed(&own, "?actor=owner:terminal-key").await, [""; 0], "a filter is no way around");
    assert_eq!(listed(&own, "?key=TEAM_SEND").await, [""; 0]);
    assert_eq!(listed(&reads, "").await, [theirs[1].clone(), owners[1].clone()]);
    assert_eq!(list(&world, "").await.len(), 4, "the owner sees all");
    for (key, id, status) in
        [(&own, &theirs[0], 200), (&own, &owners[1], 404), (&reads, &owners[1], 200), (&reads, &owners[0], 404)]
    {
        for path in [format!("/api/dispatch?receipt={id}"), format!("/api/invocations/{id}")] {
            assert_eq!(as_team(&world, key, &path).await.status, status, "{path}");
        }
    }
    let count = |answer: Answer| answer.json()["total"]["count"].as_u64().unwrap();
    assert_eq!(count(as_team(&world, &own, "/api/invocations/stats").await), 1);
    assert_eq!(count(as_team(&world, &reads, "/api/invocations/stats").await), 2);
    assert_eq!(count(world.get("/api/invocations/stats").await), 4);
    for path in ["/api/invocations", "/api/invocations/stats", &format!("/api/invocations/{}", owners[0])] {
        assert_eq!(world.look(path).await.status, 401, "{path}");
    }
    world.stop().await;
}

#[tokio::test]
async fn figures_count_calls_failures_and_latencies_by_key() {
    let (world, _upstream) = world(Clock::system()).await;
    for (key, body, times) in [("TEAM_SEND", "good", 6), ("TEAM_SEND", "bad", 2), ("ECHO", "a", 3)] {
        for _ in 0..times {
            world.invoke(key, body).await;
        }
    }
    let all = world.get("/api/invocations/stats").await.json();
    assert_eq!((&all["total"]["count"], &all["total"]["failures"]), (&json!(11), &json!(2)), "{all}");
    let keys: Vec<(&str, u64, u64)> = all["by_key"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| (of["key"].as_str().unwrap(), of["count"].as_u64().unwrap(), of["failures"].as_u64().unwrap()))
        .collect();
    assert_eq!(keys, [("TEAM_SEND", 8, 2), ("ECHO", 3, 0)], "most calls first");
    let latency = |of: &str| all["total"][of].as_f64().unwrap();
    let (p50, p95, p99) = (latency("latency_p50_ms"), latency("latency_p95_ms"), latency("latency_p99_ms"));
    assert!(0.0 <= p50 && p50 <= p95 && p95 <= p99 && p99 < 30_000.0, "{all}");
    let one = world.get("/api/invocations/stats?key=ECHO").await.json();
    assert_eq!((&one["total"]["count"], &one["total"]["failures"]), (&json!(3), &json!(0)), "{one}");
    let none = world.get("/api/invocations/stats?until=2020-01-01T00:00:00Z").await.json();
    assert_eq!((&none["total"]["count"], &none["total"]["latency_p50_ms"]), (&json!(0), &Value::Null), "{none}");
    world.stop().await;
}
