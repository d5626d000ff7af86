//! Every version stays: what changed, by whom, and the way back.

use callbook_tests::book::{echo, flow};
use callbook_tests::database;
use callbook_tests::world::{World, send};
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Executor as _;

async fn history(world: &World, key: &str) -> Vec<Value> {
    let answer = world.get(&format!("/api/directory/{key}/history")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["versions"].as_array().unwrap().clone()
}

async fn restore(world: &World, key: &str, version: i64) -> callbook_tests::world::Answer {
    send(world.owner(Method::POST, &format!("/api/directory/{key}/restore?version={version}"))).await
}

fn told(versions: &[Value]) -> Vec<(i64, &str)> {
    versions.iter().map(|version| (version["version"].as_i64().unwrap(), version["action"].as_str().unwrap())).collect()
}

#[tokio::test]
async fn the_history_tells_what_each_write_changed_and_who_made_it() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    world.change("ECHO", &json!({"category": "a", "planner_rank": 5})).await;
    let key = world.principal("team", &json!([{"may": "edit", "prefix": ""}])).await;
    let patched = send(world.bearer(&key, Method::PATCH, "/api/directory/ECHO").json(&json!({"category": "b"}))).await;
    assert_eq!(patched.status, 200);
    assert_eq!(world.put("ECHO", &echo("ECHO")).await.status, 200);
    world.delete("ECHO").await;

    let versions = history(&world, "ECHO").await;
    assert_eq!(told(&versions), [(5, "delete"), (4, "replace"), (3, "patch"), (2, "patch"), (1, "create")]);
    assert_eq!(versions[2]["actor"], "principal:team");
    assert_eq!(versions[2]["diff"], json!([{"column": "category", "before": "a", "after": "b"}]));
    let diff: Vec<_> = versions[3]["diff"]
        .as_array()
        .unwrap()
        .iter()
        .map(|change| (&change["column"], &change["before"], &change["after"]))
        .collect();
    assert_eq!(
        diff,
        [(&json!("category"), &json!(null), &json!("a")), (&json!("planner_rank"), &json!(100), &json!(5))]
    );
    assert_eq!((&versions[0]["after"], &versions[4]["before"]), (&Value::Null, &Value::Null));
    let revisions: Vec<_> = versions.iter().map(|version| version["revision"].as_i64().unwrap()).collect();
    assert!(revisions.is_sorted_by(|newer, older| newer > older), "{revisions:?}");

    let page = world.get("/api/directory/ECHO/history?limit=2").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = world.get(&format!("/api/directory/ECHO/history?limit=3&cursor={cursor}")).await.json();
    assert_eq!((&next["versions"][0]["version"], &next["next_cursor"]), (&json!(3), &Value::Null));
    world.stop().await;
}

#[tokio::test]
async fn an_old_version_and_a_deleted_row_come_back_as_new_versions() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    let first = world.row("ECHO").await;
    world.change("ECHO", &json!({"target": "noop", "category": "x"})).await;
    let back = restore(&world, "ECHO", 1).await;
    assert_eq!(back.status, 200, "{}", back.text);
    let restored = world.row("ECHO").await;
    assert_eq!(
        (&restored["version"], &restored["target"], &restored["category"]),
        (&json!(3), &json!("echo"), &Value::Null)
    );
    assert_eq!(restored["contract_hash"], first["contract_hash"]);

    world.delete("ECHO").await;
    assert_eq!(world.invoke("ECHO", "x").await.status, 404);
    assert_eq!(restore(&world, "ECHO", 2).await.status, 200);
    let revived = world.row("ECHO").await;
    assert_eq!((&revived["version"], &revived["category"]), (&json!(5), &json!("x")));
    assert_eq!(restore(&world, "ECHO", 4).await.status, 404, "the tombstone is no version that could stand");
    assert_eq!(restore(&world, "ECHO", 99).await.status, 404);
    assert_eq!(told(&history(&world, "ECHO").await)[0], (5, "restore"));
    world.stop().await;
}

#[tokio::test]
async fn a_version_is_never_used_twice_for_one_key() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    world.change("ECHO", &json!({"category": "a"})).await;
    let old = world.get("/api/directory/ECHO").await.headers["etag"].clone();
    world.delete("ECHO").await;
    world.create(&echo("ECHO")).await;
    assert_eq!(world.row("ECHO").await["version"], 4);
    let lost =
        send(world.owner(Method::PATCH, "/api/directory/ECHO").header("if-match", old).json(&json!({"category": "b"})))
            .await;
    assert_eq!(lost.status, 412, "a row that came back is not the row that was read");
    world.delete("ECHO").await;
    assert_eq!(world.import("", echo("ECHO").to_string()).await.json()["created"], 1);
    assert_eq!(world.row("ECHO").await["version"], 6);
    world.stop().await;
}

#[tokio::test]
async fn a_change_that_only_reaches_a_row_counts_no_edit_of_it() {
    let world = World::start().await;
    world.create(&echo("STEP")).await;
    world.create(&flow("FLOW", "STEP: $1")).await;
    world.change("STEP", &json!({"target": "noop"})).await;
    let flow = world.row("FLOW").await;
    assert_eq!(
        (&flow["version"], &flow["revision"]),
        (&json!(1), &json!(3)),
        "its hashes moved with the write, its version did not"
    );
    let versions = history(&world, "FLOW").await;
    assert_eq!(versions.last().unwrap()["action"], "create");
    assert_eq!(restore(&world, "FLOW", 1).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn every_write_leaves_an_event_that_nobody_can_change() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    world.change("ECHO", &json!({"category": "a"})).await;
    world.import("?on_conflict=replace", echo("ECHO").to_string()).await;
    world.delete("ECHO").await;
    let mut owner = database::owner(&world.database_url).await;
    let bodies: Vec<String> =
        sqlx::query_scalar("select body from event where kind = 'mutate' and key = 'ECHO' order by id")
            .fetch_all(&mut owner)
            .await
            .unwrap();
    let bodies: Vec<Value> = bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect();
    let actions: Vec<_> = bodies.iter().map(|body| body["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["create", "patch", "import", "delete"]);
    for body in &bodies {
        assert_eq!(
            (&body["actor"], &body["key"], &body["kind"]),
            (&json!("owner:terminal-key"), &json!("ECHO"), &json!("mutate"))
        );
    }
    assert_eq!((&bodies[1]["before"]["version"], &bodies[1]["after"]["version"]), (&json!(1), &json!(2)));
    assert_eq!((&bodies[0]["before"], &bodies[3]["after"]), (&Value::Null, &Value::Null));

    let changes = [
        "update event set actor = 'x'",
        "delete from event",
        "truncate event",
        "update directory_history set actor = 'x'",
        "delete from directory_history",
        "truncate directory_history",
    ];
    for change in &changes[..3] {
        let refused = owner.execute(*change).await.unwrap_err().to_string();
        assert!(refused.contains("append-only"), "the owner of the table: {change}: {refused}");
    }
    for change in changes {
        let mut acting = database::owner(&world.database_url).await;
        acting.execute("set role callbook_app").await.unwrap();
        let refused = acting.execute(change).await.unwrap_err();
        assert!(
            refused.to_string().contains("append-only") || refused.to_string().contains("permission denied"),
            "{change}: {refused}"
        );
    }
    world.stop().await;
}
