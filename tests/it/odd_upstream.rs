//! The 22 awkward answers of `odd_upstream.py`: each has its typed outcome and its receipt.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use callbook_tests::book::{http, with};
use callbook_tests::process::free_port;
use callbook_tests::shared;
use callbook_tests::world::World;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

const MATERIAL: &str = "PROVEN_MATERIAL_RESULT";
const NOTHING: &str = "PROVEN_ATTEMPT_NO_MATERIAL_RESULT";

/// The script, ended with the test. It has ports of its own here, so that two runs do not meet.
struct Odd {
    child: Child,
    origin: String,
    /// Where its redirect points.
    thief: TcpListener,
}

impl Drop for Odd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn odd() -> Option<Odd> {
    let script = std::fs::read_to_string(shared("upstreams/odd_upstream.py")?).unwrap();
    let thief = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (port, steal) = (free_port().to_string(), thief.local_addr().unwrap().port().to_string());
    let script = script.replace("8911", &port).replace("8912", &steal);
    let mut python = Command::new("python3");
    python.args(["-c", &script]).stdout(Stdio::null()).stderr(Stdio::null());
    let child = python.spawn().expect("python3 runs the shared upstream");
    let odd = Odd { child, origin: format!("http://127.0.0.1:{port}"), thief };
    let began = Instant::now();
    while TcpStream::connect(format!("127.0.0.1:{port}")).await.is_err() {
        assert!(began.elapsed() < Duration::from_secs(10), "the script does not listen");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Some(odd)
}

/// What an answer must be: how its text begins, what it gives, and what its receipt says.
struct Expected {
    target: &'static str,
    result: &'static str,
    output: Value,
    receipt: &'static str,
}

fn good(target: &'static str, result: &'static str, output: Value) -> Expected {
    Expected { target, result, output, receipt: MATERIAL }
}

fn empty(target: &'static str, result: &'static str) -> Expected {
    Expected { target, result, output: Value::Null, receipt: NOTHING }
}

fn bad(target: &'static str, result: &'static str, output: Value) -> Expected {
    Expected { target, result, output, receipt: NOTHING }
}

fn as_text(media_type: &str, text: &str) -> Value {
    json!({"media_type": media_type, "text": text})
}

fn table() -> Vec<Expected> {
    let html = as_text("application/json", "<html>oops</html>");
    let problem = json!({"type": "about:blank", "title": "nope", "detail": "id 7 not found"});
    vec![
        empty("GET /e204", "HTTP 204:"),
        Expected { receipt: MATERIAL, ..empty("DELETE /e204", "HTTP 204:") },
        empty("GET /emptyjson", "HTTP 200:"),
        good("GET /notjson", "HTTP 200:<html>oops</html>", html),
        good("GET /bom", "HTTP 200:{\"a\":1}", json!({"a": 1})),
        good(
            "GET /badutf8",
            "HTTP 200:eyJhIjoi//4ifQ==",
            json!({"media_type": "application/json", "base64": "eyJhIjoi//4ifQ=="}),
        ),
        good("GET /nul", "HTTP 200:{\"a\":\"x\\u0000y\"}", json!({"a": "x\u{0}y"})),
        good("GET /scalar", "HTTP 200:42", json!(42)),
        good("GET /list", "HTTP 200:[1,2,3]", json!([1, 2, 3])),
        good("GET /null", "HTTP 200:null", Value::Null),
        bad("GET /p404", "ERR:http:404:{\"type\":\"about:blank\"", problem),
        bad("GET /s500", "ERR:http:500:Traceback: secret=hunter2", as_text("text/plain", "Traceback: secret=hunter2")),
        bad("GET /r302", "ERR:http:302:", Value::Null),
        bad("GET /r429", "ERR:http:429:{\"e\":\"slow\"}", json!({"e": "slow"})),
        good("GET /gz", "HTTP 200:{\"a\":1}", json!({"a": 1})),
        good(
            "GET /ndjson",
            "HTTP 200:{\"a\":1}\n{\"a\":2}\n",
            as_text("application/x-ndjson", "{\"a\":1}\n{\"a\":2}\n"),
        ),
        good(
            "GET /sse",
            "HTTP 200:data: {\"a\":1}\n\n",
            as_text("text/event-stream", "data: {\"a\":1}\n\ndata: [DONE]\n\n"),
        ),
        good("GET /latin1", "HTTP 200:café", as_text("text/plain", "café")),
        bad("GET /slow", "ERR:http:timeout:", Value::Null),
        empty("HEAD /e204", "HTTP 204:"),
        good("GET /any?x=1", "HTTP 200:{\"path\": \"/any?x=1\"}", json!({"path": "/any?x=1"})),
        good("PUT /put", "HTTP 200:{\"path\": \"/put\"", json!({"path": "/put", "ct": null, "body": ""})),
    ]
}

#[tokio::test]
async fn each_awkward_answer_has_its_outcome_and_its_receipt() {
    let Some(odd) = odd().await else { return };
    let thief = format!("http://{}", odd.thief.local_addr().unwrap());
    let world = World::with().allow(&[odd.origin.clone(), thief]).start().await;
    for (at, expected) in table().into_iter().enumerate() {
        let key = format!("ODD_{at}");
        let (method, path) = expected.target.split_once(' ').unwrap();
        let target = format!("{method} {}{path}", odd.origin);
        world.create(&with(http(&key, &target, "none", ""), &json!({"timeout_ms": 1_000}))).await;
        let answer = world.invoke(&key, "").await.json();
        let result = answer["result"].as_str().unwrap_or_default();
        assert!(result.starts_with(expected.result), "{target}: {answer}");
        assert_eq!(
            (&answer["ran"], answer["ok"] == true),
            (&json!(true), result.starts_with("HTTP ")),
            "{target}: {answer}"
        );
        assert_eq!(answer["output"], expected.output, "{target}: {answer}");
        let id = answer["proof"]["invocation_id"].as_str().unwrap();
        let receipt = world.get(&format!("/api/dispatch?receipt={id}")).await.json();
        assert_eq!(receipt["status"], expected.receipt, "{target}");
        assert_eq!(
            receipt["upstream_status"],
            answer["error"]["upstream_status"]
                .as_u64()
                .or(receipt["upstream_status"].as_u64())
                .map_or(Value::Null, Value::from),
            "{target}"
        );
        let kinds: Vec<_> =
            receipt["events"].as_array().unwrap().iter().map(|event| event["kind"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["intent", "result"], "{target}");
    }
    let came = tokio::time::timeout(Duration::from_millis(50), odd.thief.accept()).await;
    assert!(came.is_err(), "the redirect was followed");
    what_no_table_can_say(&world, &odd.origin).await;
    world.stop().await;
}

/// Answers whose text is exact, binary or too large for a table.
async fn what_no_table_can_say(world: &World, origin: &str) {
    let call = |key: &'static str, path: &'static str| async move {
        world.create(&http(key, &format!("GET {origin}{path}"), "none", "")).await;
        world.invoke(key, "").await
    };
    let exact = call("BIGINT", "/bigint").await;
    assert!(
        exact.text.contains("\"output\":{\"id\":1915883588174806058,\"f\":0.1000000000000000055,\"e\":1e400}"),
        "{}",
        exact.text
    );
    let twice = call("DUP", "/dup").await;
    assert!(twice.text.contains("\"output\":{\"a\":1,\"a\":2}"), "{}", twice.text);
    let png = call("PNG", "/png").await.json();
    let bytes = data_encoding::BASE64.decode(png["output"]["base64"].as_str().unwrap().as_bytes()).unwrap();
    assert_eq!((&png["output"]["media_type"], bytes.len(), &bytes[..4]), (&json!("image/png"), 264, &b"\x89PNG"[..]));
    let huge = call("HUGE", "/huge").await.json();
    assert_eq!((&huge["ok"], &huge["output"]["truncated"]), (&json!(true), &json!(true)));
    assert_eq!(huge["output"]["text"].as_str().unwrap().len(), 4 * 1024 * 1024);
    let deep = call("DEEP", "/deep").await.json();
    assert_eq!(
        (&deep["ok"], deep["output"]["text"].as_str().unwrap().len()),
        (&json!(true), 6_000),
        "deep JSON is handed on as text"
    );
    let limited = call("LIMITED", "/r429").await;
    assert_eq!(
        (&limited.json()["error"]["retryable"], &limited.json()["error"]["upstream_status"]),
        (&json!(true), &json!(429))
    );
    let receipt = world.get(&format!("/api/dispatch?receipt={}", limited.id())).await.json();
    let response: Value = serde_json::from_str(receipt["response"]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&response["status"], &response["headers"]["retry-after"]), (&json!(429), &json!("7")), "{response}");
    let echo = call("ECHO", "/echo?a=b").await.json();
    let headers = &echo["output"]["h"];
    assert!(
        headers["User-Agent"].as_str().or(headers["user-agent"].as_str()).unwrap().starts_with("callbook/"),
        "{echo}"
    );
    for page in ["DUP", "PNG", "DEEP"] {
        let listed = world.get(&format!("/api/invocations?key={page}")).await.json();
        let id = listed["invocations"][0]["invocation_id"].as_str().unwrap();
        assert_eq!(world.look(&format!("/receipt/{id}")).await.status, 200, "{page}");
    }
}
