//! What every call to a service carries on from the request: credential, deadline, trace.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_runtime::grpc::to_status;
use callbook_runtime::telemetry;
use http::{HeaderMap, HeaderName, header};
use tonic::metadata::MetadataMap;
use tonic::{Extensions, Request, Status};

use super::base::base_url;
use crate::answer::Refusal;
use crate::app::App;
use crate::door::RequestId;
use crate::upstream::Within;

/// The owner's credential, as the seed sends it.
pub(crate) const TERMINAL_KEY: HeaderName = HeaderName::from_static("x-terminal-key");
/// A token holder's proof that it is the holder, for this one call.
pub(crate) const CAP_PROOF: HeaderName = HeaderName::from_static("cap-proof");
/// The id that a caller gives its request, or that we give it.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// How long the caller waits, in milliseconds.
const DEADLINE_MS: HeaderName = HeaderName::from_static("x-deadline-ms");

/// One request, as the services need to know it.
#[derive(Clone)]
pub(crate) struct Call {
    headers: HeaderMap,
    asked: Option<Duration>,
    longest: Duration,
    until: Instant,
    /// `scheme://host` of the addresses in the answer; empty where the request does not say.
    pub(crate) base: String,
}

impl Call {
    fn read(parts: &Parts, app: &App) -> Result<Self> {
        let mut headers = HeaderMap::new();
        for name in [header::AUTHORIZATION, TERMINAL_KEY, CAP_PROOF] {
            if let Some(value) = only(&parts.headers, &name)? {
                headers.insert(name, value.clone());
            }
        }
        if let Some(RequestId(id)) = parts.extensions.get() {
            headers.insert(REQUEST_ID, id.clone());
        }
        let asked = only(&parts.headers, &DEADLINE_MS)?.map(|value| deadline(value.to_str().ok())).transpose()?;
        let longest = app.config.longest_deadline;
        let time = asked.unwrap_or(app.config.deadline).min(longest);
        Ok(Call { headers, asked, longest, until: Instant::now() + time, base: base_url(&parts.headers, &app.config) })
    }

    /// A call that nobody asked for, without a credential.
    pub(crate) fn of_our_own(time: Duration) -> Self {
        Call {
            headers: HeaderMap::new(),
            asked: None,
            longest: time,
            until: Instant::now() + time,
            base: String::new(),
        }
    }

    /// The credential as it was shown; empty where there is none.
    pub(crate) fn credential(&self) -> Vec<u8> {
        let shown = [header::AUTHORIZATION, TERMINAL_KEY].into_iter().filter_map(|name| self.headers.get(name));
        shown.map(http::HeaderValue::as_bytes).collect::<Vec<_>>().join(&b'\n')
    }

    /// Whether the credential is shaped like a JWT of an outside issuer: its holder can get another one there.
    pub(crate) fn shows_jwt(&self) -> bool {
        let shown = self.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = shown.split_once(' ').map_or(shown, |(_, token)| token.trim());
        token.starts_with("eyJ") && token.matches('.').count() == 2
    }

    /// The call with another time where the caller did not send `x-deadline-ms`.
    pub(crate) fn or_within(mut self, time: Duration) -> Self {
        if self.asked.is_none() {
            self.until = Instant::now() + time.min(self.longest);
        }
        self
    }

    /// The call with the time that its body asks for.
    pub(crate) fn within_ms(mut self, ms: u64) -> Result<Self> {
        if ms == 0 {
            return Err(no_time("deadline_ms"));
        }
        self.until = Instant::now() + Duration::from_millis(ms).min(self.longest);
        Ok(self)
    }

    /// A message with the call's metadata; the trace is that of the current span.
    pub(crate) fn request<Q>(&self, message: Q) -> std::result::Result<Request<Q>, Status> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(to_status(&Fault::new(Reason::DeadlineTooShort, "the deadline leaves no time to run")));
        }
        let mut headers = self.headers.clone();
        telemetry::inject_context(&mut headers);
        let mut extensions = Extensions::default();
        extensions.insert(Within(left));
        let mut request = Request::from_parts(MetadataMap::from_headers(headers), extensions, message);
        request.set_timeout(left);
        Ok(request)
    }
}

impl FromRequestParts<Arc<App>> for Call {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> std::result::Result<Self, Refusal> {
        Ok(Call::read(parts, app)?)
    }
}

/// The header's one value. Two are refused, because two readers might believe different ones.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a http::HeaderValue>> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (first, None) => Ok(first),
        (_, Some(_)) => Err(Fault::new(Reason::InvalidRequest, format!("the header `{name}` is there twice"))),
    }
}

fn deadline(text: Option<&str>) -> Result<Duration> {
    match text.and_then(|text| text.parse::<u64>().ok()) {
        Some(0) | None => Err(no_time("x-deadline-ms")),
        Some(ms) => Ok(Duration::from_millis(ms)),
    }
}

fn no_time(name: &'static str) -> Fault {
    Fault::new(Reason::InvalidRequest, format!("`{name}` is a whole number of milliseconds from 1")).with("field", name)
}
