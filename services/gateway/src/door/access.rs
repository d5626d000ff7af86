//! One span, one log line and one count for each request. Never a credential, a query or a body.

use std::time::Instant;

use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use callbook_domain::fault::Reason;
use callbook_runtime::telemetry;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use metrics::{Unit, counter, describe_counter, describe_histogram, histogram};
use tracing::Instrument;
use uuid::Uuid;

use super::share;
use crate::request::{REQUEST_ID, TERMINAL_KEY};

/// The longest `x-request-id` that is taken over.
const LONGEST_ID: usize = 128;
const UNMATCHED: &str = "unmatched";
/// The word for a caller that shows nothing.
const ANONYMOUS: &str = "anonymous";
/// The word for a caller that shows a token in the address.
const SHARE: &str = "share";
/// What the log says where the client went away before there was an answer.
const CLIENT_GONE: u16 = 499;

/// The id of a request: the caller's, or a new one.
#[derive(Clone)]
pub(crate) struct RequestId(pub(crate) HeaderValue);

/// Says what is counted, and in which unit.
pub(crate) fn describe_metrics() {
    describe_counter!("http_requests_total", Unit::Count, "Requests by method, route and status.");
    describe_histogram!("http_request_seconds", Unit::Seconds, "Time to the head of the answer by route and status.");
}

/// Measures a request, and adds to its answer what every answer has.
pub(super) async fn record(mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    request.extensions_mut().insert(RequestId(id.clone()));
    let mut line = Line::begin(&request);
    let span = tracing::info_span!("request", otel.kind = "server", method = %line.method, route = %line.route);
    async move {
        telemetry::extract_context(request.headers());
        line.trace = telemetry::trace_id();
        let caller = line.caller;
        let mut response = next.run(request).await;
        finish(response.headers_mut(), id, caller);
        line.end(&response);
        response
    }
    .instrument(span)
    .await
}

struct Line {
    started: Instant,
    method: String,
    route: String,
    caller: &'static str,
    trace: String,
    status: u16,
    error: &'static str,
}

impl Line {
    fn begin(request: &Request) -> Self {
        let route = request.extensions().get::<MatchedPath>().map_or(UNMATCHED, MatchedPath::as_str);
        // Methods are a word of the caller's choice; only real ones may become a label.
        let known = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
        let method = known.into_iter().find(|known| *known == request.method().as_str()).unwrap_or("OTHER");
        Line {
            started: Instant::now(),
            method: method.to_owned(),
            route: route.to_owned(),
            caller: caller(request),
            trace: String::new(),
            status: CLIENT_GONE,
            error: "",
        }
    }

    fn end(mut self, response: &Response) {
        self.status = response.status().as_u16();
        self.error = response.extensions().get::<Reason>().map_or("", |reason| reason.as_str());
    }
}

/// The line is written when it is dropped, so that a client that went away is seen too.
impl Drop for Line {
    fn drop(&mut self) {
        let time = self.started.elapsed();
        let status = self.status.to_string();
        counter!("http_requests_total", "method" => self.method.clone(), "route" => self.route.clone(), "status" => status.clone())
            .increment(1);
        histogram!("http_request_seconds", "route" => self.route.clone(), "status" => status)
            .record(time.as_secs_f64());
        tracing::info!(
            method = %self.method, route = %self.route, status = self.status, ms = (time.as_secs_f64() * 1e6).round() / 1e3,
            caller = self.caller, error = self.error, trace_id = %self.trace, "request"
        );
    }
}

/// How the caller showed who it is. Who it is, only the services know.
fn caller(request: &Request) -> &'static str {
    let headers = request.headers();
    let scheme = headers.get(header::AUTHORIZATION).map(|value| value.as_bytes().get(..4).unwrap_or_default());
    match (headers.contains_key(TERMINAL_KEY), scheme) {
        _ if share::is_there(request.uri()) => SHARE,
        (true, _) => "terminal_key",
        (false, Some(scheme)) if scheme.eq_ignore_ascii_case(b"cap ") => "token",
        (false, Some(_)) => "bearer",
        (false, None) => ANONYMOUS,
    }
}

fn request_id(headers: &HeaderMap) -> HeaderValue {
    let fits =
        |id: &&HeaderValue| !id.is_empty() && id.len() <= LONGEST_ID && id.as_bytes().iter().all(u8::is_ascii_graphic);
    let given = headers.get(REQUEST_ID).filter(fits).cloned();
    given.unwrap_or_else(|| HeaderValue::from_str(&Uuid::new_v4().to_string()).expect("hex and dashes are printable"))
}

fn finish(headers: &mut HeaderMap, id: HeaderValue, caller: &str) {
    headers.insert(REQUEST_ID, id);
    telemetry::inject_context(headers);
    headers.remove(HeaderName::from_static("tracestate"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.append(header::VARY, HeaderValue::from_static("authorization, x-terminal-key"));
    if caller == SHARE {
        // a link in the answer must not take the address along, and no cache may keep it
        headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    let cache = if caller == ANONYMOUS { "no-cache" } else { "no-store" };
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static(cache));
}
