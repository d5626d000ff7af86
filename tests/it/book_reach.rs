//! What a row reaches belongs to its contract: steps, blocks, and what their edits do to its hashes.

use callbook_tests::book::{agent, echo, flow, http, saying, with};
use callbook_tests::world::World;
use serde_json::{Value, json};

/// Contract hash and text hash.
async fn hashes(world: &World, key: &str) -> (String, String) {
    let row = world.row(key).await;
    let hash = |name: &str| row[name].as_str().unwrap().to_owned();
    assert!(hash("contract_hash").starts_with("sha256:") && hash("contract_hash").len() == 71, "{row}");
    (hash("contract_hash"), hash("text_hash"))
}

/// Which of the two hashes of `key` an edit of `edited` moves.
async fn moved(world: &World, key: &str, edited: &str, columns: Value) -> (bool, bool) {
    let before = hashes(world, key).await;
    world.change(edited, &columns).await;
    let after = hashes(world, key).await;
    (before.0 != after.0, before.1 != after.1)
}

#[tokio::test]
async fn an_edit_moves_the_hash_of_what_it_changes_and_no_other() {
    let world = World::start().await;
    world.create(&http("ROW", "GET https://api.example.com/$1", "$1=id", "")).await;
    let of = |columns: Value| moved(&world, "ROW", "ROW", columns);
    for (columns, contract, text) in [
        (json!({"examples": ["other"]}), false, true),
        (json!({"category": "other"}), false, true),
        (json!({"content": "# WHAT: Other words\n# ARGS: $1=id"}), false, true),
        (json!({"planner_rank": 1, "planner_visible": false, "seq": 3}), false, false),
        (json!({"target": "GET https://api.example.com/v2/$1"}), true, false),
        (json!({"auth": "bearer:NAME"}), true, false),
        (json!({"runner": "edge"}), true, false),
        (json!({"timeout_ms": 500}), true, false),
        (json!({"max_response_bytes": 500}), true, false),
        (json!({"allowed_categories": "a"}), true, false),
        (json!({"output_schema": {"type": "object", "description": "What was found"}}), true, true),
        (json!({"input_schema": {"type": "object", "properties": {"id": {"description": "Which"}}}}), true, true),
        (json!({"sensitive": true}), true, false),
        (json!({"content": "# WHAT: Other words\n# ARGS: $1=name"}), false, true),
    ] {
        let (moved_contract, moved_text) = of(columns.clone()).await;
        assert_eq!(moved_contract, contract, "contract hash after {columns}");
        if text {
            assert!(moved_text, "text hash after {columns}");
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn argument_names_belong_to_the_contract_of_a_row_without_a_schema() {
    let world = World::start().await;
    world.create(&echo("ROW")).await;
    let renamed =
        json!({"content": "# WHAT: Give back what came\n# ARGS: $1=words\n# EX: [ROW]hello[/ROW]\n# SAFE: yes"});
    assert_eq!(moved(&world, "ROW", "ROW", renamed).await, (true, true));
    world.stop().await;
}

#[tokio::test]
async fn equal_rows_have_equal_hashes_in_any_deployment_and_after_any_way_there() {
    let (one, two) = (World::start().await, World::start().await);
    one.create(&echo("STEP")).await;
    one.create(&flow("FLOW", "STEP: $1")).await;
    two.create(&flow("FLOW", "STEP: $1")).await;
    assert_ne!(hashes(&one, "FLOW").await, hashes(&two, "FLOW").await, "a step that is not there is not a step");
    two.create(&with(echo("STEP"), &json!({"target": "noop", "seq": 2}))).await;
    two.put("STEP", &echo("STEP")).await;
    assert_eq!(hashes(&one, "FLOW").await, hashes(&two, "FLOW").await);
    two.delete("STEP").await;
    two.create(&echo("STEP")).await;
    assert_eq!(hashes(&one, "FLOW").await, hashes(&two, "FLOW").await);
    one.stop().await;
    two.stop().await;
}

#[tokio::test]
async fn an_edit_of_a_step_reaches_every_flow_above_it_at_any_depth() {
    let world = World::start().await;
    world.create(&echo("STEP")).await;
    world.create(&flow("INNER", "STEP: $1")).await;
    world.create(&flow("OUTER", "INNER: $1 > STEP: $PREV")).await;
    for (flow, ms) in [("INNER", 100), ("OUTER", 200)] {
        assert!(!moved(&world, flow, "STEP", json!({"examples": [flow]})).await.0, "{flow}: examples of a step");
        let words = json!({"content": saying("STEP", &format!("Words for {flow}"))["content"]});
        assert!(!moved(&world, flow, "STEP", words).await.0, "{flow}: words of a step");
        assert!(moved(&world, flow, "STEP", json!({"timeout_ms": ms})).await.0, "{flow}: a step's time");
    }
    assert!(moved(&world, "OUTER", "STEP", json!({"target": "noop"})).await.0);
    let before = hashes(&world, "OUTER").await;
    world.delete("STEP").await;
    assert_ne!(hashes(&world, "OUTER").await.0, before.0, "a step that is gone is another contract");
    let shown = world.look("/api/dispatch?key=OUTER").await.json();
    assert_eq!(shown["contract_hash"], hashes(&world, "OUTER").await.0);
    world.stop().await;
}

#[tokio::test]
async fn a_flow_is_as_risky_and_as_far_reaching_as_its_worst_step() {
    let world = World::start().await;
    world.create(&echo("SAFE_STEP")).await;
    world.create(&http("DROP", "DELETE https://api.example.com/$1", "$1=id", "")).await;
    world.create(&flow("FLOW", "SAFE_STEP: $1 > DROP: $PREV")).await;
    let contract = || async { world.look("/api/dispatch?key=FLOW").await.json() };
    assert_eq!((&contract().await["effect"], &contract().await["risk"]), (&json!("destructive"), &json!("low")));
    world.change("SAFE_STEP", &json!({"sensitive": true, "input_schema": {"type": "object"}})).await;
    assert_eq!(contract().await["risk"], "high");
    world.delete("DROP").await;
    assert_eq!(contract().await["effect"], "read", "a flow does what its steps do");
    world.stop().await;
}

#[tokio::test]
async fn the_text_of_a_block_belongs_to_the_agents_that_include_it() {
    let world = World::start().await;
    let block = |text: &str| {
        let content = format!("# WHAT: How agents speak\n{text}");
        json!({"key": "VOICE", "type": "fn", "target": "prompt_block", "category": "block", "content": content})
    };
    world.create(&block("Be plain.")).await;
    world.create(&with(agent("AGENT", "You help."), &json!({"includes": ["VOICE"]}))).await;
    let new_text = block("Be plain and short.")["content"].clone();
    assert!(moved(&world, "AGENT", "VOICE", json!({"content": new_text})).await.0);
    let same_text = json!({"content": "# WHAT: Other words about it\nBe plain and short."});
    assert!(!moved(&world, "AGENT", "VOICE", same_text).await.0);
    world.stop().await;
}

#[tokio::test]
async fn flows_agents_and_blocks_are_shown_and_a_prompt_stays_with_those_who_may_edit_it() {
    let world = World::start().await;
    world.create(&echo("STEP")).await;
    world.create(&flow("FLOW", "STEP: $1")).await;
    world.create(&agent("AGENT", "A prompt of ours.")).await;
    for (key, kind) in [("FLOW", "flow"), ("AGENT", "agent")] {
        let shown = world.look(&format!("/api/dispatch?key={key}")).await;
        assert_eq!((shown.status, &shown.json()["type"]), (200, &json!(kind)), "{}", shown.text);
        let shaped = world.post("/api/dispatch", &json!({"key": key, "body": "x", "shape": true})).await;
        assert_eq!((shaped.status, &shaped.json()["verdict"]), (200, &json!("allowed")), "{}", shaped.text);
        assert!(!shown.text.contains("A prompt of ours") && !shaped.text.contains("A prompt of ours"));
    }
    let public = world.look("/api/directory/AGENT").await;
    assert!(!public.text.contains("A prompt of ours"), "{}", public.text);
    assert!(world.get("/api/directory/AGENT").await.text.contains("A prompt of ours"));
    assert_eq!(world.get("/api/invocations").await.json()["invocations"], json!([]));
    world.stop().await;
}

/// A number below `below`, the same in every run.
fn next(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap() % below
}

/// Any row of any type under one of a few keys, reaching any others.
fn any_row(state: &mut u64) -> Value {
    let key = |state: &mut u64| format!("KEY_{}", next(state, 10));
    let name = key(state);
    match next(state, 6) {
        0 => with(echo(&name), &json!({"timeout_ms": 1 + next(state, 5)})),
        1 => http(&name, ["GET https://a.example.com/", "DELETE https://a.example.com/"][next(state, 2)], "none", ""),
        2 => with(echo(&name), &json!({"sensitive": true, "input_schema": {"type": "object"}})),
        3 => flow(&name, &format!("{}: $1 > {}: $PREV", key(state), key(state))),
        4 => flow(&name, &format!("{{ {}: [\"$1\"] | {}: [\"$1\"] }} => A > ECHO: $A", key(state), key(state))),
        _ => with(agent(&name, "Be kind."), &json!({"includes": [key(state), key(state)]})),
    }
}

#[tokio::test]
async fn after_any_edits_the_book_has_the_hashes_of_a_book_that_was_written_at_once() {
    for seed in 1..=4 {
        let (world, mut state) = (World::start().await, seed);
        let mut taken = 0;
        for _ in 0..60 {
            let row = any_row(&mut state);
            let key = row["key"].as_str().unwrap();
            let status = match next(&mut state, 5) {
                0 => world.delete(key).await["deleted"]
                    .as_u64()
                    .map_or(0, |deleted| if deleted == 1 { 200 } else { 404 }),
                1 => world.import("?on_conflict=replace", row.to_string()).await.status,
                2 => {
                    world
                        .import("?mode=each&on_conflict=replace", format!("{row}\n{}", any_row(&mut state)))
                        .await
                        .status
                }
                3 => world.put(key, &row).await.status,
                _ => world.post("/api/directory", &row).await.status,
            };
            assert!([200, 201, 404, 409, 422].contains(&status), "{status}: {row}");
            taken += u32::from(status < 300);
        }
        assert!(taken > 20, "{taken} edits were taken");
        let (text, copy) = (world.export().await, World::start().await);
        assert_eq!(copy.import("", text.clone()).await.json()["ok"], true);
        for row in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let key = row["key"].as_str().unwrap();
            let contract = format!("/api/dispatch?key={key}");
            let (one, two) = (world.look(&contract).await.json(), copy.look(&contract).await.json());
            for name in ["contract_hash", "effect", "risk"] {
                assert_eq!(one[name], two[name], "{name} of {key} after the edits of seed {seed}");
            }
            assert_eq!(hashes(&world, key).await, hashes(&copy, key).await, "{key}, seed {seed}");
        }
        world.stop().await;
        copy.stop().await;
    }
}
