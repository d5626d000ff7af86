//! The official Rust SDK as a client of both surfaces in both eras: its own negotiation, headers, rounds and progress.

use std::sync::{Arc, Mutex};

use callbook_tests::book;
use callbook_tests::door::{Door, send};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{OWNER, World};
use reqwest::Method;
use rmcp::handler::client::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, ContentBlock, ElicitRequestParams,
    ElicitResult, ElicitationAction, ElicitationCapability, ErrorData, Implementation, ProgressNotificationParam,
    ProtocolVersion, ReadResourceRequestParams, ResourceContents,
};
use rmcp::service::{
    ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RequestContext, RoleClient, RunningService,
};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use serde_json::{Value, json};

/// A host whose person gives a name when asked, and whose colleague approves what waits, with a credential of its own.
#[derive(Clone)]
struct Host {
    door: Door,
    asked: Arc<Mutex<Vec<String>>>,
    progress: Arc<Mutex<Vec<f64>>>,
}

impl ClientHandler for Host {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.elicitation = Some(ElicitationCapability::default());
        ClientConfig::new(capabilities, Implementation::new("a host", "1"))
    }

    async fn create_elicitation(
        &self,
        asked: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let ElicitRequestParams::FormElicitationParams { message, .. } = asked else { panic!("no form: {asked:?}") };
        let waits = message.rsplit_once("/api/approvals/").map(|(_, id)| id.to_owned());
        self.asked.lock().unwrap().push(message);
        let content = match waits {
            Some(id) => {
                let decided = send(self.door.owner(Method::POST, &format!("/api/approvals/{id}/approve"))).await;
                assert_eq!(decided.status, 200, "{}", decided.text);
                json!({"decided": true})
            }
            None => json!({"name": "Ada"}),
        };
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(content))
    }

    async fn on_progress(&self, told: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.progress.lock().unwrap().push(told.progress);
    }
}

type Client = RunningService<RoleClient, Host>;

async fn connected(door: &Door, path: &str, key: &str, lifecycle: ClientLifecycleMode) -> Client {
    let at = format!("{}{path}", door.http);
    let config = StreamableHttpClientTransportConfig::with_uri(at).auth_header(key);
    let transport = StreamableHttpClientTransport::with_client(reqwest::Client::new(), config);
    let host = Host { door: door.clone(), asked: Arc::default(), progress: Arc::default() };
    host.serve_with_lifecycle(transport, lifecycle).await.unwrap()
}

fn modern() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

async fn call(client: &Client, name: &'static str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("{arguments} is no object") };
    client.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await.unwrap()
}

fn text(result: &CallToolResult) -> String {
    let texts = result.content.iter().filter_map(ContentBlock::as_text).map(|block| block.text.as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// A deployment with a row for each thing that a client has to do more for than send and read.
async fn stage() -> (World, Upstream, String) {
    let upstream = Upstream::start(|_| answered(200, r#"{"n":1.10}"#)).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let schema = |properties: Value, required: Value| json!({"input_schema": {"type": "object", "properties": properties, "required": required, "additionalProperties": false}});
    let mirrored = schema(json!({"region": {"type": "string", "x-mcp-header": "Region"}}), json!(["region"]));
    let target = format!("GET {}/v1/$1", upstream.origin());
    let row = book::with(book::http("REGION", &target, "none", ""), &mirrored);
    world
        .create(&book::with(row, &json!({"content": "# WHAT: Figures of a region", "examples": [{"region": "eu"}]})))
        .await;
    let asked = schema(json!({"name": {"type": "string", "x-ask": "Who are you?"}}), json!(["name"]));
    let greet = book::with(book::echo("GREET"), &asked);
    world
        .create(&book::with(
            greet,
            &json!({"content": "# WHAT: Greet\n[\"Hello ${name}\"]", "examples": [{"name": "b"}]}),
        ))
        .await;
    world.create(&book::flow("STEPS", "SAY: $1 > SAY: $1 > SAY: $1")).await;
    world.create(&book::echo("SAY")).await;
    let text = schema(json!({"text": {"type": "string"}}), json!(["text"]));
    world.create(&book::with(book::with(book::echo("PAY"), &text), &json!({"sensitive": true}))).await;
    let agent = world.principal("agent", &json!([{"may": "invoke"}])).await;
    (world, upstream, agent)
}

#[tokio::test]
async fn the_official_sdk_lists_calls_answers_and_hears_of_progress() {
    let (world, upstream, agent) = stage().await;
    let client = connected(&world, "/mcp/tools", &agent, modern()).await;
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_ref()).collect();
    assert_eq!(names, ["GREET", "PAY", "REGION", "SAY", "STEPS"]);

    let figures = call(&client, "REGION", json!({"region": "é"})).await;
    assert_eq!(
        figures.structured_content.clone().unwrap_or_default().to_string(),
        r#"{"n":1.10}"#,
        "{}",
        text(&figures)
    );
    assert_eq!(upstream.seen()[0].target, "/v1/%C3%A9", "the SDK mirrored it in a header that was checked");

    let greeted = call(&client, "GREET", json!({})).await;
    assert_eq!((greeted.is_error.unwrap_or(false), text(&greeted)), (false, "Hello Ada".to_owned()));
    let paid = call(&client, "PAY", json!({"text": "7"})).await;
    assert_eq!((paid.is_error.unwrap_or(false), text(&paid)), (false, "7".to_owned()));
    let host = client.service();
    let asked = host.asked.lock().unwrap().clone();
    assert_eq!(asked[0], "Who are you?");
    assert!(asked[1].contains("A call of PAY waits") && asked.len() == 2, "{asked:?}");

    host.progress.lock().unwrap().clear();
    call(&client, "STEPS", json!({"text": "x"})).await;
    let heard = host.progress.lock().unwrap().clone();
    assert_eq!(heard, [0.0, 1.0, 2.0, 3.0, 4.0], "accepted, three steps, done");
    client.cancel().await.unwrap();
    world.stop().await;
}

#[tokio::test]
async fn the_official_sdk_walks_from_a_question_to_a_receipt_in_both_eras() {
    let (world, _upstream, _) = stage().await;
    for lifecycle in [modern(), ClientLifecycleMode::Initialize] {
        let client = connected(&world, "/mcp", OWNER, lifecycle).await;
        let names: Vec<String> =
            client.list_all_tools().await.unwrap().into_iter().map(|tool| tool.name.into_owned()).collect();
        assert_eq!(names, ["ask", "contract", "invoke", "receipt"]);
        let found = call(&client, "ask", json!({"question": "figures of a region"})).await;
        let found: Value = serde_json::from_str(&text(&found)).unwrap();
        assert_eq!(found["best"]["key"], "REGION", "{found}");
        let ran = call(&client, "invoke", json!({"key": "REGION", "args": {"region": "eu"}})).await;
        let told = serde_json::to_value(&ran).unwrap();
        let id = told["_meta"]["callbook/invocation_id"].as_str().unwrap().to_owned();
        let receipt: Value = serde_json::from_str(&text(&call(&client, "receipt", json!({"id": id})).await)).unwrap();
        assert_eq!(receipt["status"], "PROVEN_MATERIAL_RESULT", "{receipt}");
        let read = ReadResourceRequestParams::new(format!("callbook://output/{id}"));
        let read = client.read_resource(read).await.unwrap();
        let ResourceContents::TextResourceContents { text, .. } = &read.contents[0] else { panic!("{read:?}") };
        assert_eq!(text, r#"{"n":1.10}"#);
        client.cancel().await.unwrap();
    }
    world.stop().await;
}
