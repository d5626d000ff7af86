//! Calls that wait for a person, over MCP and across gateways.

use callbook_tests::book;
use callbook_tests::mcp::{Client, gateway, text};
use callbook_tests::world::{World, owned};
use callbook_wire::executor::v1::DecideApprovalRequest;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use serde_json::{Value, json};

async fn decide(world: &World, id: &str, approve: bool) {
    let mut executor = ExecutorServiceClient::new(world.channel().await);
    let decision = DecideApprovalRequest { id: id.to_owned(), approve, reason: String::new() };
    executor.decide_approval(owned(decision)).await.unwrap();
}

async fn payments(world: &World) -> String {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]});
    world.create(&book::with(book::echo("PAY"), &json!({"sensitive": true, "input_schema": schema}))).await;
    let grants = json!([{"may": "invoke", "prefix": ""}, {"may": "approve", "prefix": ""}]);
    world.principal("agent", &grants).await
}

fn approval(asked: &Value) -> String {
    let params = &asked["inputRequests"]["decision"]["params"];
    let message = params["message"].as_str().unwrap();
    assert!(message.contains("PAY") && message.contains("sha256:"), "{message}");
    message.rsplit_once("/api/approvals/").unwrap().1.to_owned()
}

#[tokio::test]
async fn a_conversation_over_three_gateways_is_one_and_consent_is_somebody_elses() {
    let world = World::start().await;
    let agent = payments(&world).await;
    let (second, node_b) = gateway(&world.grpc).await;
    let (third, node_c) = gateway(&world.grpc).await;
    for (path, call) in [
        ("/mcp/tools", json!({"name": "PAY", "arguments": {"text": "7"}})),
        ("/mcp", json!({"name": "invoke", "arguments": {"key": "PAY", "args": {"text": "8"}}})),
    ] {
        let one = Client::modern(&world, path).with_key(Some(&agent)).able(json!({"elicitation": {"form": {}}}));
        let asked = one.ask("tools/call", call.clone()).await;
        assert_eq!(asked["resultType"], "input_required", "{asked}");
        let id = approval(&asked);
        let again = |action: &str| {
            let mut again = call.clone();
            again["requestState"] = asked["requestState"].clone();
            again["inputResponses"] = json!({"decision": {"action": action, "content": {"decided": true}}});
            again
        };
        let declined = one.clone().at(&second).ask("tools/call", again("decline")).await;
        assert!(declined["isError"] == true && text(&declined).contains("Nothing ran"), "{declined}");
        decide(&world, &id, true).await;
        let paid = one.clone().at(&third).ask("tools/call", again("accept")).await;
        assert_eq!(paid["resultType"], "complete", "{paid}");
        assert!(paid["isError"].is_null(), "{paid}");
        let replayed = one.clone().at(&second).ask("tools/call", call.clone()).await;
        assert_eq!(replayed["resultType"], "input_required", "one approval is one call: {replayed}");
        let stolen = Client::modern(&world, path).able(json!({"elicitation": {}}));
        assert_eq!(stolen.refused("tools/call", again("accept")).await, (200, -32602), "the state is another caller's");
    }
    node_b.stop().await.unwrap();
    node_c.stop().await.unwrap();
    world.stop().await;
}

#[tokio::test]
async fn what_comes_with_the_calls_own_credential_releases_nothing() {
    let world = World::start().await;
    let agent = payments(&world).await;
    let call = json!({"name": "PAY", "arguments": {"text": "7"}});
    let modern = Client::modern(&world, "/mcp/tools").with_key(Some(&agent)).able(json!({"elicitation": {"form": {}}}));
    let asked = modern.ask("tools/call", call.clone()).await;
    let mut again = call.clone();
    again["requestState"] = asked["requestState"].clone();
    again["inputResponses"] = json!({"decision": {"action": "accept", "content": {"decided": true}}});
    let impatient = modern.clone().header("x-deadline-ms", "1500");
    let waits = impatient.ask("tools/call", again).await;
    assert_eq!(waits["resultType"], "input_required", "nobody has decided: {waits}");

    let legacy = Client::legacy(&world, "/mcp/tools").with_key(Some(&agent));
    let held = legacy.call("PAY", json!({"text": "7"})).await;
    assert!(held["isError"] == true && text(&held).contains("/api/approvals/apr_"), "{held}");
    let id = approval(&waits);
    decide(&world, &id, false).await;
    let refused = legacy.call("PAY", json!({"text": "7"})).await;
    assert!(refused["isError"] == true && text(&refused).contains("denied"), "{refused}");
    world.stop().await;
}
