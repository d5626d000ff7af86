//! Writing one row: who may, what is taken, what comes back, and what a write leaves of the row.

use callbook_tests::book::{echo, with};
use callbook_tests::world::{World, send};
use reqwest::Method;
use serde_json::{Value, json};

#[tokio::test]
async fn a_write_needs_a_credential_and_the_right_to_edit() {
    let world = World::start().await;
    world.create(&echo("TEAM_ECHO")).await;
    let key = world.principal("team", &json!([{"may": "edit", "prefix": "TEAM_"}])).await;
    let other = echo("OTHER");
    let writes = |path: &str| {
        [
            (Method::POST, "/api/directory".to_owned()),
            (Method::PUT, path.to_owned()),
            (Method::PATCH, path.to_owned()),
            (Method::DELETE, path.to_owned()),
        ]
    };
    for (method, path) in writes("/api/directory/OTHER") {
        let nobody = send(world.anyone(method.clone(), &path).json(&other)).await;
        assert_eq!((nobody.status, &nobody.json()["error"]), (401, &json!("unauthorized")), "{method} {path}");
        let wrong = send(world.bearer("cbk_nobody_has_this_key", method.clone(), &path).json(&other)).await;
        assert_eq!((wrong.status, &wrong.json()["error"]), (401, &json!("unauthorized")), "{method} {path}");
        let team = send(world.bearer(&key, method.clone(), &path).json(&other)).await;
        let told = team.json();
        assert_eq!(
            (team.status, &told["error"], &told["needs"]),
            (403, &json!("forbidden"), &json!("edit:OTHER")),
            "{method} {path}"
        );
    }
    let own =
        send(world.bearer(&key, Method::PATCH, "/api/directory/TEAM_ECHO").json(&json!({"category": "team"}))).await;
    assert_eq!(own.status, 200, "{}", own.text);
    world.stop().await;
}

#[tokio::test]
async fn an_unknown_row_is_not_found_by_its_literal_body() {
    let world = World::start().await;
    let restore = send(world.owner(Method::POST, "/api/directory/NOPE/restore?version=1")).await;
    let answers = [
        world.get("/api/directory/NOPE").await,
        world.patch("NOPE", &json!({"category": "x"})).await,
        world.put("NOPE", &echo("NOPE")).await,
        world.get("/api/directory/NOPE/history").await,
        world.get("/api/directory/NOPE/test").await,
        restore,
    ];
    for answer in answers {
        assert_eq!((answer.status, &answer.json()["error"]), (404, &json!("not found")), "{}", answer.text);
    }
    assert_eq!(world.delete("NOPE").await, json!({"ok": true, "key": "NOPE", "deleted": 0}));
    world.stop().await;
}

