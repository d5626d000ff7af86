//! Rows of type `fn`: one row is one built-in function, called over the gateway.

use callbook_tests::book::{saying, with};
use callbook_tests::database;
use callbook_tests::door::{Answer, send};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use reqwest::Method;
use serde_json::{Value, json};
use sqlx::Executor as _;

/// A row of the function's name whose template hands on as many arguments as are named.
fn row(function: &str, arguments: usize) -> Value {
    let slots: Vec<String> = (1..=arguments).map(|n| format!("\"${n}\"")).collect();
    let names: Vec<String> = (1..=arguments).map(|n| format!("${n}=a{n}")).collect();
    let names = if names.is_empty() { "none".to_owned() } else { names.join(" | ") };
    let content = format!("# WHAT: The function {function}\n# ARGS: {names}\n# EX: x\n[{}]", slots.join(","));
    with(saying(&function.to_uppercase(), ""), &json!({"target": function, "content": content}))
}

async fn as_somebody(world: &World, key: &str, row: &str, args: &Value) -> Answer {
    send(world.bearer(key, Method::POST, "/api/dispatch").json(&json!({"key": row, "args": args}))).await
}

#[tokio::test]
async fn each_pure_function_gives_what_its_name_says() {
    let world = World::start().await;
    let sha256 = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let cases = [
        ("upper", json!(["straße"]), "STRASSE"),
        ("lower", json!(["ÄB"]), "äb"),
        ("trim", json!(["  a b \n"]), "a b"),
        ("sha256", json!(["abc"]), sha256.trim_start_matches("sha256:")),
        ("base64_encode", json!(["a\u{0}é"]), "YQDDqQ=="),
        ("base64_decode", json!(["YWJj"]), "abc"),
        ("url_encode", json!(["a b&c/é"]), "a%20b%26c%2F%C3%A9"),
        ("json_get", json!(["$.a[1].b", "{\"a\":[0,{\"b\":1.10}]}"]), "1.10"),
        ("json_merge", json!(["{\"a\":1,\"b\":2}", "{\"b\":3}"]), "{\"a\":1,\"b\":3}"),
        ("last_reply_of", json!(["[REPLY]a[/REPLY] [REPLY]b[/REPLY]"]), "b"),
        ("noop", json!([]), ""),
    ];
    for (function, args, expected) in cases {
        world.create(&row(function, args.as_array().unwrap().len())).await;
        let answer = world.call(&function.to_uppercase(), &args).await;
        let result = answer.json()["result"].as_str().unwrap_or_default().to_owned();
        assert!(answer.json()["ok"] == true && result.trim_start_matches("sha256:") == expected, "{}", answer.text);
    }
    for function in ["now", "uuid", "random"] {
        world.create(&row(function, 0)).await;
        assert_eq!(world.invoke(&function.to_uppercase(), "").await.json()["ok"], true, "{function}");
    }
    let now = world.invoke("NOW", "").await.json()["output"].clone();
    let names: Vec<_> = ["now", "today", "time", "zone", "iso"].iter().filter(|name| !now[**name].is_null()).collect();
    assert_eq!(names.len(), 5, "{now}");
    world.stop().await;
}

#[tokio::test]
async fn a_function_that_does_not_exist_or_does_not_like_its_arguments_is_a_failed_run_with_a_receipt() {
    let world = World::start().await;
    for (function, args, result) in [
        ("frobnicate", json!([]), "ERR:fn:unknown_target:frobnicate"),
        ("base64_decode", json!(["!"]), "ERR:fn:"),
        ("json_get", json!(["$.[", "{}"]), "ERR:fn:"),
        ("kv_get", json!(["nothing"]), "ERR:fn:no_key"),
        ("sql_query", json!(["nowhere", "select 1"]), "ERR:fn:unknown_database"),
    ] {
        world.create(&row(function, args.as_array().unwrap().len())).await;
        let answer = world.call(&function.to_uppercase(), &args).await;
        let told = answer.json();
        assert_eq!((answer.status, &told["ok"], &told["ran"]), (200, &json!(false), &json!(true)), "{told}");
        assert!(told["result"].as_str().unwrap().starts_with(result), "{told}");
        let confirm = world.look(&format!("/api/dispatch?confirm={}", answer.id())).await.json();
        assert_eq!(confirm["status"], "PROVEN_ATTEMPT_NO_MATERIAL_RESULT", "{function}");
    }
    world.stop().await;
}

