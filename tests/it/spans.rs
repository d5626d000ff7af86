//! With a collector: the spans of a call, from the gateway through the service and the store to the upstream.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use callbook_tests::door::send;
use callbook_tests::process::Process;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::{book, database};
use data_encoding::HEXLOWER;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::trace::v1::Span;
use reqwest::Method;
use serde_json::json;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A collector that keeps what it is sent.
#[derive(Clone, Default)]
struct Collector(Arc<Mutex<Vec<Span>>>);

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let resources = request.into_inner().resource_spans.into_iter();
        let spans = resources.flat_map(|of| of.scope_spans).flat_map(|of| of.spans);
        self.0.lock().unwrap().extend(spans);
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collector_gets_one_tree_of_spans_from_the_gateway_to_the_upstream() {
    let collector = Collector::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = tonic::transport::Server::builder().add_service(TraceServiceServer::new(collector.clone()));
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let (url, origin) = (database::fresh().await, upstream.origin());
    let environment =
        [("DATABASE_URL", &*url), ("CALLBOOK_ALLOW_ORIGINS", &*origin), ("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)];
    let process = Process::start(&["up"], &environment);
    process.create(&book::http("SEND", &format!("POST {origin}/$1"), "$1=word", "")).await;
    let call = process.owner(Method::POST, "/api/dispatch").json(&json!({"key": "SEND", "body": "wolf"}));
    let answer = send(call.header("traceparent", format!("00-{TRACE}-{CALLER}-01"))).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    tokio::task::spawn_blocking(move || process.terminate()).await.unwrap();

    let spans = collector.0.lock().unwrap().clone();
    let shown = format!("{spans:?}");
    assert!(!shown.contains("wolf") && !shown.contains(callbook_tests::world::OWNER), "{shown}");
    let of_the_call: Vec<&Span> = spans.iter().filter(|span| HEXLOWER.encode(&span.trace_id) == TRACE).collect();
    let parents: BTreeMap<String, (&str, String)> = of_the_call
        .iter()
        .map(|span| (HEXLOWER.encode(&span.span_id), (span.name.as_str(), HEXLOWER.encode(&span.parent_span_id))))
        .collect();
    // from a span up to the caller, by name
    let path = |name: &str| {
        let (mut found, mut at) = (vec![name.to_owned()], None);
        while let Some((name, parent)) = match &at {
            None => parents.values().find(|(known, _)| *known == name),
            Some(id) => parents.get(id),
        } {
            if at.is_some() {
                found.push((*name).to_owned());
            }
            at = Some(parent.clone());
        }
        (found, at.unwrap_or_default())
    };
    let invoke = "callbook.executor.v1.ExecutorService/Invoke";
    for (name, above) in [
        ("commit intent", vec!["commit intent", invoke, "request"]),
        ("commit result", vec!["commit result", invoke, "request"]),
        ("POST", vec!["POST", invoke, "request"]),
    ] {
        assert_eq!(path(name), (above.into_iter().map(str::to_owned).collect(), CALLER.to_owned()), "{parents:?}");
    }
    let sent = upstream.seen()[0].headers["traceparent"].to_str().unwrap().to_owned();
    let span = sent.split('-').nth(2).unwrap();
    assert_eq!(parents.get(span).map(|(name, _)| *name), Some("POST"), "the upstream's parent is the span of its call");
    assert!(sent.ends_with("-01"), "what is sampled stays sampled: {sent}");
}
