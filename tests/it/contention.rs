//! Many writers at once: each gets an answer, nothing is lost, and nobody waits for ever.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callbook_tests::book::{echo, flow, with};
use callbook_tests::database;
use callbook_tests::world::World;
use futures::future::join_all;
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_writes_fifty_imports_and_a_hundred_calls_at_once_all_go_through() {
    let world = Arc::new(World::start().await);
    world.create(&echo("ECHO")).await;
    let began = Instant::now();
    let writes = join_all((0..100).map(|n| {
        let world = world.clone();
        async move { world.post("/api/directory", &echo(&format!("ROW_{n}"))).await }
    }));
    let imports = join_all((0..50).map(|n| {
        let world = world.clone();
        let rows: String = (0..3).map(|m| format!("{}\n", echo(&format!("LINE_{n}_{m}")))).collect();
        async move { world.import("", rows).await }
    }));
    let calls = join_all((0..100).map(|n| {
        let world = world.clone();
        async move { world.invoke("ECHO", &n.to_string()).await }
    }));
    let (writes, imports, calls) = tokio::join!(writes, imports, calls);
    for (answers, status) in [(writes, 201), (imports, 200), (calls, 200)] {
        let others: Vec<_> = answers.iter().filter(|answer| answer.status != status).collect();
        assert!(others.is_empty(), "{} of {}: {}", others.len(), answers.len(), others[0].text);
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(world.get("/api/directory?limit=1").await.json()["count"], 251);
    let mut owner = database::owner(&world.database_url).await;
    let left: i64 = sqlx::query_scalar("select count(*) from directory_stage").fetch_one(&mut owner).await.unwrap();
    assert_eq!(left, 0, "nothing stays in the staging table");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_whose_client_hangs_up_is_there_whole_or_not_at_all() {
    let world = Arc::new(World::start().await);
    let mut owner = database::owner(&world.database_url).await;
    for (at, wait) in [20, 100, 250, 400, 700, 1_200].into_iter().enumerate() {
        let rows: String = (0..400).map(|n| format!("{}\n", echo(&format!("ROW_{at}_{n}")))).collect();
        let importing = world.clone();
        let client = tokio::spawn(async move { importing.import("", rows).await });
        tokio::time::sleep(Duration::from_millis(wait)).await;
        client.abort();
        let began = Instant::now();
        loop {
            let count: i64 = sqlx::query_scalar("select count(*) from directory where key like $1")
                .bind(format!("ROW\\_{at}\\_%"))
                .fetch_one(&mut owner)
                .await
                .unwrap();
            assert!(count == 0 || count == 400, "{count} of 400");
            let staged: i64 =
                sqlx::query_scalar("select count(*) from directory_stage").fetch_one(&mut owner).await.unwrap();
            if staged == 0 && began.elapsed() > Duration::from_millis(300) {
                break;
            }
            assert!(began.elapsed() < Duration::from_secs(10), "{staged} rows stay in the staging table");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    world.create(&echo("AFTER")).await;
}

#[tokio::test]
async fn of_many_patches_with_one_etag_one_is_taken() {
    let world = World::start().await;
    world.create(&echo("ROW")).await;
    let patch = |n: usize| {
        let request = world.owner(reqwest::Method::PATCH, "/api/directory/ROW").header("if-match", "\"v1\"");
        callbook_tests::door::send(request.json(&json!({"planner_rank": n})))
    };
    let answers = join_all((0..20).map(patch)).await;
    let taken = answers.iter().filter(|answer| answer.status == 200).count();
    let lost = answers.iter().filter(|answer| answer.status == 412).count();
    assert_eq!((taken, lost), (1, 19));
    assert_eq!(world.row("ROW").await["version"], 2);
    world.stop().await;
}

#[tokio::test]
async fn of_many_creates_of_one_key_one_is_taken() {
    let world = World::start().await;
    let row = echo("ROW");
    let answers = join_all((0..20).map(|_| world.post("/api/directory", &row))).await;
    let taken = answers.iter().filter(|answer| answer.status == 201).count();
    let known = answers.iter().filter(|answer| answer.error() == "already_exists").count();
    assert_eq!((taken, known), (1, 19));
    world.stop().await;
}

#[tokio::test]
async fn an_import_that_only_spoils_another_row_ends_as_the_single_write_does() {
    let world = World::start().await;
    world.create(&echo("STEP")).await;
    world.create(&flow("FLOW", "STEP: $1")).await;
    let away = with(echo("STEP"), &json!({"runner": "edge"}));
    let imported = world.import("?on_conflict=replace", away.to_string());
    let imported = tokio::time::timeout(Duration::from_secs(10), imported).await.expect("the import ends");
    assert_eq!((imported.status, &imported.json()["replaced"]), (200, &json!(1)), "{}", imported.text);
    let back = world.patch("STEP", &json!({"runner": null})).await;
    assert_eq!(back.status, 200, "{}", back.text);
    assert_eq!(world.patch("STEP", &json!({"runner": "edge"})).await.status, 200);
    let bound = with(flow("OTHER", "STEP: $1"), &json!({"runner": "default"}));
    let refused = world.post("/api/directory", &bound).await;
    assert_eq!(refused.error(), "registry_hygiene_refused: bad_template", "{}", refused.text);
    assert!(refused.text.contains("pool_mismatch"), "{}", refused.text);
    world.stop().await;
}
