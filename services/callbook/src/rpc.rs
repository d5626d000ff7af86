//! Around every rpc: its span, its place in the caller's trace, one log line, its figures.

use std::task::{Context, Poll};
use std::time::Instant;

use callbook_runtime::telemetry::{extract_context, trace_id};
use http::{Request, Response};
use metrics::{Unit, describe_counter, describe_histogram};
use tower::{Layer, Service};
use tracing::Instrument as _;

/// Says what is counted, and in which unit.
pub fn describe_metrics() {
    describe_counter!("rpcs_total", Unit::Count, "Rpcs by method and gRPC status.");
    describe_histogram!("rpc_seconds", Unit::Seconds, "Time to the head of the answer by method.");
    describe_counter!("invocations_total", Unit::Count, "Invocations that ran, by type of row and outcome.");
    describe_histogram!("invocation_run_seconds", Unit::Seconds, "Time in the runner by type of row.");
    describe_histogram!("commit_seconds", Unit::Seconds, "Time of one grouped transaction by kind.");
    describe_histogram!("commit_group_calls", Unit::Count, "Calls in one grouped transaction by kind.");
}

/// gRPC's number for a method that nobody has.
const UNIMPLEMENTED: u32 = 12;

/// Puts [`Observed`] around the services of a server.
#[derive(Clone, Copy, Debug)]
pub struct Observe;

impl<S> Layer<S> for Observe {
    type Service = Observed<S>;
    fn layer(&self, inner: S) -> Observed<S> {
        Observed { inner }
    }
}

/// A service whose calls are seen.
#[derive(Clone, Debug)]
pub struct Observed<S> {
    inner: S,
}

impl<S, A, B> Service<Request<A>> for Observed<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: std::fmt::Debug,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let method = request.uri().path().trim_start_matches('/').to_owned();
        // health checks and reflection are not worth a line each
        let quiet = method.starts_with("grpc.");
        let span = tracing::info_span!("rpc", otel.name = %method, otel.kind = "server", rpc.system = "grpc");
        let answer = span.in_scope(|| {
            extract_context(request.headers());
            self.inner.call(request)
        });
        let began = Instant::now();
        Box::pin(
            async move {
                let answer = answer.await;
                let code = answer.as_ref().ok().map_or(2, grpc_code);
                let seconds = began.elapsed().as_secs_f64();
                // a method that nobody has is a stranger's word and no label
                let method = if code == UNIMPLEMENTED { "unknown".to_owned() } else { method };
                metrics::histogram!("rpc_seconds", "method" => method.clone()).record(seconds);
                metrics::counter!("rpcs_total", "method" => method.clone(), "code" => code.to_string()).increment(1);
                if !quiet {
                    let ms = seconds * 1_000.0;
                    tracing::info!(target: "callbook::rpc", %method, code, ms, trace_id = %trace_id(), "answered");
                }
                answer
            }
            .instrument(span),
        )
    }
}

/// A refusal is in the head of the answer; a status in the trailers of a stream is not seen here and counts as 0.
fn grpc_code<B>(response: &Response<B>) -> u32 {
    let code = response.headers().get("grpc-status").and_then(|value| value.to_str().ok());
    code.and_then(|code| code.parse().ok()).unwrap_or(0)
}
