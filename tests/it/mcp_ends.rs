//! How MCP requests end before their time, and who hears and may what.

use std::time::Duration;

use callbook_tests::book;
use callbook_tests::door::send;
use callbook_tests::mcp::{Client, last, messages, text};
use callbook_tests::outside::{ISS, OutsideIssuer};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use futures::StreamExt as _;
use reqwest::{Method, Response};
use serde_json::{Value, json};

/// What is not committed when its client hangs up never runs, also where it is approved later; what is committed runs on.
#[tokio::test]
async fn hanging_up_takes_back_a_call_that_waits_and_not_one_that_runs() {
    let upstream = Upstream::slow(Duration::from_millis(600), |_| answered(200, r#"{"yes":true}"#)).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let row = |key: &str| book::http(key, &format!("POST {}/{key}", upstream.origin()), "none", "");
    world.create(&row("SLOW")).await;
    let sensitive = json!({"sensitive": true, "input_schema": {"type": "object", "properties": {}}, "examples": [{}]});
    world.create(&book::with(row("PAY"), &sensitive)).await;
    let agent = world.principal("agent", &json!([{"may": "invoke"}])).await;
    let able = json!({"elicitation": {}});
    let client = Client::modern(&world, "/mcp/tools").with_key(Some(&agent)).able(able);
    let asked = client.call("PAY", json!({})).await;
    let message = asked["inputRequests"]["decision"]["params"]["message"].as_str().unwrap();
    let id = message.rsplit_once("/api/approvals/").unwrap().1.to_owned();
    let again = json!({
        "name": "PAY", "arguments": {}, "requestState": asked["requestState"],
        "inputResponses": {"decision": {"action": "accept", "content": {"decided": true}}},
    });
    let waits = tokio::time::timeout(Duration::from_millis(700), client.send("tools/call", again)).await;
    assert!(waits.is_err(), "it waits for its decision");
    let decided = send(world.owner(Method::POST, &format!("/api/approvals/{id}/approve"))).await;
    assert_eq!(decided.status, 200, "{}", decided.text);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(upstream.count(), 0, "nobody wanted it any more");

    let mut running = Vec::new();
    for params in [json!({"name": "SLOW"}), json!({"name": "SLOW", "_meta": {"progressToken": 1}})] {
        running.push(client.send("tools/call", params));
    }
    for call in running {
        assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err(), "it runs");
    }
    let mut listed = json!([]);
    for _ in 0..50 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        listed = world.get("/api/invocations?key=SLOW").await.json();
        if listed.to_string().matches("PROVEN_MATERIAL_RESULT").count() == 2 {
            break;
        }
    }
    assert_eq!(listed.to_string().matches("PROVEN_MATERIAL_RESULT").count(), 2, "{listed}");
    assert_eq!(upstream.count(), 2);
    world.stop().await;
}

#[tokio::test]
async fn progress_goes_up_once_a_step_and_ends_with_the_result() {
    let world = World::start().await;
    world.create(&book::echo("SAY")).await;
    world.create(&book::flow("STEPS", "SAY: $1 > SAY: $1")).await;
    for client in [Client::modern(&world, "/mcp/tools"), Client::legacy(&world, "/mcp/tools")] {
        let asked = json!({"name": "STEPS", "arguments": {"text": "a"}, "_meta": {"progressToken": "p"}});
        let answer = client.send("tools/call", asked).await;
        let told = messages(&answer.text);
        let (result, before) = told.split_last().unwrap();
        assert_eq!(text(&result["result"]), "a", "{}", answer.text);
        assert!(before.iter().all(|told| told["method"] == "notifications/progress"), "{}", answer.text);
        assert!(before.iter().all(|told| told["params"]["progressToken"] == "p"), "{}", answer.text);
        let heard: Vec<u64> = before.iter().map(|told| told["params"]["progress"].as_u64().unwrap()).collect();
        assert_eq!(heard, [0, 1, 2, 3]);
        assert_eq!(before[1]["params"]["message"], "SAY PROVEN_MATERIAL_RESULT");
        let silent = client.call("STEPS", json!({"text": "b"})).await;
        assert_eq!(text(&silent), "b");
        let refused = client
            .send("tools/call", json!({"name": "STEPS", "arguments": {"text": 1}, "_meta": {"progressToken": 2}}));
        let refused = refused.await;
        assert_eq!(messages(&refused.text).len(), 1, "nothing began: {}", refused.text);
        assert_eq!(last(&refused)["result"]["isError"], true, "{}", refused.text);
    }
    world.stop().await;
}

