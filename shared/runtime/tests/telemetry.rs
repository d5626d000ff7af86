//! Traces over process borders: what goes in by `traceparent` goes out by it, and reaches a collector.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::body::Bytes;
use callbook_runtime::telemetry;
use tracing::Instrument;

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

fn headers(traceparent: &'static str) -> http::HeaderMap {
    http::HeaderMap::from_iter([("traceparent".parse().unwrap(), traceparent.parse().unwrap())])
}

/// One request as a service handles it: the trace comes in, the span gets a child, and a request goes out.
async fn handle() {
    assert_ne!(telemetry::trace_id(), telemetry::trace_id(), "outside of spans every id is a new one");
    let span = tracing::info_span!("handle_it");
    async {
        telemetry::extract_context(&headers(PARENT));
        async { assert_eq!(telemetry::trace_id(), "0af7651916cd43dd8448eb211c80319c") }
            .instrument(tracing::info_span!("child"))
            .await;
        let mut sent = http::HeaderMap::new();
        telemetry::inject_context(&mut sent);
        let sent = sent["traceparent"].to_str().unwrap();
        assert!(sent.starts_with("00-0af7651916cd43dd8448eb211c80319c-") && !sent.contains("b7ad6b7169203331"));
        tracing::info!(answer = 42, "handled");
    }
    .instrument(span)
    .await;
    let own = tracing::info_span!("own");
    async {
        telemetry::extract_context(&headers("garbage"));
        let id = telemetry::trace_id();
        assert_eq!((id.len(), &id), (32, &telemetry::trace_id()), "inside of a span the id stays");
    }
    .instrument(own)
    .await;
}

/// Runs only inside of the tests below, in a process of its own: a subscriber is for ever and variables are global.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "is the child process of the other tests"]
async fn child() {
    let guard = telemetry::init("callbook-test").unwrap();
    assert!(telemetry::init("again").is_err());
    handle().await;
    drop(guard);
}

fn run_child(collector: Option<&str>) -> String {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child", "--ignored", "--nocapture"]).env_remove("RUST_LOG");
    child.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.unwrap_or_default());
    let output = child.output().unwrap();
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    log
}

#[test]
fn without_a_collector_there_are_trace_ids_and_json_lines() {
    let log = run_child(None);
    let line = log.lines().find(|line| line.contains("handled")).unwrap();
    let line: serde_json::Value = serde_json::from_str(line).unwrap();
    assert_eq!((line["answer"].to_string(), &line["level"]), ("42".to_owned(), &"INFO".into()));
}

#[test]
fn a_bad_filter_is_one_sentence_that_names_the_variable() {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child", "--ignored"]).env("RUST_LOG", "=!=");
    let output = String::from_utf8(child.output().unwrap().stdout).unwrap();
    assert!(output.contains("Filter("), "{output}");
}

#[tokio::test(flavor = "multi_thread")]
async fn spans_reach_the_collector_before_the_process_ends() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = seen.clone();
    let collect = move |body: Bytes| async move { keep.lock().unwrap().extend_from_slice(&body) };
    let path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
    let routes = tonic::service::Routes::from(axum::Router::new().route(path, axum::routing::post(collect)));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let incoming = tokio_stream::wrappers::TcpListenerStream::new(listener);
    tokio::spawn(tonic::transport::Server::builder().add_routes(routes).serve_with_incoming(incoming));
    let child = tokio::task::spawn_blocking(move || run_child(Some(&address)));
    tokio::time::timeout(Duration::from_secs(30), child).await.unwrap().unwrap();
    let seen = seen.lock().unwrap();
    for part in [&b"handle_it"[..], b"callbook-test", b"child"] {
        assert!(seen.windows(part.len()).any(|window| window == part));
    }
}
