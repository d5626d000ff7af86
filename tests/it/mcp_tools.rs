//! One typed tool a row over MCP.

use callbook_tests::mcp::{Client, last, messages, text};
use callbook_tests::upstream::Upstream;
use callbook_tests::world::World;
use callbook_tests::{book, shared};
use futures::StreamExt as _;
use serde_json::{Value, json};

fn names(tools: &[Value]) -> Vec<String> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn the_list_holds_the_rows_of_its_predicate_in_canonical_order_on_every_page() {
    let world = World::start().await;
    for n in 0..130 {
        world.create(&book::with(book::echo(&format!("ROW_{n:03}")), &json!({"category": "many"}))).await;
    }
    world.create(&book::with(book::echo("ZZ_FIRST"), &json!({"seq": 1}))).await;
    world.create(&book::with(book::echo("HIDDEN"), &json!({"planner_visible": false}))).await;
    world.create(&book::with(book::echo("OFF"), &json!({"enabled": false}))).await;
    world.create(&book::echo("MY_SCRATCH")).await;
    let long = format!("namespace.{}", "k".repeat(90));
    world.create(&book::echo(&long)).await;

    let typed = Client::modern(&world, "/mcp/tools");
    let first = typed.ask("tools/list", json!({})).await;
    assert_eq!((first["tools"].as_array().unwrap().len(), first["cacheScope"].clone()), (100, json!("private")));
    let all = names(&typed.all("tools/list", "tools").await);
    let mut expected: Vec<String> = (0..130).map(|n| format!("ROW_{n:03}")).collect();
    expected.insert(0, "ZZ_FIRST".to_owned());
    assert_eq!(all[..131], expected);
    assert_eq!((all.len(), all[131].len()), (132, 64));
    assert_eq!(typed.refused("tools/list", json!({"cursor": "x"})).await, (200, -32602));

    assert_eq!(names(&Client::modern(&world, "/mcp/tools?prefix=ROW_00").all("tools/list", "tools").await).len(), 10);
    assert_eq!(Client::modern(&world, "/mcp/tools?category=many").all("tools/list", "tools").await.len(), 130);
    let seed = Client::legacy(&world, "/api/mcp").with_key(None).header("x-mcp-token", callbook_tests::world::OWNER);
    let one_page = seed.ask("tools/list", json!({})).await;
    assert_eq!(names(one_page["tools"].as_array().unwrap()), all);
    assert!(one_page.get("nextCursor").is_none());

    for name in ["ROW_000", "ZZ_FIRST", &all[131]] {
        let ran = typed.call(name, json!({"text": "hello"})).await;
        assert_eq!(text(&ran), "hello", "{name}: {ran}");
    }
    for name in ["HIDDEN", "OFF", "MY_SCRATCH", "NOTHING"] {
        assert_eq!(typed.refused("tools/call", json!({"name": name})).await, (200, -32602), "{name}");
    }
    world.stop().await;
}

#[tokio::test]
async fn every_row_of_the_catalogue_is_listed_under_a_name_that_is_taken_back() {
    let Some(rows) = shared("catalogue/rows.ndjson") else { return };
    let world = World::start().await;
    let imported = world.import("?mode=each", std::fs::read(rows).unwrap()).await;
    assert_eq!(imported.status, 200, "{}", imported.text);
    let typed = Client::modern(&world, "/mcp/tools");
    let tools = typed.all("tools/list", "tools").await;
    let counts = world.get("/api/dispatch?map=1").await.json()["counts"].clone();
    assert!(tools.len() > 500, "{}", tools.len());
    assert_eq!(tools.len() as u64, counts["mcp"].as_u64().unwrap(), "{counts}");
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        assert!(name.len() <= 64 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"_.-".contains(&b)), "{name}");
        assert_eq!(tool["inputSchema"]["type"], "object", "{name}");
        assert!(tool["description"].as_str().unwrap().chars().count() <= 2_000, "{name}");
        // An argument that no row has: the row is found, its arguments are refused, nothing runs.
        let answer = typed.send("tools/call", json!({"name": name, "arguments": {"\u{1}": {}}})).await;
        let message = last(&answer);
        let is_mirrored = message["error"]["code"] == -32020;
        assert!(message["result"]["isError"] == true || is_mirrored, "{name}: {}", answer.text);
    }
    world.stop().await;
}

