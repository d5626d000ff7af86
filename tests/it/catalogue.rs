//! The catalogue of 891 rows: what a deployment of its size looks like.

use callbook_tests::shared;
use callbook_tests::world::World;
use serde_json::{Value, json};

/// A deployment that holds the catalogue, or nothing without the shared data.
async fn world() -> Option<World> {
    let rows = std::fs::read_to_string(shared("catalogue/rows.ndjson")?).unwrap();
    let world = World::start().await;
    let told = world.import("", rows).await;
    let body = told.json();
    assert_eq!(
        (told.status, &body["ok"], &body["created"], &body["refused"]),
        (200, &json!(true), &json!(891), &json!([])),
        "{}",
        told.text
    );
    Some(world)
}

#[tokio::test]
async fn the_four_counts_of_the_catalogue_are_each_explained() {
    let Some(world) = world().await else { return };
    let map = world.get("/api/dispatch?map=1").await.json();
    let counts = &map["counts"];
    assert_eq!(
        (&counts["rows"], &counts["enabled"], &counts["mcp"]),
        (&json!(891), &json!(878), &json!(831)),
        "{counts}"
    );
    assert_eq!((&map["total"], &counts["registry"]), (&json!(878), &json!(878)), "{counts}");
    for name in ["rows", "enabled", "registry", "mcp"] {
        assert!(
            map["predicates"][name].as_str().is_some_and(|words| words.len() > 10),
            "{name}: {}",
            map["predicates"]
        );
    }
    assert_eq!(world.look("/api/dispatch?registry=1&limit=1").await.json()["count"], 878);
    assert_eq!(world.get("/api/directory?limit=1").await.json()["count"], 891);
    assert_eq!(world.look("/api/directory:list?limit=1").await.json()["total"], 831);
    let shelves: u64 = map["shelves"].as_array().unwrap().iter().map(|shelf| shelf["count"].as_u64().unwrap()).sum();
    assert_eq!(shelves, 878, "every row that can be called stands on one shelf");
    world.stop().await;
}

#[tokio::test]
async fn what_time_is_it_gives_now_and_no_github_row() {
    let Some(world) = world().await else { return };
    let asked = world.look("/api/dispatch?ask=what%20time%20is%20it").await.json();
    assert_eq!(asked["best"]["key"], "NOW", "{asked}");
    let github: Vec<&Value> =
        asked["matches"].as_array().unwrap().iter().filter(|row| row["key"].to_string().contains("GITHUB")).collect();
    assert!(github.is_empty(), "{github:?}");
    let called = world.invoke("NOW", "").await.json();
    assert_eq!((&called["ok"], called["output"]["iso"].is_string()), (&json!(true), true), "{called}");
    world.stop().await;
}

#[tokio::test]
async fn every_row_that_can_be_called_has_a_contract_and_every_flow_its_hash() {
    let Some(world) = world().await else { return };
    let mut cursor = String::new();
    let mut seen = 0;
    loop {
        let page = world.look(&format!("/api/dispatch?registry=1&limit=500{cursor}")).await.json();
        for object in page["objects"].as_array().unwrap() {
            seen += 1;
            let key = object["key"].as_str().unwrap();
            let contract = world.look(&format!("/api/dispatch?key={key}")).await;
            assert_eq!(
                (contract.status, &contract.json()["contract_hash"]),
                (200, &object["contract_hash"]),
                "{key}: {}",
                contract.text
            );
            let has_schema = contract.json().get("input_schema").is_some() || contract.json().get("schema").is_some();
            assert!(has_schema || contract.text.len() <= 1_200, "{key}: {} bytes", contract.text.len());
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, 878);
    world.stop().await;
}

#[tokio::test]
async fn the_catalogue_survives_a_round_through_its_export() {
    let Some(world) = world().await else { return };
    let (text, copy) = (world.export().await, World::start().await);
    assert_eq!(copy.import("", text.clone()).await.json()["created"], 891);
    let stamp = |answer: Value| answer["stamp"].clone();
    assert_eq!(
        stamp(world.get("/api/directory:stamp").await.json()),
        stamp(copy.get("/api/directory:stamp").await.json())
    );
    assert!(copy.export().await == text, "the export of the copy is another");
    copy.stop().await;
    world.stop().await;
}