/// The methods that come within a moment.
async fn heard(stream: Response) -> Vec<String> {
    let (mut stream, mut seen) = (stream.bytes_stream(), String::new());
    while let Ok(Some(piece)) = tokio::time::timeout(Duration::from_millis(1_500), stream.next()).await {
        seen.push_str(&String::from_utf8_lossy(&piece.unwrap()));
    }
    messages(&seen).iter().map(|told| told["method"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_change_is_told_to_those_whose_own_list_it_changes() {
    let world = World::start().await;
    let team = world.principal("team", &json!([{"may": "invoke", "prefix": "TEAM_"}])).await;
    let listen = async |client: Client| {
        let wanted = json!({"notifications": {"toolsListChanged": true}});
        client.request("subscriptions/listen", wanted).send().await.unwrap()
    };
    let typed = Client::modern(&world, "/mcp/tools");
    let (owner, team_hears) = (listen(typed.clone()).await, listen(typed.with_key(Some(&team))).await);
    let shelf = listen(Client::modern(&world, "/mcp/tools?prefix=TEAM_")).await;
    let legacy = world.bearer(&team, Method::GET, "/mcp/tools").header("accept", "text/event-stream");
    let legacy = legacy.send().await.unwrap();
    assert_eq!((legacy.status().as_u16(), &legacy.headers()["x-accel-buffering"]), (200, &"no".parse().unwrap()));
    world.create(&book::echo("OTHER")).await;
    let (owner, team_hears, shelf, legacy) = tokio::join!(heard(owner), heard(team_hears), heard(shelf), heard(legacy));
    let acknowledged = "notifications/subscriptions/acknowledged";
    assert_eq!(owner, [acknowledged, "notifications/tools/list_changed"]);
    assert_eq!((team_hears, shelf), (vec![acknowledged.to_owned()], vec![acknowledged.to_owned()]));
    assert!(legacy.is_empty(), "{legacy:?}");

    let legacy = world.bearer(&team, Method::GET, "/mcp/tools").header("accept", "text/event-stream");
    let legacy = legacy.send().await.unwrap();
    world.create(&book::echo("TEAM_ONE")).await;
    assert_eq!(heard(legacy).await, ["notifications/tools/list_changed", "notifications/resources/updated"]);
    world.stop().await;
}

/// Proxies give up on a connection on which nothing comes.
#[tokio::test]
async fn a_quiet_stream_says_that_it_is_alive() {
    let world = World::start().await;
    let client = Client::modern(&world, "/mcp/tools");
    let listening = client.request("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let (mut stream, mut seen) = (listening.send().await.unwrap().bytes_stream(), String::new());
    while !seen.lines().any(|line| line.starts_with(':')) {
        let piece = tokio::time::timeout(Duration::from_secs(20), stream.next()).await;
        seen.push_str(&String::from_utf8_lossy(&piece.expect("a comment comes in time").unwrap().unwrap()));
    }
    world.stop().await;
}

#[tokio::test]
async fn an_issuer_is_found_from_the_refusal_and_too_little_scope_says_what_is_needed() {
    let issuer = OutsideIssuer::start().await;
    let world = World::with().allow(&[issuer.upstream.origin()]).toml(&issuer.toml()).start().await;
    world.create(&book::echo("TEAM_ECHO")).await;
    world.create(&book::echo("OTHER")).await;
    let client = Client::modern(&world, "/mcp/tools");
    let invented = client.clone().with_key(Some("cbk_invented")).send("tools/list", json!({})).await;
    assert_eq!(invented.status, 401, "{}", invented.text);
    let challenge = invented.headers["www-authenticate"].to_str().unwrap().to_owned();
    let at = challenge.strip_prefix("Bearer resource_metadata=\"").and_then(|rest| rest.strip_suffix('"')).unwrap();
    assert_eq!(at, format!("{}/.well-known/oauth-protected-resource/mcp/tools", world.http));
    let metadata = send(world.anyone(Method::GET, at.strip_prefix(&world.http).unwrap())).await.json();
    assert_eq!(metadata["resource"], format!("{}/mcp/tools", world.http));
    assert_eq!((&metadata["authorization_servers"], &metadata["scopes_supported"]), (&json!([ISS]), &json!(["book"])));
    let nothing = send(world.anyone(Method::GET, "/.well-known/oauth-protected-resource/other")).await;
    assert_eq!(nothing.status, 404);

    let until = callbook_domain::clock::Clock::system().now().unix_timestamp() + 600;
    let claims = |scope: &str, aud: &str| json!({"iss": ISS, "sub": "u", "aud": aud, "exp": until, "scope": scope});
    let able = client.clone().with_key(Some(&issuer.token(&claims("book", "callbook"))));
    assert_eq!(text(&able.call("TEAM_ECHO", json!({"text": "hello"})).await), "hello");
    let foreign = client.clone().with_key(Some(&issuer.token(&claims("book", "elsewhere"))));
    assert_eq!(foreign.send("tools/list", json!({})).await.status, 401, "its audience is another server");

    let four = |scope: &str| Client::modern(&world, "/mcp").with_key(Some(&issuer.token(&claims(scope, "callbook"))));
    let call = json!({"name": "invoke", "arguments": {"key": "TEAM_ECHO", "body": "x"}});
    let scopeless = four("nothing").send("tools/call", call.clone()).await;
    assert_eq!(scopeless.status, 403, "{}", scopeless.text);
    let challenge = scopeless.headers["www-authenticate"].to_str().unwrap();
    assert!(challenge.contains("error=\"insufficient_scope\"") && challenge.contains("scope=\""), "{challenge}");
    assert!(
        challenge.contains("resource_metadata=\"") && challenge.contains("/oauth-protected-resource/mcp\""),
        "{challenge}"
    );
    assert_eq!(four("book").send("tools/call", call).await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn deep_and_recursive_schemas_survive_the_listing_and_are_checked() {
    let world = World::start().await;
    let tree = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "additionalProperties": false,
        "$defs": {"node": {"type": "object", "required": ["v"], "additionalProperties": false, "properties": {
            "v": {"type": "integer"}, "next": {"$ref": "#/$defs/node"},
        }}},
        "properties": {"tree": {"$ref": "#/$defs/node"}}, "required": ["tree"],
    });
    let mut deep = json!({"type": "string"});
    for level in 0..25 {
        deep = json!({"type": "object", "properties": {format!("l{level}"): deep}});
    }
    let row = |key: &str, schema: &Value, example: Value| {
        book::with(
            book::echo(key),
            &json!({"input_schema": schema, "content": "# WHAT: Take it\n[\"taken\"]", "examples": [example]}),
        )
    };
    world.create(&row("TREE", &tree, json!({"tree": {"v": 1}}))).await;
    world.create(&row("DEEP", &deep, json!({}))).await;
    for client in [Client::modern(&world, "/mcp/tools"), Client::legacy(&world, "/mcp/tools")] {
        let tools = client.all("tools/list", "tools").await;
        assert_eq!((&tools[0]["inputSchema"], &tools[1]["inputSchema"]), (&deep, &tree));
        let taken = client.call("TREE", json!({"tree": {"v": 1, "next": {"v": 2, "next": {"v": 3}}}})).await;
        assert_eq!(text(&taken), "taken");
        let wrong = client.call("TREE", json!({"tree": {"v": 1, "next": {"v": "2"}}})).await;
        assert!(wrong["isError"] == true && text(&wrong).contains("args_invalid:/tree/next/v:type"), "{wrong}");
        let bottomless = format!(r#"{{"v":1,"next":{}1{}}}"#, r#"{"v":1,"next":"#.repeat(200), "}".repeat(200));
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"TREE","arguments":{{"tree":{bottomless}}}}}}}"#
        );
        let request = world.owner(Method::POST, "/mcp/tools").header("content-type", "application/json").body(body);
        let refused = send(request).await;
        assert!(last(&refused)["error"]["code"].as_i64().is_some(), "{}", refused.text);
    }
    world.stop().await;
}