#[tokio::test]
async fn a_body_without_a_known_field_is_refused_and_unknown_fields_are_named() {
    let world = World::start().await;
    let created = world.create(&with(echo("ECHO"), &json!({"colour": "red", "version": 9, "row_num": 4}))).await;
    let mut ignored: Vec<_> =
        created["ignored_fields"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    ignored.sort_unstable();
    assert_eq!(ignored, ["colour", "row_num", "version"]);
    for body in [json!({}), json!({"colour": "red"}), json!({"version": 9, "contract_hash": "x", "updated_at": "x"})] {
        let answer = world.patch("ECHO", &body).await;
        assert_eq!((answer.status, &answer.json()["error"]), (400, &json!("no recognized fields")), "{}", answer.text);
    }
    let patched = world.change("ECHO", &json!({"category": "x", "planner_rank": 3, "colour": "red"})).await;
    assert_eq!(
        (&patched["fields"], &patched["ignored_fields"]),
        (&json!(["category", "planner_rank"]), &json!(["colour"]))
    );
    assert_eq!(world.row("ECHO").await["version"], 2);
    world.stop().await;
}

#[tokio::test]
async fn key_and_type_are_the_only_required_fields_of_a_create() {
    let world = World::start().await;
    for body in [
        json!({"type": "fn"}),
        json!({"key": "A"}),
        json!({"key": 1, "type": "fn"}),
        json!({"key": "A", "type": "prompt"}),
    ] {
        let answer = world.post("/api/directory", &body).await;
        assert_eq!(
            (answer.status, &answer.json()["error"]),
            (400, &json!("invalid_request")),
            "{body}: {}",
            answer.text
        );
    }
    let exists = json!("already_exists");
    world.create(&echo("A")).await;
    let again = world.post("/api/directory", &echo("A")).await;
    assert_eq!((again.status, &again.json()["error"]), (409, &exists));
    world.stop().await;
}

#[tokio::test]
async fn a_lost_update_is_refused_and_an_unchanged_read_is_not_sent_again() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    let read = world.get("/api/directory/ECHO").await;
    let etag = read.headers["etag"].to_str().unwrap().to_owned();
    let again = send(world.owner(Method::GET, "/api/directory/ECHO").header("if-none-match", &etag)).await;
    assert_eq!((again.status, again.text.as_str(), again.headers["etag"].to_str().unwrap()), (304, "", etag.as_str()));

    let first = send(
        world.owner(Method::PATCH, "/api/directory/ECHO").header("if-match", &etag).json(&json!({"category": "a"})),
    )
    .await;
    assert_eq!(first.status, 200, "{}", first.text);
    let next = first.headers["etag"].to_str().unwrap();
    assert_ne!(next, etag);
    let stale =
        |method: Method| world.owner(method, "/api/directory/ECHO").header("if-match", &etag).json(&echo("ECHO"));
    for method in [Method::PATCH, Method::PUT, Method::DELETE] {
        let lost = send(stale(method.clone())).await;
        assert_eq!((lost.status, &lost.json()["error"]), (412, &json!("version_mismatch")), "{method}");
    }
    let restore = world.owner(Method::POST, "/api/directory/ECHO/restore?version=1").header("if-match", &etag);
    assert_eq!(send(restore).await.status, 412);
    let nothing = world.owner(Method::DELETE, "/api/directory/NOPE").header("if-match", &etag);
    assert_eq!(send(nothing).await.status, 412);
    assert_eq!(world.row("ECHO").await["category"], "a");
    let last = send(world.owner(Method::DELETE, "/api/directory/ECHO").header("if-match", next)).await;
    assert_eq!(last.json()["deleted"], 1);
    world.stop().await;
}

#[tokio::test]
async fn a_contract_is_not_sent_again_until_something_about_it_changes() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    let read = world.look("/api/dispatch?key=ECHO").await;
    let etag = read.headers["etag"].to_str().unwrap().to_owned();
    let again = |etag: String| world.anyone(Method::GET, "/api/dispatch?key=ECHO").header("if-none-match", etag);
    assert_eq!(send(again(etag.clone())).await.status, 304);
    world.change("ECHO", &json!({"examples": ["other"]})).await;
    assert_eq!(send(again(etag)).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn a_put_brings_the_defaults_of_omitted_columns_back_and_a_patch_leaves_them() {
    let world = World::start().await;
    let set = json!({"category": "c", "planner_rank": 3, "planner_visible": false, "enabled": true, "seq": 4,
        "timeout_ms": 900, "max_response_bytes": 5000, "sensitive": true, "input_schema": {"type": "object"},
        "runner": "default", "allowed_categories": ["a", "b"], "includes": "X,Y", "provenance": "generated"});
    world.create(&with(echo("ECHO"), &set)).await;
    let stored = world.row("ECHO").await;
    for (column, value) in set.as_object().unwrap() {
        let shown = if column == "allowed_categories" { json!("a,b") } else { value.clone() };
        assert_eq!(stored[column], shown, "{column}");
    }
    world.change("ECHO", &json!({"seq": 5})).await;
    assert_eq!(world.row("ECHO").await["timeout_ms"], 900);
    world.change("ECHO", &json!({"seq": null})).await;
    assert_eq!(world.row("ECHO").await["seq"], Value::Null);

    assert_eq!(world.put("ECHO", &echo("ECHO")).await.status, 200);
    let replaced = world.row("ECHO").await;
    let defaults = json!({"category": null, "planner_rank": 100, "planner_visible": true, "enabled": true, "seq": null,
        "timeout_ms": null, "max_response_bytes": null, "sensitive": false, "input_schema": null, "runner": null,
        "allowed_categories": null, "includes": null, "provenance": "owner", "output_schema": null, "auth": ""});
    for (column, value) in defaults.as_object().unwrap() {
        assert_eq!(&replaced[column], value, "{column}");
    }
    assert_eq!(replaced["created_at"], stored["created_at"]);
    let other = world.put("ECHO", &echo("OTHER")).await;
    assert_eq!((other.status, &other.json()["error"]), (400, &json!("invalid_request")), "{}", other.text);
    world.stop().await;
}

#[tokio::test]
async fn every_column_of_the_seed_can_be_patched() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    let columns = json!({"type": "http", "target": "GET https://api.example.com/$1", "auth": "bearer:NAME",
        "content": "# WHAT: y\n# ARGS: a", "category": "c", "allowed_categories": "a,b", "seq": 2, "enabled": 0,
        "planner_visible": 0, "planner_rank": 7, "input_schema": "{\"type\":\"object\"}", "examples": "[\"1\"]",
        "sensitive": 1, "runner": "edge", "includes": "X"});
    let patched = world.change("ECHO", &columns).await;
    assert_eq!(patched["fields"].as_array().unwrap().len(), columns.as_object().unwrap().len(), "{patched}");
    let row = world.row("ECHO").await;
    assert_eq!(
        (&row["enabled"], &row["planner_visible"], &row["sensitive"]),
        (&json!(false), &json!(false), &json!(true))
    );
    assert_eq!((&row["input_schema"], &row["examples"]), (&json!({"type": "object"}), &json!(["1"])));
    assert_eq!((&row["type"], &row["runner"], &row["includes"]), (&json!("http"), &json!("edge"), &json!("X")));
    world.stop().await;
}