#[tokio::test]
async fn arguments_go_by_name_keep_their_text_and_are_checked_before_anything_runs() {
    let upstream = Upstream::start(|seen| {
        let body = String::from_utf8_lossy(&seen.body).into_owned();
        callbook_tests::upstream::json(200, &body)
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let schema = json!({
        "type": "object", "required": ["filter[name]", "n"], "additionalProperties": false,
        "properties": {"n": {"type": "number"}, "filter[name]": {"type": "string", "x-mcp-header": "Filter"}},
    });
    let target = format!("POST {}/all", upstream.origin());
    let row = book::http("FIND", &target, "none", r#"{"name": "${filter[name]}", "n": "${n}"}"#);
    let row = book::with(row, &json!({"input_schema": schema, "content": "# WHAT: Find\n{\"a\": $2, \"b\": \"$1\"}"}));
    world.create(&book::with(row, &json!({"examples": [{"filter[name]": "a", "n": 1}]}))).await;
    let typed = Client::modern(&world, "/mcp/tools");
    let tool = typed.all("tools/list", "tools").await.remove(0);
    let renamed = tool["inputSchema"]["required"][0].as_str().unwrap().to_owned();
    assert!(renamed.starts_with("filter_name__") && tool["inputSchema"]["properties"][&renamed]["type"] == "string");
    let call = json!({"name": "FIND", "arguments": {renamed.clone(): "é", "n": 1}});
    assert_eq!(typed.refused("tools/call", call).await, (400, -32020), "the header is missing");
    let mirrored = typed.clone().header("mcp-param-filter", "=?base64?w6k=?=");
    let arguments: Value = serde_json::from_str(&format!(r#"{{"{renamed}":"é","n":1.10}}"#)).unwrap();
    let ran = mirrored.call("FIND", arguments).await;
    let sent = String::from_utf8_lossy(&upstream.seen()[0].body).into_owned();
    assert!(sent.contains("1.10") && sent.contains('é'), "{sent} {ran}");
    assert!(ran["structuredContent"].to_string().contains("1.10"), "{ran}");
    let wrong = mirrored.call("FIND", json!({renamed: "é", "n": "many"})).await;
    assert!(wrong["isError"] == true && text(&wrong).contains("args_invalid:/n:type"), "{wrong}");
    assert_eq!(typed.refused("tools/call", json!({"name": "FIND", "arguments": [1]})).await, (200, -32602));
    assert_eq!(upstream.count(), 1);
    world.stop().await;
}

#[tokio::test]
async fn what_only_a_person_gives_is_asked_for_and_no_model_can_send_it() {
    let world = World::start().await;
    let schema = json!({
        "type": "object", "required": ["text", "name"], "additionalProperties": false,
        "properties": {"text": {"type": "string"}, "name": {"type": "string", "x-ask": "Who are you?"}},
    });
    world.create(&book::with(book::echo("GREET"), &json!({"input_schema": schema, "content": "# WHAT: Greet\n[\"${text} ${name}\"]", "examples": [{"text": "a", "name": "b"}]}))).await;
    let plain = Client::modern(&world, "/mcp/tools");
    let tool = plain.all("tools/list", "tools").await.remove(0);
    assert_eq!(tool["inputSchema"]["required"], json!(["text"]));
    let call = json!({"name": "GREET", "arguments": {"text": "Hello"}});
    assert_eq!(plain.refused("tools/call", call.clone()).await, (400, -32021));
    let able = plain.clone().able(json!({"elicitation": {}}));
    let sent = able.call("GREET", json!({"text": "Hello", "name": "Mallory"})).await;
    assert!(sent["isError"] == true && text(&sent).contains("asked of a person"), "{sent}");

    let asked = able.ask("tools/call", call.clone()).await;
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    assert_eq!(asked["inputRequests"]["name"]["params"]["message"], "Who are you?");
    let answered = |state: Value, action: &str| {
        let mut again = call.clone();
        again["requestState"] = state;
        again["inputResponses"] = json!({"name": {"action": action, "content": {"name": "Ada"}}, "other": 1});
        again
    };
    let state = asked["requestState"].clone();
    let greeted = able.ask("tools/call", answered(state.clone(), "accept")).await;
    assert_eq!((greeted["resultType"].clone(), text(&greeted)), (json!("complete"), "Hello Ada".to_owned()));
    let id = |result: &Value| result["_meta"]["callbook/invocation_id"].as_str().unwrap().to_owned();
    let again = able.ask("tools/call", answered(state.clone(), "accept")).await;
    assert_eq!((id(&again), &again["_meta"]["callbook/replayed"]), (id(&greeted), &json!(true)), "one call alone");
    let mut other = answered(state.clone(), "accept");
    other["inputResponses"]["name"]["content"]["name"] = json!("Mallory");
    let other = able.ask("tools/call", other).await;
    assert!(other["isError"] == true && text(&other).contains("idempotency_mismatch"), "{other}");
    let declined = able.ask("tools/call", answered(state.clone(), "decline")).await;
    assert!(declined["isError"] == true && text(&declined).contains("Nothing ran"), "{declined}");
    let tampered = json!(format!("{}x", state.as_str().unwrap()));
    assert_eq!(able.refused("tools/call", answered(tampered, "accept")).await, (200, -32602));
    let mut other = answered(state, "accept");
    other["arguments"]["text"] = json!("Goodbye");
    assert_eq!(able.refused("tools/call", other).await, (200, -32602), "the state is of another call");
    world.stop().await;
}

#[tokio::test]
async fn a_write_of_the_book_reaches_whoever_listens() {
    let world = World::start().await;
    world.create(&book::echo("TWO")).await;
    for client in [Client::modern(&world, "/mcp/tools"), Client::modern(&world, "/mcp")] {
        let wanted =
            json!({"notifications": {"toolsListChanged": true, "resourceSubscriptions": ["callbook://contract/TWO"]}});
        let mut stream = client.request("subscriptions/listen", wanted).send().await.unwrap().bytes_stream();
        let mut seen = String::new();
        let has = |seen: &str, method: &str| messages(seen).iter().any(|message| message["method"] == method);
        while !has(&seen, "notifications/subscriptions/acknowledged") {
            seen.push_str(&String::from_utf8_lossy(&stream.next().await.unwrap().unwrap()));
        }
        world.change("TWO", &json!({"category": format!("c{}", seen.len())})).await;
        while !has(&seen, "notifications/resources/updated") {
            seen.push_str(&String::from_utf8_lossy(&stream.next().await.unwrap().unwrap()));
        }
        assert!(
            messages(&seen).iter().all(|told| told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == 7)
        );
        let is_typed = messages(&seen)[0]["params"]["notifications"]["toolsListChanged"] == true;
        assert_eq!(has(&seen, "notifications/tools/list_changed"), is_typed, "four tools never change: {seen}");
    }
    world.stop().await;
}

#[tokio::test]
async fn contracts_receipts_prompts_and_rows_with_addresses_can_be_read() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let block = json!({"key": "HOUSE_STYLE", "type": "fn", "target": "prompt_block", "content": "# WHAT: How we write\nWrite short sentences."});
    world.create(&block).await;
    let schema = json!({"type": "object", "x-uri": "note://{id}/text", "properties": {"id": {"type": "string"}}, "required": ["id"]});
    world.create(&book::with(book::echo("NOTE"), &json!({"input_schema": schema, "content": "# WHAT: A note\n# SAFE: yes\n[\"note ${id}\"]", "examples": [{"id": "1"}]}))).await;
    let client = Client::modern(&world, "/mcp");
    let read = async |uri: &str| client.ask("resources/read", json!({"uri": uri})).await["contents"][0].clone();
    assert!(read("callbook://contract/ECHO").await["text"].as_str().unwrap().contains("\"key\":\"ECHO\""));
    assert!(read("callbook://map").await["text"].as_str().unwrap().contains("\"counts\""));
    let ran = client.call("invoke", json!({"key": "ECHO", "body": "x"})).await;
    let id = ran["_meta"]["callbook/invocation_id"].as_str().unwrap();
    assert!(read(&format!("callbook://receipt/{id}")).await["text"].as_str().unwrap().contains("PROVEN"));
    assert_eq!(read(&format!("callbook://output/{id}")).await["text"], "x");
    assert_eq!(read("note://7/text").await["text"], "note 7");
    let nothing = client.send("resources/read", json!({"uri": "note://none"})).await;
    assert_eq!(
        (last(&nothing)["error"]["code"].clone(), last(&nothing)["error"]["data"]["uri"].clone()),
        (json!(-32602), json!("note://none"))
    );
    let templates = client.all("resources/templates/list", "resourceTemplates").await;
    assert!(templates.iter().any(|found| found["uriTemplate"] == "note://{id}/text"), "{templates:?}");

    let prompts = client.all("prompts/list", "prompts").await;
    assert_eq!(names(&prompts), ["HOUSE_STYLE"]);
    let prompt = client.ask("prompts/get", json!({"name": "HOUSE_STYLE"})).await;
    assert_eq!(
        prompt["messages"],
        json!([{"role": "user", "content": {"type": "text", "text": "Write short sentences."}}])
    );
    let stranger = Client::modern(&world, "/mcp").with_key(None);
    assert!(stranger.all("prompts/list", "prompts").await.is_empty(), "texts are for those who may use them");
    let completed = client.ask("completion/complete", json!({
        "ref": {"type": "ref/resource", "uri": "callbook://contract/{key}"}, "argument": {"name": "key", "value": "EC"},
    }));
    assert_eq!(completed.await["completion"], json!({"values": ["ECHO"], "hasMore": false}));
    world.stop().await;
}
