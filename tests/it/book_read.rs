//! Reading the book: which rows there are for whom, and in which lists they stand.

use callbook_tests::book::{echo, flow, http, saying, with};
use callbook_tests::world::World;
use reqwest::Method;
use serde_json::{Value, json};

fn keys(rows: &Value) -> Vec<&str> {
    rows.as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect()
}

/// Five rows: one plain, one disabled, one hidden from planners, one shaped like a test's, one in a namespace.
async fn world() -> World {
    let world = World::start().await;
    let tides = |key: &str| with(saying(key, "Tell the tides of a harbour"), &json!({"category": "sea"}));
    world.create(&tides("TIDES")).await;
    world.create(&with(tides("TIDES_OFF"), &json!({"enabled": 0}))).await;
    world.create(&with(tides("TIDES_HIDDEN"), &json!({"planner_visible": 0}))).await;
    world.create(&with(tides("__TIDES_PROBE"), &json!({"category": "probe"}))).await;
    world.create(&with(tides("harbour.tides.tell"), &json!({"category": null}))).await;
    world
}

#[tokio::test]
async fn a_disabled_and_a_deleted_row_are_unknown_to_everybody() {
    let world = world().await;
    let id = world.invoke("TIDES", "Brest").await.json()["proof"]["invocation_id"].as_str().unwrap().to_owned();
    world.delete("TIDES").await;
    for key in ["TIDES", "TIDES_OFF"] {
        let read = world.look(&format!("/api/dispatch?key={key}")).await;
        let called = world.invoke(key, "Brest").await;
        let shaped = world.post("/api/dispatch", &json!({"key": key, "body": "x", "shape": true})).await;
        for answer in [read, called, shaped] {
            let told = answer.json();
            assert_eq!(
                (answer.status, &told["error"], &told["attempted"], &told["ran"]),
                (404, &json!("unknown_key"), &json!(key), &json!(false))
            );
            let near = told["did_you_mean"].as_array().unwrap();
            let never = ["TIDES", "TIDES_OFF", "TIDES_HIDDEN"].map(Value::from);
            assert!(near.len() <= 6 && never.iter().all(|key| !near.contains(key)), "{told}");
            assert!(key == "TIDES_OFF" || near.contains(&json!("__TIDES_PROBE")), "{told}");
        }
    }
    assert_eq!(world.look("/api/directory/TIDES_OFF").await.status, 404);
    assert_eq!(world.row("TIDES_OFF").await["enabled"], false);
    assert_eq!(world.look(&format!("/api/dispatch?confirm={id}")).await.json()["confirmed"], true);
    world.change("TIDES_OFF", &json!({"enabled": 1})).await;
    assert_eq!(world.invoke("TIDES_OFF", "Brest").await.json()["ok"], true);
    world.stop().await;
}

#[tokio::test]
async fn a_row_that_planners_do_not_see_is_still_called_by_its_key() {
    let world = world().await;
    let asked = world.look("/api/dispatch?ask=tides%20of%20a%20harbour").await.json();
    let found = keys(&asked["matches"]);
    assert!(found.contains(&"TIDES") && found.contains(&"harbour.tides.tell"), "{asked}");
    assert!(!found.contains(&"TIDES_HIDDEN") && !found.contains(&"TIDES_OFF"), "{asked}");
    assert_eq!(world.invoke("TIDES_HIDDEN", "Brest").await.json()["ok"], true);
    assert_eq!(world.look("/api/dispatch?key=TIDES_HIDDEN").await.status, 200);
    let listed = world.look("/api/directory:list").await.json();
    assert!(!keys(&listed["results"]).contains(&"TIDES_HIDDEN"), "{listed}");
    world.change("TIDES_HIDDEN", &json!({"planner_visible": 1})).await;
    let asked = world.look("/api/dispatch?ask=TIDES_HIDDEN").await.json();
    assert_eq!(asked["best"]["key"], "TIDES_HIDDEN");
    world.stop().await;
}