#[tokio::test]
async fn booleans_and_embedded_json_are_taken_as_the_seed_wrote_them_and_nothing_else() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    let wrong = [
        ("enabled", json!(2)),
        ("enabled", json!("true")),
        ("sensitive", json!(-1)),
        ("planner_rank", json!(1.5)),
        ("planner_rank", json!("1")),
        ("seq", json!(1u64 << 40)),
        ("timeout_ms", json!(0)),
        ("timeout_ms", json!(-5)),
        ("max_response_bytes", json!(0)),
        ("input_schema", json!("{nope")),
        ("examples", json!("nope")),
        ("examples", json!([1])),
        ("examples", json!({})),
        ("content", json!(1)),
        ("category", json!(["a"])),
        ("provenance", json!("me")),
        ("allowed_categories", json!([1])),
        ("runner", json!("no pool")),
        ("content", json!("# WHAT: a\u{0}b")),
        ("target", json!("a\u{0}")),
    ];
    for (column, value) in wrong {
        let answer = world.patch("ECHO", &json!({column: value})).await;
        let told = answer.json();
        assert_eq!(
            (answer.status, &told["error"], &told["field"]),
            (400, &json!("invalid_request"), &json!(column)),
            "{column} {value}: {told}"
        );
    }
    assert_eq!(world.row("ECHO").await["version"], 1);
    world.stop().await;
}

#[tokio::test]
async fn what_is_too_long_is_refused_and_what_just_fits_is_taken() {
    let world = World::start().await;
    let content = |bytes: usize| {
        let head = "# WHAT: x\n# ARGS: none\n# EX: [E][/E]\n";
        format!("{head}[\"{}\"]", "a".repeat(bytes - head.len() - 4))
    };
    let put =
        |columns: Value| with(json!({"type": "fn", "target": "noop", "content": "# WHAT: x\n# EX: [E][/E]"}), &columns);
    world.create(&echo("ECHO")).await;
    let fits = world.put("ECHO", &put(json!({"content": content(64 * 1024)}))).await;
    assert_eq!(fits.status, 200, "{}", fits.text);
    let long = world.put("ECHO", &put(json!({"content": content(64 * 1024 + 1)}))).await;
    assert_eq!((long.status, &long.json()["field"]), (400, &json!("content")), "{}", long.text);

    let docstring = |bytes: usize| format!("# WHAT: {}\n# EX: [E][/E]", "a".repeat(bytes - 22));
    assert_eq!(world.put("ECHO", &put(json!({"content": docstring(8 * 1024)}))).await.status, 200);
    let long = world.put("ECHO", &put(json!({"content": docstring(8 * 1024 + 1)}))).await;
    assert_eq!(long.json()["error"], "registry_hygiene_refused: bad_template", "{}", long.text);

    let schema = json!({"type": "object", "$comment": "x".repeat(64 * 1024)});
    let long = world.put("ECHO", &put(json!({"input_schema": schema}))).await;
    assert_eq!((long.status, &long.json()["field"]), (400, &json!("input_schema")), "{}", long.text);
    world.stop().await;
}