#[tokio::test]
async fn pairs_belong_to_their_caller_unless_they_are_shared() {
    let world = World::start().await;
    for (function, arguments) in [("kv_put", 2), ("kv_get", 1), ("kv_append", 2), ("kv_delete", 1), ("kv_list", 0)] {
        world.create(&row(function, arguments)).await;
    }
    let grants = json!([{"may": "invoke"}]);
    let (one, two) = (world.principal("one", &grants).await, world.principal("two", &grants).await);
    for (caller, value) in [(&one, "1.10"), (&two, "{\"b\":2}")] {
        let put = as_somebody(&world, caller, "KV_PUT", &json!(["mine", value])).await;
        assert_eq!(put.json()["ok"], true, "{}", put.text);
        as_somebody(&world, caller, "KV_APPEND", &json!(["shared/log", value])).await;
    }
    for (caller, value) in [(&one, "1.10"), (&two, "{\"b\":2}")] {
        let got = as_somebody(&world, caller, "KV_GET", &json!(["mine"])).await;
        assert!(got.text.contains(&format!("\"output\":{value}")), "{}", got.text);
    }
    assert_eq!(world.call("KV_GET", &json!(["mine"])).await.json()["error"]["code"], "fn:no_key");
    assert_eq!(world.call("KV_GET", &json!(["shared/log"])).await.json()["result"], "1.10{\"b\":2}");
    let listed = as_somebody(&world, &one, "KV_LIST", &json!([])).await;
    assert_eq!(listed.json()["output"], json!(["mine", "shared/log"]), "{}", listed.text);
    world.stop().await;
}

#[tokio::test]
async fn a_function_that_changes_the_book_acts_with_the_callers_rights() {
    let world = World::start().await;
    for (function, arguments) in [("row_put", 1), ("row_patch", 2), ("row_delete", 1), ("contract", 1)] {
        world.create(&row(function, arguments)).await;
    }
    let grants = json!([{"may": "invoke"}, {"may": "edit", "prefix": "TEAM_"}]);
    let team = world.principal("team", &grants).await;
    let put = |key: &str| json!([saying(key, "Say it").to_string()]);
    let own = as_somebody(&world, &team, "ROW_PUT", &put("TEAM_ROW")).await;
    assert_eq!(own.json()["ok"], true, "{}", own.text);
    for (row, args) in [
        ("ROW_PUT", put("OTHER")),
        ("ROW_PATCH", json!(["ROW_PUT", "{\"enabled\":false}"])),
        ("ROW_DELETE", json!(["ROW_PUT"])),
    ] {
        let refused = as_somebody(&world, &team, row, &args).await;
        let told = refused.json();
        assert!(told["ran"] == true && told["result"].as_str().unwrap().contains("forbidden"), "{told}");
    }
    assert_eq!(world.get("/api/directory/OTHER").await.status, 404);
    assert_eq!(as_somebody(&world, &team, "TEAM_ROW", &json!(["hello"])).await.json()["ok"], true);
    let history = world.get("/api/directory/TEAM_ROW/history").await.json();
    assert_eq!(history["versions"][0]["actor"], "principal:team", "{history}");
    assert_eq!(world.call("ROW_DELETE", &json!(["TEAM_ROW"])).await.json()["output"]["deleted"], 1);
    let unknown = world.call("CONTRACT", &json!(["TEAM_ROW"])).await;
    assert!(unknown.json()["result"].as_str().unwrap().contains("unknown_key"), "{}", unknown.text);
    world.stop().await;
}

#[tokio::test]
async fn a_fetch_reaches_public_origins_alone_also_where_rows_may_go_further() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&row("http_fetch", 1)).await;
    for url in [upstream.origin(), "https://169.254.169.254/".to_owned(), "https://localhost/".to_owned()] {
        let answer = world.call("HTTP_FETCH", &json!([url])).await.json();
        assert!(answer["result"].as_str().unwrap().starts_with("ERR:http:refused:"), "{url}: {answer}");
    }
    assert_eq!(upstream.count(), 0);
    world.stop().await;
}

#[tokio::test]
async fn a_query_reads_a_named_database_and_never_the_books_own() {
    let (own, other) = (database::fresh().await, database::fresh().await);
    let mut connection = database::owner(&other).await;
    connection.execute("create table tide (harbour text, metres numeric)").await.unwrap();
    connection.execute("insert into tide values ('Brest', 1.10), ('Dover', 2.5)").await.unwrap();
    let settings = format!("[databases.sea]\nurl = \"{other}\"\nmax_rows = 2\n[databases.own]\nurl = \"{own}\"");
    let world = World::with().database(&own).toml(&settings).start().await;
    world.create(&row("sql_query", 2)).await;
    let query = |database: &str, statement: &str| {
        let (world, args) = (&world, json!([database, statement]));
        async move { world.call("SQL_QUERY", &args).await }
    };
    let read = query("sea", "select harbour, metres from tide order by harbour").await;
    let rows = r#""output":[{"harbour":"Brest","metres":1.10},{"harbour":"Dover","metres":2.5}]"#;
    assert!(read.text.contains(rows), "{}", read.text);
    for statement in [
        "insert into tide values ('x', 1)",
        "delete from tide returning *",
        "select 1; drop table tide",
        "select * from tide, tide t",
        "select pg_sleep(60)",
        "commit",
    ] {
        let refused = query("sea", statement).await.json();
        assert_eq!((&refused["ran"], &refused["ok"]), (&json!(true), &json!(false)), "{statement}: {refused}");
    }
    let own = query("own", "select 1").await.json();
    assert_eq!(own["error"]["code"], "fn:own_database", "{own}");
    let count: i64 = sqlx::query_scalar("select count(*) from tide").fetch_one(&mut connection).await.unwrap();
    assert_eq!(count, 2);
    world.stop().await;
}
