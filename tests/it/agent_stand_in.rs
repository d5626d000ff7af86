//! Agents against a stand-in of others' making, which speaks both wire forms and can be told to misbehave.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callbook_tests::book::{echo, with};
use callbook_tests::is_here;
use callbook_tests::process::free_port;
use callbook_tests::world::World;
use serde_json::{Value, json};

use crate::agent::{agent, children, receipt};

/// The stand-in as a process, ended with the test.
struct StandIn {
    child: Child,
    origin: String,
    _fixtures: tempfile::TempDir,
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn script() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../scripts/llmock")
}

/// Asks, invokes, and says what came: matched by how often the model has answered, and by what it was given.
fn fixtures() -> Value {
    let call = |name: &str, arguments: Value| json!({"toolCalls": [{"name": name, "arguments": arguments}]});
    json!({"fixtures": [
        {"match": {"userMessage": "hello there", "turnIndex": 0}, "response": call("ask", json!({"question": "give back what came"}))},
        {"match": {"userMessage": "hello there", "turnIndex": 1}, "response": call("contract", json!({"key": "ECHO"}))},
        {"match": {"userMessage": "hello there", "turnIndex": 2}, "response": call("invoke", json!({"key": "ECHO", "body": "a word of its own"}))},
        {"match": {"userMessage": "hello there", "turnIndex": 3, "toolResultContains": "a word of its own"}, "response": {"content": "It said a word of its own."}},
    ]})
}

async fn stand_in(misbehaviour: &[&str]) -> Option<StandIn> {
    if !tokio::task::spawn_blocking(|| is_here(script(), "--help")).await.unwrap() {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("fixtures.json"), fixtures().to_string()).unwrap();
    let port = free_port();
    let child = Command::new(script())
        .args(["--port", &port.to_string(), "--strict", "--log-level", "silent", "--fixtures"])
        .arg(folder.path().join("fixtures.json"))
        .args(misbehaviour)
        .env("AIMOCK_STRICT_TURN_INDEX", "1")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let stand_in = StandIn { child, origin: format!("http://127.0.0.1:{port}"), _fixtures: folder };
    let began = Instant::now();
    while tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(20), "the stand-in does not listen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Some(stand_in)
}

/// A deployment with a provider of either form at the stand-in, and a row that its models use.
async fn deployment(stand_in: &StandIn) -> World {
    let origin = &stand_in.origin;
    let provider = |name: &str, form: &str| {
        format!("[providers.{name}]\nbase_url = \"{origin}/v1\"\nform = \"{form}\"\nmodels = [\"{name}-*\"]\n")
    };
    let toml = provider("gpt", "openai-chat") + &provider("claude", "anthropic-messages");
    let world = World::with().allow(std::slice::from_ref(origin)).toml(&toml).start().await;
    world.create(&echo("ECHO")).await;
    for (key, target) in [("GPT", "gpt-4.1-mini"), ("CLAUDE", "claude-sonnet-4.5")] {
        world.create(&with(agent(key, "Help."), &json!({ "target": target }))).await;
    }
    world
}

#[tokio::test]
async fn a_two_step_task_is_done_in_both_wire_forms() {
    let Some(stand_in) = stand_in(&[]).await else { return };
    let world = deployment(&stand_in).await;
    for key in ["GPT", "CLAUDE"] {
        let answer = world.invoke(key, "hello there").await;
        assert_eq!(answer.json()["result"], "It said a word of its own.", "{key}: {}", answer.text);
        let children = children(&world, &answer.id()).await;
        let runners: Vec<&str> = children.iter().map(|child| child["runner"].as_str().unwrap()).collect();
        assert_eq!(runners, ["model", "ask", "model", "contract", "model", "fn", "model"], "{key}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_provider_that_drops_limits_or_answers_nonsense_ends_in_a_typed_outcome() {
    for (misbehaviour, code) in [
        ("--chaos-disconnect", "agent:http:fetch"),
        ("--chaos-ratelimit", "agent:http:429"),
        ("--chaos-malformed", "agent:malformed"),
        ("--chaos-drop", "agent:http:500"),
    ] {
        let Some(stand_in) = stand_in(&[misbehaviour, "1"]).await else { return };
        let world = deployment(&stand_in).await;
        for key in ["GPT", "CLAUDE"] {
            let answer = world.invoke(key, "hello there").await;
            let told = answer.json();
            assert_eq!((&told["ran"], &told["error"]["code"]), (&json!(true), &json!(code)), "{key} {told}");
            let whole = receipt(&world, &answer.id()).await;
            assert_eq!(whole["status"], "PROVEN_ATTEMPT_NO_MATERIAL_RESULT", "{misbehaviour}");
            assert_eq!(children(&world, &answer.id()).await.len(), 1, "{misbehaviour}");
        }
        world.stop().await;
    }
}