#[tokio::test]
async fn the_map_counts_each_kind_and_says_what_it_counts() {
    let world = world().await;
    let map = world.look("/api/dispatch?map=1").await.json();
    let counts = &map["counts"];
    assert_eq!((&counts["enabled"], &counts["registry"]), (&json!(4), &json!(3)), "{map}");
    assert_eq!(world.get("/api/dispatch?map=1").await.json()["counts"]["rows"], 5);
    for (name, _) in counts.as_object().unwrap() {
        assert!(map["predicates"][name].as_str().is_some_and(|words| words.len() > 10), "{name}: {map}");
    }
    let shelves: Vec<_> = map["shelves"]
        .as_array()
        .unwrap()
        .iter()
        .map(|shelf| (shelf["category"].as_str(), shelf["count"].as_u64().unwrap()))
        .collect();
    assert!(shelves.contains(&(Some("sea"), 2)) && shelves.contains(&(Some("probe"), 1)), "{map}");
    let shelf = world.look("/api/dispatch?map=sea").await.json();
    assert_eq!((&shelf["count"], keys(&shelf["rows"])), (&json!(2), vec!["TIDES", "TIDES_HIDDEN"]));
    let shelf = world.look("/api/dispatch?map=harbour.tides").await.json();
    assert_eq!(keys(&shelf["rows"]), ["harbour.tides.tell"]);
    assert_eq!(world.look("/api/dispatch?map=nowhere").await.json()["count"], 0);
    world.stop().await;
}

#[tokio::test]
async fn the_registry_leaves_out_what_is_shaped_like_a_test() {
    let world = world().await;
    for key in ["TEST_ROW", "MY_DUMMY_ROW", "SCRATCH"] {
        world.create(&echo(key)).await;
    }
    let registry = world.look("/api/dispatch?registry=1").await.json();
    assert_eq!(
        (&registry["count"], keys(&registry["objects"])),
        (&json!(3), vec!["harbour.tides.tell", "TIDES", "TIDES_HIDDEN"]),
        "{registry}"
    );
    let sea = world.look("/api/dispatch?registry=1&category=sea&limit=1").await.json();
    assert_eq!((&sea["count"], keys(&sea["objects"])), (&json!(2), vec!["TIDES"]));
    let cursor = sea["next_cursor"].as_str().unwrap();
    let next = world.look(&format!("/api/dispatch?registry=1&category=sea&cursor={cursor}")).await.json();
    assert_eq!((keys(&next["objects"]), &next["next_cursor"]), (vec!["TIDES_HIDDEN"], &Value::Null));
    let stale = world.look(&format!("/api/dispatch?registry=1&cursor={cursor}")).await;
    assert_eq!((stale.status, &stale.json()["error"]), (409, &json!("cursor_stale")), "{}", stale.text);
    world.stop().await;
}

#[tokio::test]
async fn the_listing_enumerates_every_row_once_and_its_stamp_is_that_of_the_content() {
    let world = world().await;
    let page = world.look("/api/directory:list?limit=2").await.json();
    assert_eq!(page["total"], 3, "{page}");
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = world.look(&format!("/api/directory:list?limit=2&cursor={cursor}")).await.json();
    assert_eq!(
        [keys(&page["results"]), keys(&next["results"])].concat(),
        ["TIDES", "__TIDES_PROBE", "harbour.tides.tell"]
    );
    let stamp = world.look("/api/directory:stamp").await.json()["stamp"].clone();
    assert_eq!(stamp, page["stamp"]);
    let under = world.look("/api/directory:list?namespace=harbour").await.json();
    assert_eq!((keys(&under["results"]), &under["total"]), (vec!["harbour.tides.tell"], &json!(1)));

    world.change("TIDES", &json!({"content": saying("TIDES", "Other words")["content"]})).await;
    assert_ne!(world.look("/api/directory:stamp").await.json()["stamp"], stamp);
    let stale = world.look(&format!("/api/directory:list?limit=2&cursor={cursor}")).await;
    assert_eq!((stale.status, &stale.json()["error"]), (409, &json!("cursor_stale")), "{}", stale.text);
    let forged = world.look("/api/directory:list?cursor=AAAA").await;
    assert_eq!((forged.status, &forged.json()["error"]), (400, &json!("cursor_invalid")), "{}", forged.text);
    let was = saying("TIDES", "Tell the tides of a harbour")["content"].clone();
    world.change("TIDES", &json!({"content": was})).await;
    assert_eq!(world.look("/api/directory:stamp").await.json()["stamp"], stamp, "equal books have equal stamps");
    world.stop().await;
}

