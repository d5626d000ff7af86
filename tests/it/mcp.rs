//! The four tools over MCP, by clients of both eras.

use callbook_tests::book;
use callbook_tests::door::send;
use callbook_tests::mcp::{Client, LEGACY, MODERN, last, text};
use callbook_tests::upstream::{self, Upstream};
use callbook_tests::world::World;
use reqwest::Method;
use serde_json::{Value, json};

fn temperature(upstream: &Upstream) -> Value {
    let target = format!("GET {}/v1/forecast?latitude=$1&longitude=$2", upstream.origin());
    let content = "# WHAT: Current temperature in Celsius at a coordinate\n# WHEN_TO_USE: how warm is it somewhere\n\
                   # ARGS: $1=latitude | $2=longitude\n# EX: [TEMPERATURE]37.77|-122.42[/TEMPERATURE]";
    json!({"key": "TEMPERATURE", "type": "http", "target": target, "content": content, "category": "weather"})
}

#[tokio::test]
async fn a_question_becomes_a_receipt_in_two_calls_and_a_look_in_both_eras() {
    let upstream = Upstream::weather().await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&temperature(&upstream)).await;
    let legacy = Client::legacy(&world, "/mcp");
    let agreed = legacy.ask("initialize", json!({"protocolVersion": LEGACY, "capabilities": {}})).await;
    assert_eq!(
        (agreed["protocolVersion"].clone(), agreed["serverInfo"]["name"].clone()),
        (json!(LEGACY), json!("callbook"))
    );
    let modern = Client::modern(&world, "/mcp");
    let found = modern.ask("server/discover", json!({})).await;
    assert_eq!(found["supportedVersions"][0], MODERN);
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "callbook");

    for client in [&legacy, &modern] {
        let tools = client.all("tools/list", "tools").await;
        let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["ask", "contract", "invoke", "receipt"]);

        let asked: Value =
            serde_json::from_str(&text(&client.call("ask", json!({"question": "how warm is it"})).await)).unwrap();
        assert_eq!(asked["best"]["key"], "TEMPERATURE", "{asked}");
        assert_eq!(asked["best"]["arguments"][0]["name"], "latitude");

        let args = json!({"key": "TEMPERATURE", "args": {"longitude": "-122.42", "latitude": "37.77"}});
        let ran = client.call("invoke", args).await;
        assert_eq!(ran["structuredContent"]["current"]["temperature_2m"].to_string(), "15.7", "{ran}");
        let id = ran["_meta"]["callbook/invocation_id"].as_str().unwrap();
        let told = text(&ran);
        let last_line = told.lines().last().unwrap();
        assert!(last_line.contains(id) && last_line.contains(&format!("/api/dispatch?confirm={id}")), "{told}");
        assert_eq!(upstream.seen().last().unwrap().target, "/v1/forecast?latitude=37.77&longitude=-122.42");

        let receipt: Value = serde_json::from_str(&text(&client.call("receipt", json!({"id": id})).await)).unwrap();
        assert_eq!(
            (receipt["status"].clone(), receipt["actor"].clone()),
            (json!("PROVEN_MATERIAL_RESULT"), json!("owner:terminal-key"))
        );
        let contract = text(&client.call("contract", json!({"key": "TEMPERATURE", "format": "markdown"})).await);
        assert!(contract.contains("weather > TEMPERATURE"), "{contract}");
    }
    world.stop().await;
}

#[tokio::test]
async fn the_modern_era_marks_every_result_and_says_how_long_lists_hold() {
    let world = World::start().await;
    let modern = Client::modern(&world, "/mcp");
    let tools = modern.ask("tools/list", json!({})).await;
    assert_eq!((tools["resultType"].clone(), tools["cacheScope"].clone()), (json!("complete"), json!("public")));
    assert!(tools["ttlMs"].as_u64().unwrap() > 0);
    let legacy = Client::legacy(&world, "/mcp").ask("tools/list", json!({})).await;
    assert_eq!(legacy.as_object().unwrap().keys().collect::<Vec<_>>(), ["tools"]);
    world.stop().await;
}

