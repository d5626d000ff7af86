//! Prompt blocks: text that agents include. Nobody can call them, and nobody who looks for something to call is told of
//! them.

use callbook_tests::book::{echo, saying, with};
use callbook_tests::mcp::Client;
use callbook_tests::provider::{Form, Provider, Say};
use callbook_tests::world::World;
use serde_json::{Value, json};

use crate::agent::{agent, deployment};

/// A block whose words are a good answer to the question of these tests.
fn block(key: &str, text: &str) -> Value {
    let content =
        format!("# WHAT: How to greet a guest politely\n# WHEN_TO_USE: somebody wants to greet a guest\n{text}");
    json!({"key": key, "type": "fn", "target": "prompt_block", "category": "block", "content": content})
}

#[tokio::test]
async fn a_block_is_found_by_no_question_and_listed_as_no_tool() {
    let world = World::start().await;
    world.create(&block("GREETING", "Say hello.")).await;
    world.create(&echo("ECHO")).await;
    for question in ["how to greet a guest politely", "GREETING", "prompt block"] {
        let path = format!("/api/dispatch?ask={}&limit=100", question.replace(' ', "+"));
        for answer in [world.look(&path).await, world.get(&path).await] {
            let keys: Vec<Value> =
                answer.json()["matches"].as_array().unwrap().iter().map(|found| found["key"].clone()).collect();
            assert!(!keys.contains(&json!("GREETING")), "{question}: {keys:?}");
        }
    }
    for path in ["/mcp/tools", "/mcp/tools?category=block", "/mcp/tools?prefix=GREET"] {
        let typed = Client::modern(&world, path);
        let tools = typed.all("tools/list", "tools").await;
        assert!(!json!(tools).to_string().contains("GREETING"), "{path}: {tools:?}");
        assert_eq!(typed.refused("tools/call", json!({"name": "GREETING"})).await, (200, -32602), "{path}");
    }
    let four = Client::modern(&world, "/mcp");
    let found = four.call("ask", json!({"question": "how to greet a guest politely"})).await;
    assert!(!found.to_string().contains("GREETING"), "{found}");
    assert_eq!(world.get("/api/directory/GREETING").await.status, 200, "who reads the book finds it");
    world.stop().await;
}

#[tokio::test]
async fn a_call_of_a_block_is_refused_before_anything_is_committed_and_a_step_of_one_fails() {
    let world = World::start().await;
    world.create(&block("GREETING", "Say hello.")).await;
    world.create(&callbook_tests::book::flow("FLOW", "?: GREETING: > GREETING: | GREETING:")).await;
    for call in [json!({"key": "GREETING", "body": "x"}), json!({"key": "GREETING", "body": "x", "shape": true})] {
        let refused = world.post("/api/dispatch", &call).await;
        let told = (refused.status, refused.error());
        assert_eq!(told, (503, "runner_not_available:prompt_block".to_owned()), "{}", refused.text);
        assert_eq!(refused.json()["ran"], false);
    }
    let answer = world.invoke("FLOW", "").await;
    let error = &answer.json()["error"];
    assert_eq!(error["code"], "runner_not_available:prompt_block", "{}", answer.text);
    let listed = world.get("/api/invocations").await.json();
    assert_eq!(listed["invocations"].as_array().unwrap().len(), 1, "the flow alone: {listed}");
    world.stop().await;
}

#[tokio::test]
async fn an_agent_has_its_blocks_in_their_order_and_can_neither_find_nor_call_one() {
    let provider = Provider::start(Form::OpenaiChat, |at, asked| match at {
        0 => Say::Calls(vec![
            ("ask", json!({"question": "how to greet a guest politely", "limit": 50})),
            ("contract", json!({"key": "GREETING"})),
            ("invoke", json!({"key": "GREETING", "body": "x"})),
        ]),
        _ => Say::text(asked.messages.iter().rev().take(3).map(|(_, text)| text.as_str()).collect::<String>()),
    })
    .await;
    let (world, _secrets) = deployment(&provider, &[]).await;
    for (key, text) in [("GREETING", "Say hello."), ("BREVITY", "Be brief."), ("AWAY", "Nobody includes this.")] {
        world.create(&block(key, text)).await;
    }
    let words = saying("GREET", "Greet a guest politely");
    world.create(&with(words, &json!({"category": "block"}))).await;
    world.create(&with(agent("HOST", "You are the host."), &json!({"includes": ["GREETING", "BREVITY"]}))).await;
    let told = world.invoke("HOST", "x").await.json()["result"].as_str().unwrap().to_owned();
    let system = &provider.asked()[0].system;
    assert!(system.starts_with("Say hello.\n\nBe brief.\n\nYou are the host.\n\n"), "{system}");
    assert!(!system.contains("Nobody includes this") && !system.contains("# WHAT"), "{system}");
    assert!(told.contains("Greet a guest politely") && !told.contains("How to greet"), "{told}");
    assert!(told.contains("result_of=\"invoke GREETING\" status=\"refused\""), "{told}");

    world.change("HOST", &json!({"includes": "BREVITY,GREETING"})).await;
    world.invoke("HOST", "x").await;
    let turned = &provider.asked().pop().unwrap().system;
    assert!(turned.starts_with("Be brief.\n\nSay hello.\n\nYou are the host.\n\n"), "{turned}");
    world.stop().await;
}
