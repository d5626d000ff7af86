//! What the book refuses to hold: in which order, in which words, and for which kind of write.

use callbook_tests::book::{agent, echo, flow, http, with};
use callbook_tests::world::{Answer, World};
use serde_json::{Value, json};

/// A deployment with one secret that is bound to one origin and one kind of key.
async fn world() -> World {
    World::with()
        .toml("[secrets.BOUND]\norigins = [\"https://api.example.com\"]\nkeys = [\"GOOD\", \"STEP\"]")
        .start()
        .await
}

fn refused(answer: &Answer, key: &str, code: &str) {
    let body = answer.json();
    assert_eq!(answer.status, 422, "{code}: {}", answer.text);
    assert_eq!(body["error"], format!("registry_hygiene_refused: {code}"), "{body}");
    assert_eq!((&body["key"], &body["state_changed"]), (&json!(key), &json!(false)), "{body}");
    assert!(body["how_to_fix"].as_str().is_some_and(|fix| fix.len() > 10), "{body}");
}

/// A description that passes 16 KiB although each of its parts is within its bound.
fn long_schema() -> Value {
    let name = "a_word_of_a_long_name_".repeat(12);
    let properties: serde_json::Map<String, Value> =
        (0..60).map(|n| (format!("{name}{n}"), json!({"type": "string"}))).collect();
    json!({"type": "object", "properties": properties})
}