#[tokio::test]
async fn what_breaks_the_protocol_is_refused_by_its_code_and_status() {
    let world = World::start().await;
    let modern = Client::modern(&world, "/mcp");
    for method in ["unknown/method", "initialize", "ping", "logging/setLevel", "resources/subscribe"] {
        assert_eq!(modern.refused(method, json!({})).await, (404, -32601), "{method}");
    }
    assert_eq!(modern.refused("tools/call", json!({"name": "nothing"})).await, (200, -32602));
    assert_eq!(modern.clone().header("mcp-method", "tools/call").refused("tools/list", json!({})).await, (400, -32020));
    let legacy = Client::legacy(&world, "/mcp");
    assert_eq!(legacy.refused("server/discover", json!({})).await, (200, -32601));
    let unknown = send(legacy.request("ping", json!({})).header("mcp-protocol-version", "1999-01-01")).await;
    assert_eq!(unknown.status, 200, "the first of two versions counts: {}", unknown.text);
    let batch = world.anyone(Method::POST, "/mcp").json(&json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]));
    let batch = send(batch).await;
    assert_eq!((batch.status, last(&batch)["error"]["code"].as_i64()), (400, Some(-32600)));
    let notified =
        world.anyone(Method::POST, "/mcp").json(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    let notified = send(notified).await;
    assert_eq!((notified.status, notified.text.as_str()), (202, ""));
    assert_eq!(send(world.anyone(Method::DELETE, "/mcp")).await.status, 405);
    assert_eq!(send(world.anyone(Method::GET, "/mcp")).await.status, 405, "without an ear for events");
    world.stop().await;
}

#[tokio::test]
async fn a_page_of_another_origin_is_not_welcome() {
    let world = World::start().await;
    let client = Client::modern(&world, "/mcp");
    let status = async |client: Client| client.send("tools/list", json!({})).await.status;
    assert_eq!(status(client.clone().header("origin", "http://evil.example")).await, 403);
    assert_eq!(
        status(client.clone().header("host", "evil.example").header("origin", "http://evil.example")).await,
        403
    );
    assert_eq!(status(client.clone().header("host", "evil.example")).await, 403);
    assert_eq!(status(client.header("origin", "http://localhost:5173")).await, 200);
    world.stop().await;
}

#[tokio::test]
async fn a_refused_call_tells_a_model_what_to_do_and_a_stranger_that_it_needs_a_credential() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let client = Client::modern(&world, "/mcp");
    let unknown = client.call("invoke", json!({"key": "ECH", "body": "x"})).await;
    assert_eq!(unknown["isError"], true);
    let told = text(&unknown);
    assert!(told.contains("unknown_key") && told.contains("ECHO") && told.ends_with("Nothing ran."), "{told}");
    let both = client.call("invoke", json!({"key": "ECHO", "body": "x", "args": ["x"]})).await;
    assert!(both["isError"] == true && text(&both).contains("either `body` or `args`"), "{both}");
    let odd = client.call("invoke", json!({"key": "ECHO", "payload": 1})).await;
    assert!(odd["isError"] == true && text(&odd).contains("unknown field `payload`"), "{odd}");

    let stranger = client.clone().with_key(None);
    assert_eq!(
        stranger.refused("tools/call", json!({"name": "invoke", "arguments": {"key": "ECHO"}})).await,
        (401, 401)
    );
    let answer = client.clone().with_key(Some("cbk_invented")).send("tools/list", json!({})).await;
    assert_eq!((answer.status, &answer.headers["www-authenticate"]), (401, &"Bearer".parse().unwrap()));
    let seed = Client::legacy(&world, "/api/mcp").with_key(Some("cbk_invented"));
    let answer = seed.send("tools/list", json!({})).await;
    assert_eq!((answer.status, last(&answer)["error"].clone()["message"].clone()), (401, json!("unauthorized")));
    assert_eq!(last(&answer)["error"]["code"], -32001);
    world.stop().await;
}

#[tokio::test]
async fn a_long_output_comes_in_parts_of_whole_items() {
    let items: Vec<Value> = (0..5_000).map(|n| json!({"n": n, "name": format!("item {n}")})).collect();
    let body = Value::Array(items).to_string();
    let served = body.clone();
    let upstream = Upstream::start(move |_| upstream::json(200, &served)).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&book::http("LONG", &format!("GET {}/all", upstream.origin()), "none", "")).await;
    let client = Client::modern(&world, "/mcp");
    let ran = client.call("invoke", json!({"key": "LONG"})).await;
    assert!(ran["structuredContent"].is_null());
    let id = ran["_meta"]["callbook/invocation_id"].as_str().unwrap().to_owned();
    let mut parts = vec![ran["content"][0]["text"].as_str().unwrap().to_owned()];
    let mut note = ran["content"][1]["text"].as_str().unwrap().to_owned();
    while let Some(offset) =
        note.strip_suffix('.').and_then(|note| note.rsplit_once("offset ")).map(|(_, at)| at.parse::<u64>().unwrap())
    {
        let more = client.call("receipt", json!({"id": id, "offset": offset})).await;
        parts.push(more["content"][0]["text"].as_str().unwrap().to_owned());
        note = more["content"][1]["text"].as_str().unwrap_or_default().to_owned();
    }
    let all: Vec<Value> = parts.iter().flat_map(|part| serde_json::from_str::<Vec<Value>>(part).unwrap()).collect();
    assert_eq!(Value::Array(all).to_string(), body);
    assert!(parts.len() > 3);
    assert_eq!(upstream.count(), 1, "the rest comes from the record");
    world.stop().await;
}
