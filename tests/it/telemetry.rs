//! What an operator sees: one trace from the caller to the upstream, a line for each request, figures with units.

use std::collections::BTreeSet;
use std::time::Duration;

use callbook_tests::door::{Answer, send};
use callbook_tests::mcp::Client;
use callbook_tests::process::Process;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::OWNER;
use callbook_tests::{book, database};
use reqwest::Method;
use serde_json::{Value, json};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const SPAN: &str = "00f067aa0ba902b7";

async fn up() -> (Process, Upstream) {
    let upstream = Upstream::start(|_| answered(200, r#"{"yes":true}"#)).await;
    let url = database::fresh().await;
    let process = Process::start(&["up"], &[("DATABASE_URL", &url), ("CALLBOOK_ALLOW_ORIGINS", &upstream.origin())]);
    process.create(&book::http("SEND", &format!("POST {}/$1", upstream.origin()), "$1=word", "")).await;
    (process, upstream)
}

async fn call(process: &Process, traceparent: Option<&str>) -> Answer {
    let request = process.owner(Method::POST, "/api/dispatch").json(&json!({"key": "SEND", "body": "wolf"}));
    send(match traceparent {
        Some(traceparent) => request.header("traceparent", traceparent),
        None => request,
    })
    .await
}

/// The trace and the span of a `traceparent`.
fn parts(header: &http::HeaderValue) -> (String, String) {
    let parts: Vec<&str> = header.to_str().unwrap().split('-').collect();
    assert!(parts.len() == 4 && parts[0] == "00" && parts[1].len() == 32 && parts[2].len() == 16, "{parts:?}");
    (parts[1].to_owned(), parts[2].to_owned())
}

/// The lines of the log that belong to a trace.
async fn lines(process: &Process, trace: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let log = process.log();
        // what a person reads at the start is no JSON
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        found = lines.filter(|line| line["trace_id"] == trace).collect();
        if found.len() >= 2 {
            break;
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_callers_trace_goes_on_to_the_answer_the_receipt_the_log_and_the_upstream() {
    let (process, upstream) = up().await;
    let answer = call(&process, Some(&format!("00-{TRACE}-{SPAN}-01"))).await;
    assert_eq!((answer.status, &answer.json()["trace"]), (200, &json!(TRACE)), "{}", answer.text);
    let receipt = process.get(&format!("/api/dispatch?receipt={}", answer.id())).await.json();
    assert_eq!(receipt["trace"], TRACE);
    let (trace, back) = parts(&answer.headers["traceparent"]);
    let (sent_trace, sent) = parts(&upstream.seen()[0].headers["traceparent"]);
    assert_eq!((trace.as_str(), sent_trace.as_str()), (TRACE, TRACE));
    assert!(back != SPAN && sent != SPAN && sent != back, "each hop has a span of its own");
    assert!(receipt["request"]["text"].as_str().unwrap().contains(TRACE), "the request as it was sent: {receipt}");

    let lines = lines(&process, TRACE).await;
    let methods: BTreeSet<&str> = lines.iter().filter_map(|line| line["method"].as_str()).collect();
    assert_eq!(methods, BTreeSet::from(["POST", "callbook.executor.v1.ExecutorService/Invoke"]), "{lines:?}");
    assert_eq!(lines.len(), 2, "a line at the gateway and one at the service: {lines:?}");
    let log = process.log();
    assert!(!log.contains(OWNER) && !log.contains("wolf"), "neither credentials nor arguments are logged: {log}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trace_in_an_mcp_message_goes_on_to_the_receipt_and_the_upstream() {
    let (process, upstream) = up().await;
    for client in [Client::modern(&process, "/mcp/tools"), Client::legacy(&process, "/mcp/tools")] {
        let meta = json!({"traceparent": format!("00-{TRACE}-{SPAN}-01")});
        let ran = client.ask("tools/call", json!({"name": "SEND", "arguments": {"word": "wolf"}, "_meta": meta})).await;
        let id = ran["_meta"]["callbook/invocation_id"].as_str().unwrap();
        let receipt = process.get(&format!("/api/dispatch?receipt={id}")).await.json();
        assert_eq!(receipt["trace"], TRACE, "{receipt}");
        let (trace, span) = parts(&upstream.seen().last().unwrap().headers["traceparent"]);
        assert!(trace == TRACE && span != SPAN, "{trace} {span}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_trace_or_with_a_broken_one_each_request_begins_its_own() {
    let (process, upstream) = up().await;
    let broken = ["00-zz-00f067aa0ba902b7-01", "nonsense", "00-00000000000000000000000000000000-0000000000000000-00"];
    let mut traces = BTreeSet::new();
    for traceparent in [None, None].into_iter().chain(broken.into_iter().map(Some)) {
        let answer = call(&process, traceparent).await;
        let trace = answer.json()["trace"].as_str().unwrap().to_owned();
        assert_eq!(parts(&answer.headers["traceparent"]).0, trace, "{traceparent:?}");
        assert_eq!(parts(&upstream.seen().last().unwrap().headers["traceparent"]).0, trace, "{traceparent:?}");
        traces.insert(trace);
    }
    assert_eq!(traces.len(), 5);
    let refused = send(process.anyone(Method::POST, "/api/dispatch").json(&json!({"key": "SEND"}))).await;
    assert!(refused.status == 401 && refused.headers.contains_key("traceparent"), "refusals too");
    let named = send(process.owner(Method::GET, "/api/dispatch").header("x-request-id", "mine-7")).await;
    assert_eq!(named.headers["x-request-id"], "mine-7");
    assert!(refused.headers["x-request-id"].len() >= 32);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn figures_have_units_and_hold_no_credential_and_no_argument() {
    let (process, _upstream) = up().await;
    for _ in 0..3 {
        call(&process, None).await;
    }
    process.look("/no/such/address/wolf").await;
    let page = process.client.get(format!("{}/metrics", process.admin)).send().await.unwrap();
    assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/plain"));
    let page = page.text().await.unwrap();
    let kinds: Vec<(&str, &str)> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))).collect();
    for (name, kind) in &kinds {
        let unit = match *kind {
            "counter" => name.ends_with("_total"),
            "histogram" | "summary" => ["_seconds", "_bytes", "_calls"].iter().any(|unit| name.ends_with(unit)),
            _ => true,
        };
        assert!(unit, "{name} is a {kind} without a unit");
        assert!(page.contains(&format!("# HELP {name} ")), "{name} is not described");
    }
    let names: BTreeSet<&str> = kinds.into_iter().map(|(name, _)| name).collect();
    for name in ["http_requests_total", "http_request_seconds", "rpcs_total", "rpc_seconds"] {
        assert!(names.contains(name), "{name} is missing: {page}");
    }
    let count = |start: &str, part: &str| {
        page.lines().find(|line| line.starts_with(start) && line.contains(part)).map(str::to_owned)
    };
    let calls = count("http_requests_total{", "method=\"POST\",route=\"/api/dispatch\",status=\"200\"").unwrap();
    assert!(calls.ends_with(" 3"), "{calls}");
    let rpcs = count("rpcs_total{", "ExecutorService/Invoke").unwrap();
    assert!(rpcs.ends_with(" 3"), "{rpcs}");
    assert!(page.contains("http_request_seconds_bucket{") && page.contains("rpc_seconds_bucket{"));
    assert!(!page.contains("wolf") && !page.contains(OWNER), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn health_is_told_at_the_gateway_at_the_admin_address_and_over_grpc() {
    use tonic_health::pb::HealthCheckRequest;
    use tonic_health::pb::health_check_response::ServingStatus;
    use tonic_health::pb::health_client::HealthClient;
    let (process, _upstream) = up().await;
    for path in ["/healthz", "/readyz"] {
        assert_eq!(process.look(path).await.status, 200);
        let admin = process.client.get(format!("{}{path}", process.admin)).send().await.unwrap();
        assert_eq!(admin.status(), 200, "{path}");
    }
    let channel = tonic::transport::Endpoint::from_shared(process.grpc.clone()).unwrap().connect().await.unwrap();
    let mut health = HealthClient::new(channel);
    let served = health.check(HealthCheckRequest::default()).await.unwrap().into_inner();
    assert_eq!(served.status(), ServingStatus::Serving);
    let unknown = health.check(HealthCheckRequest { service: "no.such.Service".into() }).await.unwrap_err();
    assert_eq!(unknown.code(), tonic::Code::NotFound);
}

#[tokio::test]
async fn reflection_names_every_service_and_gives_its_descriptor() {
    use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
    use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
    use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
    use tonic_reflection::pb::v1::{ServerReflectionRequest, ServerReflectionResponse};
    let world = callbook_tests::world::World::start().await;
    let client = ServerReflectionClient::new(world.channel().await);
    let ask = async |wanted: MessageRequest| -> ServerReflectionResponse {
        let request = ServerReflectionRequest { host: String::new(), message_request: Some(wanted) };
        let mut client = client.clone();
        let mut answers = client.server_reflection_info(tokio_stream::once(request)).await.unwrap().into_inner();
        answers.message().await.unwrap().unwrap()
    };
    let listed = ask(MessageRequest::ListServices(String::new())).await;
    let Some(MessageResponse::ListServicesResponse(listed)) = listed.message_response else { panic!("no list") };
    let names: BTreeSet<&str> = listed.service.iter().map(|service| service.name.as_str()).collect();
    let ours = [
        "callbook.contract.v1.ContractService",
        "callbook.directory.v1.DirectoryService",
        "callbook.executor.v1.ExecutorService",
        "callbook.gate.v1.GateService",
        "callbook.receipt.v1.ReceiptService",
        "callbook.resolver.v1.ResolverService",
        "grpc.health.v1.Health",
    ];
    for name in ours {
        assert!(names.contains(name), "{name} is not listed: {names:?}");
        let found = ask(MessageRequest::FileContainingSymbol(name.to_owned())).await;
        assert!(matches!(found.message_response, Some(MessageResponse::FileDescriptorResponse(_))), "{name}");
    }
    world.stop().await;
}

#[tokio::test]
async fn the_api_document_is_openapi_3_1_and_every_reference_in_it_leads_somewhere() {
    let world = callbook_tests::world::World::start().await;
    let answer = world.look("/openapi.json").await;
    assert_eq!((answer.status, &answer.headers["content-type"]), (200, &"application/json".parse().unwrap()));
    let document = answer.json();
    assert!(document["openapi"].as_str().unwrap().starts_with("3.1."), "{}", document["openapi"]);
    assert!(document["info"]["version"].is_string() && document["info"]["title"].is_string());
    let (mut open, mut references) = (vec![&document], BTreeSet::new());
    while let Some(value) = open.pop() {
        match value {
            Value::Object(map) => {
                references.extend(map.get("$ref").and_then(Value::as_str));
                open.extend(map.values());
            }
            Value::Array(list) => open.extend(list),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    assert!(references.len() > 10);
    for reference in references {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    let mut operations = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap_or_default();
            assert!(!id.is_empty() && operations.insert(id), "{method} {path}: `{id}` names another operation too");
            for slot in path.split('{').skip(1).filter_map(|rest| rest.split('}').next()) {
                let parameters = operation["parameters"].as_array().unwrap();
                let known =
                    parameters.iter().any(|one| one["in"] == "path" && one["name"] == slot && one["required"] == true);
                assert!(known, "{method} {path}: {slot} is not described");
            }
        }
    }
    world.stop().await;
}