#[tokio::test]
async fn violations_are_told_one_by_one_in_their_order_and_nothing_is_written() {
    let world = world().await;
    let mut row = json!({"type": "http", "target": "GET $1://x", "content": " ", "sensitive": 1, "input_schema": null});
    let steps = [
        ("missing_description", json!({"content": "# WHAT: x\n# ARGS: a"})),
        ("high_risk_missing_schema", json!({"input_schema": {"type": "nonsense"}})),
        ("keyless_missing_examples", json!({"examples": ["x"]})),
        ("bad_template", json!({"target": "GET https://evil.example.com/$1", "auth": "bearer:BOUND"})),
        ("secret_origin_refused", json!({"target": "GET https://api.example.com/$1"})),
        ("bad_schema", json!({"input_schema": long_schema()})),
        ("description_too_large", json!({"input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}})),
    ];
    world.create(&echo("GOOD_ROW")).await;
    for (code, mend) in steps {
        refused(&world.put("GOOD_ROW", &row).await, "GOOD_ROW", code);
        assert_eq!(world.row("GOOD_ROW").await["version"], 1, "{code}");
        row = with(row, &mend);
    }
    assert_eq!(world.put("GOOD_ROW", &row).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn a_secret_stays_with_its_origin_and_its_keys() {
    let world = world().await;
    let row = |key: &str, target: &str| with(http(key, target, "none", ""), &json!({"auth": "bearer:BOUND"}));
    for target in [
        "GET https://api.example.com.evil.org/x",
        "GET https://api.example.com:8443/x",
        "GET http://api.example.com/x",
        "target_map:{\"a\":\"GET https://api.example.com/x\",\"b\":\"GET https://evil.org/x\"}",
    ] {
        refused(&world.post("/api/directory", &row("GOOD", target)).await, "GOOD", "secret_origin_refused");
    }
    let elsewhere = world.post("/api/directory", &row("OTHER", "GET https://api.example.com/x")).await;
    refused(&elsewhere, "OTHER", "secret_origin_refused");
    world.create(&row("GOOD", "GET https://api.example.com/x")).await;
    let moved = world.patch("GOOD", &json!({"target": "GET https://evil.org/x"})).await;
    refused(&moved, "GOOD", "secret_origin_refused");
    world.stop().await;
}

#[tokio::test]
async fn templates_that_could_not_run_are_refused_with_their_place() {
    let world = world().await;
    let cases = [
        (json!({"type": "http", "target": "GET https://$1.example.com/"}), "host"),
        (json!({"type": "http", "target": "GET https://api.example.com:$1/"}), "port"),
        (json!({"type": "http", "target": "$1 https://api.example.com/"}), "method"),
        (json!({"type": "http", "target": "GET https://api.example.com/?$1=x"}), "query"),
        (json!({"type": "http", "target": "GET https://api.example.com/#$1"}), "fragment"),
        (
            json!({"type": "http", "target": "POST https://api.example.com/", "content": "# WHAT: x\n{\"$1\": 1}"}),
            "key",
        ),
        (json!({"type": "http", "target": "GET https://api.example.com/$UNKNOWN"}), "UNKNOWN"),
        (
            json!({"type": "http", "target": "GET https://api.example.com/", "auth": "digest:NAME"}),
            "unknown_prefix:digest",
        ),
        (json!({"type": "http", "target": "GET https://api.example.com/", "auth": "oauth:NAME"}), "oauth"),
        (json!({"type": "fn", "target": "echo", "content": "# WHAT: x\n[\"$5.00\"]"}), "$5"),
        (json!({"type": "flow", "content": "# WHAT: x\nNOW: > > ECHO: $1"}), "part 2"),
        (json!({"type": "flow", "content": "# WHAT: x\n"}), "flow"),
    ];
    for (columns, named) in cases {
        let row = with(json!({"key": "ROW", "content": "# WHAT: x\n# ARGS: a", "examples": ["x"]}), &columns);
        let answer = world.post("/api/directory", &row).await;
        refused(&answer, "ROW", "bad_template");
        let told = format!("{} {}", answer.json()["message"], answer.json()["how_to_fix"]);
        assert!(told.to_lowercase().contains(&named.to_lowercase()), "{named} is not in {told}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_schema_must_be_one_and_refer_to_itself_alone() {
    let world = world().await;
    let deep = (0..70).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner}));
    for schema in [
        json!({"type": "nonsense"}),
        json!({"$ref": "https://example.com/schema.json"}),
        json!({"$ref": "#/$defs/none"}),
        json!({"type": "object", "properties": {"a": {"pattern": "("}}}),
        json!([1]),
        deep,
    ] {
        for column in ["input_schema", "output_schema"] {
            let answer = world.post("/api/directory", &with(echo("ROW"), &json!({column: schema}))).await;
            refused(&answer, "ROW", "bad_schema");
            assert!(answer.json()["message"].as_str().unwrap().starts_with(column), "{}", answer.text);
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn a_create_derives_a_missing_example_and_the_seeds_probe_is_taken() {
    let world = world().await;
    let probe = json!({"key": "__DOC_PROBE", "type": "http",
        "target": "GET https://miscsubjects.com/api/dispatch?key=TIME_NOW",
        "category": "docs", "content": "# WHAT: Probe row created to time one capability insert.\n# ARGS: none\n"});
    let created = world.create(&probe).await;
    assert_eq!((&created["ok"], &created["key"]), (&json!(true), &json!("__DOC_PROBE")));
    assert!(created["updated_at"].as_str().unwrap().ends_with('Z'), "{created}");
    assert_eq!(created["warnings"], json!(["keyless_missing_examples"]));
    let contract = world.look("/api/dispatch?key=__DOC_PROBE").await;
    assert_eq!(contract.status, 200, "{}", contract.text);
    refused(&world.put("__DOC_PROBE", &probe).await, "__DOC_PROBE", "keyless_missing_examples");
    world.stop().await;
}

#[tokio::test]
async fn a_patch_refuses_only_what_was_not_broken_before() {
    let world = world().await;
    world.create(&json!({"key": "PROBE", "type": "fn", "target": "noop", "content": "# WHAT: x"})).await;
    let patched = world.change("PROBE", &json!({"category": "tools"})).await;
    assert_eq!(patched["warnings"], json!(["keyless_missing_examples"]));
    refused(&world.patch("PROBE", &json!({"content": " "})).await, "PROBE", "missing_description");
    refused(&world.patch("PROBE", &json!({"sensitive": true})).await, "PROBE", "high_risk_missing_schema");
    world.change("PROBE", &json!({"examples": ["a"]})).await;
    refused(&world.patch("PROBE", &json!({"examples": []})).await, "PROBE", "keyless_missing_examples");
    assert_eq!(world.row("PROBE").await["version"], 3);
    world.stop().await;
}

#[tokio::test]
async fn warnings_are_named_and_refuse_nothing() {
    let world = world().await;
    let taken = world.create(&with(echo("A"), &json!({"content": "[\"$1\"]", "examples": ["x"]}))).await;
    assert_eq!(taken["warnings"], json!(["no_what"]));
    let taken = world.create(&with(echo("B"), &json!({"target": "frobnicate"}))).await;
    assert_eq!(taken["warnings"], json!(["unknown_fn_target:frobnicate"]));
    let taken = world.create(&flow("C", "NOPE: $1 > A: $PREV")).await;
    assert_eq!(taken["warnings"], json!(["unknown_step:NOPE"]));
    let agent = with(agent("D", "Be kind."), &json!({"includes": "VOICE"}));
    assert_eq!(world.create(&agent).await["warnings"], json!(["unknown_include:VOICE"]));
    let columns = json!({"auth": "bearer:NOBODY", "runner": "edge"});
    let http = with(http("E", "GET https://api.example.com/", "none", ""), &columns);
    assert_eq!(world.create(&http).await["warnings"], json!(["secret_not_configured:NOBODY", "pool_not_served:edge"]));
    world.stop().await;
}

#[tokio::test]
async fn a_row_that_reaches_itself_is_refused_whichever_edit_closes_the_circle() {
    let world = world().await;
    refused(&world.post("/api/directory", &flow("SELF", "SELF: $1")).await, "SELF", "cycle");
    world.create(&flow("ONE", "TWO: $1")).await;
    world.create(&flow("TWO", "THREE: $1")).await;
    refused(&world.post("/api/directory", &flow("THREE", "ONE: $1")).await, "THREE", "cycle");
    world.create(&echo("THREE")).await;
    let patch = json!({"type": "flow", "target": "", "content": "# WHAT: x\n# EX: x\nONE: $1"});
    refused(&world.patch("THREE", &patch).await, "THREE", "cycle");
    let lines = [flow("X", "Y: $1"), flow("Y", "X: $1"), echo("Z")].map(|row| row.to_string()).join("\n");
    let imported = world.import("", lines).await;
    assert_eq!(imported.status, 422, "{}", imported.text);
    let codes: Vec<_> =
        imported.json()["refused"].as_array().unwrap().iter().map(|line| line["error"].clone()).collect();
    assert_eq!(codes, ["registry_hygiene_refused: cycle"; 2]);
    world.stop().await;
}