#[tokio::test]
async fn rows_are_listed_in_the_canonical_order_and_found_by_words_and_category() {
    let world = world().await;
    world.create(&with(echo("ZULU"), &json!({"seq": 1}))).await;
    let listed = world.get("/api/directory").await.json();
    let numbered: Vec<_> = listed["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["row_num"].as_u64().unwrap(), row["key"].as_str().unwrap()))
        .collect();
    assert_eq!(
        numbered,
        [
            (1, "ZULU"),
            (2, "TIDES"),
            (3, "TIDES_HIDDEN"),
            (4, "TIDES_OFF"),
            (5, "__TIDES_PROBE"),
            (6, "harbour.tides.tell")
        ]
    );
    assert!(listed["schema"]["properties"]["key"].is_object(), "{listed}");
    assert_eq!(world.look("/api/directory?type=http").await.json()["count"], 0);
    assert_eq!(world.look("/api/directory?category=sea").await.json()["count"], 2);
    let found = world.look("/api/directory:search?q=tides").await.json();
    assert!(keys(&found["rows"]).contains(&"TIDES"), "{found}");
    let categories = world.look("/api/directory:categories").await.json();
    assert!(categories.to_string().contains("\"sea\""), "{categories}");
    world.stop().await;
}

#[tokio::test]
async fn recommended_answers_stand_on_top_and_demoted_ones_leave() {
    let world = world().await;
    world.create(&saying("ALMANAC", "Look a day up")).await;
    let ask = || async { world.look("/api/dispatch?ask=tides%20of%20a%20harbour").await.json() };
    assert_ne!(ask().await["best"]["key"], "ALMANAC");
    let set = world
        .post("/api/recommended", &json!({"pattern": "tides", "key": "ALMANAC", "reason": "it knows the moon"}))
        .await;
    assert!((200..300).contains(&set.status), "{}", set.text);
    let asked = ask().await;
    assert_eq!(asked["best"]["key"], "ALMANAC", "{asked}");
    assert!(asked["best"]["why"].to_string().contains("recommended"), "{asked}");
    let demoted = world
        .post("/api/recommended", &json!({"pattern": "tides", "key": "TIDES", "demote": true, "reason": "old"}))
        .await;
    assert!((200..300).contains(&demoted.status), "{}", demoted.text);
    let found = ask().await;
    let found = keys(&found["matches"]);
    let place = |key: &str| found.iter().position(|found| *found == key).unwrap_or(usize::MAX);
    assert!(place("TIDES") > place("harbour.tides.tell"), "{found:?}");
    assert_eq!(world.look("/api/dispatch?ask=day").await.json()["best"]["key"], "ALMANAC");

    let anonymous = world.anyone(Method::POST, "/api/recommended").json(&json!({"pattern": "x", "key": "TIDES"}));
    assert_eq!(callbook_tests::world::send(anonymous).await.status, 401);
    let unknown = world.post("/api/recommended", &json!({"pattern": "x", "key": "NOPE"})).await;
    assert_eq!((unknown.status, &unknown.json()["error"]), (404, &json!("unknown_key")), "{}", unknown.text);
    world.stop().await;
}

#[tokio::test]
async fn a_new_row_is_found_described_and_called_at_once() {
    let world = World::start().await;
    for round in 0..10 {
        let key = format!("ROW_{round}");
        world.create(&saying(&key, &format!("Fetch the zirconium ledger {round}"))).await;
        let asked = world.look(&format!("/api/dispatch?ask=zirconium%20ledger%20{round}")).await.json();
        assert!(keys(&asked["matches"]).contains(&key.as_str()), "{asked}");
        assert_eq!(world.look(&format!("/api/dispatch?key={key}")).await.status, 200);
        assert_eq!(world.invoke(&key, "x").await.json()["ok"], true);
        let described = world.look(&format!("/api/directory:describe?key={key}")).await.json();
        assert!(described["typescript"].as_str().unwrap().contains(&key), "{described}");
    }
    world.stop().await;
}

#[tokio::test]
async fn others_see_of_a_credential_its_form_alone() {
    let world = World::start().await;
    world
        .create(&with(
            http("ROW", "GET https://api.example.com/$1", "$1=id", ""),
            &json!({"auth": "bearer:PRIVATE_NAME"}),
        ))
        .await;
    world.create(&flow("FLOW", "ROW: $1")).await;
    for path in [
        "/api/directory/ROW",
        "/api/directory",
        "/api/directory/ROW/history",
        "/api/dispatch?key=ROW",
        "/api/dispatch?key=ROW&format=markdown",
        "/api/dispatch?registry=1",
        "/api/directory:search?q=upstream",
    ] {
        let seen = world.look(path).await;
        assert_eq!(seen.status, 200, "{path}: {}", seen.text);
        assert!(!seen.text.contains("PRIVATE_NAME"), "{path}: {}", seen.text);
    }
    assert_eq!(world.look("/api/directory/ROW").await.json()["auth"], "bearer");
    assert_eq!(world.row("ROW").await["auth"], "bearer:PRIVATE_NAME");
    assert_eq!(world.look("/api/directory:export").await.status, 401);
    world.stop().await;
}
