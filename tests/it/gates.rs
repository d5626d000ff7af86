//! What a writer may not do, whatever way it takes.

use callbook_tests::world::{World, send};
use reqwest::Method;
use serde_json::{Value, json};

fn echo(key: &str, more: &Value) -> Value {
    let mut row = json!({"key": key, "type": "fn", "target": "echo", "content": "# WHAT: Says it\n# ARGS: text\n# EX: x\n[\"$1\"]"});
    row.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    row
}

#[tokio::test]
async fn a_key_that_was_taken_back_writes_nothing_within_the_second_that_it_is_believed() {
    let world = World::start().await;
    let key = world.principal("writer", &json!([{"may": "edit", "prefix": ""}])).await;
    let post = |row: Value| world.anyone(Method::POST, "/api/directory").bearer_auth(&key).json(&row);
    assert_eq!(send(post(echo("FIRST", &json!({})))).await.status, 201);
    assert_eq!(send(world.owner(Method::DELETE, "/api/principals/writer")).await.status, 200);
    assert_eq!(send(post(echo("SECOND", &json!({})))).await.status, 401);
    let patch = world.anyone(Method::PATCH, "/api/directory/FIRST").bearer_auth(&key).json(&json!({"category": "x"}));
    assert_eq!(send(patch).await.status, 401);
    world.stop().await;
}

#[tokio::test]
async fn deleting_and_creating_does_not_take_a_gate_down() {
    let world = World::start().await;
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    world.create(&echo("SENSITIVE", &json!({"sensitive": true, "input_schema": schema}))).await;
    let key = world.principal("editor", &json!([{"may": "edit", "prefix": ""}])).await;
    let delete = world.anyone(Method::DELETE, "/api/directory/SENSITIVE").bearer_auth(&key);
    let refused = send(delete).await;
    assert_eq!(
        (refused.status, refused.json()["needs"].clone()),
        (403, json!("approve:SENSITIVE")),
        "{}",
        refused.text
    );
    assert_eq!(send(world.owner(Method::DELETE, "/api/directory/SENSITIVE")).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn json_in_a_string_is_read_as_strictly_as_json() {
    let world = World::start().await;
    let inner = format!("{}1{}", "[".repeat(100), "]".repeat(100));
    let hidden = format!(r#"{{"$serde_json::private::RawValue":{}}}"#, Value::from(inner));
    let bomb = format!("[{}{hidden}{}]", "[".repeat(100), "]".repeat(100));
    for column in ["examples", "input_schema"] {
        let refused = world.post("/api/directory", &echo("BOMB", &json!({column: bomb}))).await;
        assert!((400..=422).contains(&refused.status), "{column}: {} {}", refused.status, refused.text);
    }
    world.create(&echo("AFTER", &json!({}))).await;
    assert_eq!(world.invoke("AFTER", "x").await.status, 200, "the feed goes on");
    world.stop().await;
}

#[tokio::test]
async fn what_was_taken_out_of_a_row_is_history_for_its_editors_alone() {
    let world = World::start().await;
    let row = echo("ONCE", &json!({"content": "# WHAT: pasted-by-mistake\n# ARGS: text\n# EX: x\n[\"$1\"]"}));
    world.create(&row).await;
    let better = json!({"content": "# WHAT: Says it\n# ARGS: text\n# EX: x\n[\"$1\"]"});
    let patched = send(world.owner(Method::PATCH, "/api/directory/ONCE").json(&better)).await;
    assert_eq!(patched.status, 200, "{}", patched.text);
    let public = send(world.anyone(Method::GET, "/api/directory/ONCE/history")).await;
    assert_eq!(public.status, 200);
    assert!(!public.text.contains("pasted-by-mistake"), "{}", public.text);
    assert!(public.text.contains("\"content\""), "which column changed is told: {}", public.text);
    assert!(world.get("/api/directory/ONCE/history").await.text.contains("pasted-by-mistake"));
    world.stop().await;
}
