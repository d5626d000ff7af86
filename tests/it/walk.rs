//! The walk: a capability is one POST, asked for, read, called, and proven after the row is gone.

use std::time::{Duration, Instant};

use callbook_tests::door::{Door, send};
use callbook_tests::upstream::Upstream;
use callbook_tests::world::World;
use reqwest::Method;
use serde_json::{Value, json};

fn temperature(upstream: &Upstream) -> Value {
    let target = format!("GET {}/v1/forecast?latitude=$1&longitude=$2&current=temperature_2m", upstream.origin());
    json!({
        "key": "ZZ_TEST_TEMPERATURE", "type": "http", "target": target, "auth": "",
        "content": "# WHAT: Current temperature in Celsius for one latitude and longitude, from the Open-Meteo public API.\n# WHEN_TO_USE: a capability needs the live temperature at a coordinate.\n# ARGS: $1=latitude | $2=longitude\n# EX: [ZZ_TEST_TEMPERATURE]37.77|-122.42[/ZZ_TEST_TEMPERATURE]\n# OUTPUT: JSON with current.temperature_2m",
        "category": "tools", "enabled": 1, "planner_visible": 1, "examples": "[\"37.77|-122.42\"]"
    })
}

#[tokio::test]
async fn a_new_capability_is_asked_for_called_and_proven_after_it_is_gone() {
    let upstream = Upstream::weather().await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    walk(&world, &upstream).await;
    world.stop().await;
}

/// The whole walk, at any gateway whose executors may call the upstream.
pub async fn walk(world: &Door, upstream: &Upstream) {
    let refused = send(world.anyone(Method::POST, "/api/directory").json(&temperature(upstream))).await;
    assert_eq!((refused.status, refused.json()["error"].clone()), (401, json!("unauthorized")));
    let created = world.create(&temperature(upstream)).await;
    assert_eq!((created["ok"].clone(), created["key"].clone()), (json!(true), json!("ZZ_TEST_TEMPERATURE")));

    let (question, began) = ("/api/dispatch?ask=current%20temperature%20at%20a%20coordinate", Instant::now());
    let mut asked = world.look(question).await;
    while asked.json()["best"].is_null() && began.elapsed() < Duration::from_secs(2) {
        asked = world.look(question).await; // a process of its own follows in a moment
    }
    assert_eq!(asked.json()["best"]["key"], "ZZ_TEST_TEMPERATURE", "{}", asked.text);

    let contract = send(world.anyone(Method::GET, "/api/dispatch?key=ZZ_TEST_TEMPERATURE")).await;
    assert_eq!(contract.json()["arguments"][0]["name"], "latitude", "{}", contract.text);

    let invoked = world.invoke("ZZ_TEST_TEMPERATURE", "37.77|-122.42").await;
    let answer = invoked.json();
    assert_eq!(
        (invoked.status, answer["ok"].clone(), answer["ran"].clone()),
        (200, json!(true), json!(true)),
        "{answer}"
    );
    assert!(answer["result"].as_str().unwrap().starts_with("HTTP 200:{\"latitude\":37.763283"), "{answer}");
    assert_eq!(answer["output"]["current"]["temperature_2m"].to_string(), "15.7");
    assert_eq!(upstream.seen()[0].target, "/v1/forecast?latitude=37.77&longitude=-122.42&current=temperature_2m");

    let id = answer["proof"]["invocation_id"].as_str().unwrap();
    let confirm = format!("/api/dispatch?confirm={id}");
    let before = send(world.anyone(Method::GET, &confirm)).await;
    assert_eq!(before.json()["status"], "PROVEN_MATERIAL_RESULT", "{}", before.text);

    let deleted = send(world.owner(Method::DELETE, "/api/directory/ZZ_TEST_TEMPERATURE")).await;
    assert_eq!(deleted.json(), json!({"ok": true, "key": "ZZ_TEST_TEMPERATURE", "deleted": 1}));
    assert_eq!(world.get("/api/directory/ZZ_TEST_TEMPERATURE").await.status, 404);
    let after = send(world.anyone(Method::GET, &confirm)).await;
    assert_eq!(after.json()["confirmed"], true, "{}", after.text);
    let receipt = world.get(&format!("/api/dispatch?receipt={id}")).await;
    assert_eq!(receipt.json()["actor"], "owner:terminal-key", "{}", receipt.text);
}
