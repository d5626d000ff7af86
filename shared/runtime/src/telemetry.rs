//! Logs, traces and the trace id that holds them together.
//!
//! Spans always have a W3C trace id, so that an answer, a log line and a receipt can be brought together; spans are
//! only recorded and sent where a collector is set.

use std::io::IsTerminal;
use std::time::Duration;

use opentelemetry::propagation::TextMapPropagator;
use opentelemetry::trace::{TraceContextExt, TraceId, TracerProvider};
use opentelemetry_http::{HeaderExtractor, HeaderInjector};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::propagation::TraceContextPropagator;
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, Sampler, SdkTracerProvider};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::{SubscriberInitExt, TryInitError};
use tracing_subscriber::{EnvFilter, Layer, fmt};

/// The variable that names the collector; the other `OTEL_…` variables of the specification work too.
const COLLECTOR: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// How long the end of a process waits for the collector.
const FLUSH: Duration = Duration::from_secs(3);

/// Why telemetry did not start.
#[derive(Debug, thiserror::Error)]
pub enum TelemetryError {
    /// `RUST_LOG` is not a filter.
    #[error("setting `RUST_LOG`: {0}")]
    Filter(String),
    /// The collector's address does not do.
    #[error("setting `{COLLECTOR}`: {0}")]
    Collector(#[from] ExporterBuildError),
    /// Another subscriber is there.
    #[error("telemetry was started twice")]
    Twice(#[from] TryInitError),
}

/// Sends what is left when it is dropped. Keep it in `main`, inside the runtime, until the end.
#[must_use = "dropping it ends tracing"]
pub struct Guard(SdkTracerProvider);

impl Drop for Guard {
    fn drop(&mut self) {
        // At the end there is nobody left to tell that a collector did not listen.
        let _ = self.0.shutdown_with_timeout(FLUSH);
    }
}

/// Starts logging to stderr, filtered by `RUST_LOG` (default `info`): compact text on a terminal, else one JSON object
/// a line. Sends traces where `OTEL_EXPORTER_OTLP_ENDPOINT` is set. Call it once, inside the runtime.
///
/// # Errors
/// One sentence that names the variable.
pub fn init(service: &'static str) -> Result<Guard, TelemetryError> {
    let provider = provider(service)?;
    let layer = tracing_opentelemetry::layer()
        .with_tracer(provider.tracer("callbook"))
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        // A span is built at its end or when its id is asked for, so that the current span can still get a parent.
        .with_context_activation(false);
    tracing_subscriber::registry().with(layer).with(filter()?).with(log()).try_init()?;
    Ok(Guard(provider))
}

/// Makes the current span a part of the trace that the request's `traceparent` names. Call it first in a span: once
/// the trace id was asked for, it stays.
pub fn extract_context(headers: &http::HeaderMap) {
    let context = TraceContextPropagator::new().extract(&HeaderExtractor(headers));
    if context.span().span_context().is_valid() {
        // Fails where nothing traces, as in tests; the request goes on without.
        let _ = Span::current().set_parent(context);
    }
}

/// Writes the current span's `traceparent` into the headers of a request that we send.
pub fn inject_context(headers: &mut http::HeaderMap) {
    TraceContextPropagator::new().inject_context(&Span::current().context(), &mut HeaderInjector(headers));
}

/// The trace id of the current span as 32 hex digits; a random one outside of any span.
pub fn trace_id() -> String {
    let id = Span::current().context().span().span_context().trace_id();
    if id == TraceId::INVALID { RandomIdGenerator::default().new_trace_id().to_string() } else { id.to_string() }
}

fn provider(service: &'static str) -> Result<SdkTracerProvider, TelemetryError> {
    if std::env::var_os(COLLECTOR).is_none_or(|endpoint| endpoint.is_empty()) {
        return Ok(SdkTracerProvider::builder().with_sampler(Sampler::AlwaysOff).build());
    }
    let exporter = SpanExporter::builder().with_tonic().build()?;
    let named = std::env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty());
    let resource = Resource::builder();
    let resource = if named { resource } else { resource.with_service_name(service) };
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build())
}

fn filter() -> Result<EnvFilter, TelemetryError> {
    let text = std::env::var("RUST_LOG").unwrap_or_default();
    let text = if text.trim().is_empty() { "info" } else { text.trim() };
    EnvFilter::try_new(text).map_err(|error| TelemetryError::Filter(error.to_string()))
}

fn log<S>() -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
{
    let terminal = std::io::stderr().is_terminal();
    let lines = fmt::layer().with_writer(std::io::stderr).with_ansi(terminal);
    if terminal { lines.compact().boxed() } else { lines.json().flatten_event(true).boxed() }
}
