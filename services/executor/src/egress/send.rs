//! One request out, one bounded answer in. Nothing is tried twice.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, CONTENT_LENGTH, LOCATION, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reqwest::{Client, Request, Response};
use tokio::time::timeout;
use url::Url;

use super::address::{Origin, Policy, Refusal, check_url};
use super::answer::{Answered, Head};
use super::body;
use super::client::Egress;
use super::failure::{Failed, Phase};

/// How many redirects are followed at most.
const MAX_HOPS: usize = 5;

/// Headers that say how a message is framed or routed. They are the connection's; set by a row they could smuggle a
/// second request or reach another host behind an allowed one.
const OF_THE_CONNECTION: [&str; 12] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
];

/// What to do with an answer that points elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Redirects {
    /// It is the answer.
    #[default]
    None,
    /// Followed for `GET` and `HEAD`, up to five times and only within the origin; otherwise it is the answer.
    SameOrigin,
}

/// A request, ready to go: the credential is already in its URL or headers.
#[derive(Clone)]
pub struct Outbound {
    /// Any but `CONNECT` and `TRACE`.
    pub method: Method,
    /// Checked again here, so it need not come from [`check_url`].
    pub url: Url,
    /// In order; a name may repeat. `user-agent` is replaced by ours, headers of the connection are refused.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// `None` and empty are the same.
    pub body: Option<Bytes>,
    /// The name of the secret in use: calls with another secret use other connections.
    pub secret: Option<String>,
    /// What to do with a redirect.
    pub redirects: Redirects,
}

impl fmt::Debug for Outbound {
    /// Only what cannot hold a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = Origin::of(&self.url).map(|origin| origin.to_string());
        f.debug_struct("Outbound").field("method", &self.method).field("origin", &origin).finish_non_exhaustive()
    }
}

/// The bounds of one call.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the start to the last byte, redirects included.
    pub total: Duration,
    /// From the start (or a redirect) to the head of the answer, connection included.
    pub head: Duration,
    /// Between two pieces of the body.
    pub idle: Duration,
    /// Bytes of body that are kept, counted after decoding; a longer answer is cut and marked.
    pub max_bytes: usize,
    /// How many times longer a body may get by decoding; an answer beyond it is cut and marked.
    pub max_ratio: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            total: Duration::from_secs(30),
            head: Duration::from_secs(10),
            idle: Duration::from_secs(10),
            max_bytes: 4 << 20,
            max_ratio: 100,
        }
    }
}

/// Sends a request and reads its answer. Every status is an answer, 5xx too.
///
/// Fails when our rules refuse it, when there is no connection or no complete answer, and when a limit of time is
/// reached. `Failed::sent` then says whether the upstream may have seen it. Dropping the future ends the call.
pub async fn send(egress: &Egress, outbound: Outbound, limits: Limits) -> Result<Answered, Failed> {
    let ms = limits.total.as_millis();
    if ms == 0 {
        return Err(Failed::before(Phase::Timeout, "no time left to call".to_owned()));
    }
    match timeout(limits.total, walk(egress, outbound, &limits)).await {
        Ok(ended) => ended,
        // It may have been the lookup or the connection that took the time, but nobody can say so for sure.
        Err(_) => Err(Failed::after(Phase::Timeout, format!("no complete answer within {ms} ms"))),
    }
}

async fn walk(egress: &Egress, outbound: Outbound, limits: &Limits) -> Result<Answered, Failed> {
    let mut url = check_url(egress.policy(), outbound.url.as_str()).map_err(Failed::refused)?;
    let origin = Origin::of(&url).ok_or_else(|| Failed::refused(Refusal::Scheme))?;
    let headers = headers(&outbound)?;
    let client = egress.client(outbound.secret.as_deref(), &origin)?;
    let follows = outbound.redirects == Redirects::SameOrigin && matches!(outbound.method, Method::GET | Method::HEAD);
    let mut hops = 0;
    loop {
        let mut request = Request::new(outbound.method.clone(), url.clone());
        *request.headers_mut() = headers.clone();
        *request.body_mut() = outbound.body.clone().filter(|body| !body.is_empty()).map(Into::into);
        let response = head(&client, request, limits, &origin).await.map_err(|failed| after_hop(failed, hops))?;
        match next_hop(egress.policy(), &url, &response) {
            Some(next) if follows && hops < MAX_HOPS => (url, hops) = (next, hops + 1),
            _ => return answer(response, limits, &origin).await,
        }
    }
}

/// What the row wants to send, and what we always send.
fn headers(outbound: &Outbound) -> Result<HeaderMap, Failed> {
    if matches!(outbound.method, Method::CONNECT | Method::TRACE) {
        return Err(Failed::refused(Refusal::Method));
    }
    let mut map = HeaderMap::new();
    for (name, value) in &outbound.headers {
        if OF_THE_CONNECTION.contains(&name.as_str()) {
            return Err(Failed::refused(Refusal::Header));
        }
        let mut value = value.clone();
        // Keeps it out of HTTP/2 compression tables and of the client's debug texts.
        value.set_sensitive(true);
        map.append(name.clone(), value);
    }
    map.remove(USER_AGENT);
    map.entry(ACCEPT_ENCODING).or_insert(HeaderValue::from_static("gzip, deflate, br"));
    let empty = outbound.body.as_ref().is_none_or(Bytes::is_empty);
    if empty && matches!(outbound.method, Method::POST | Method::PUT | Method::PATCH) {
        // Without it some servers answer 411.
        map.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
    }
    Ok(map)
}

async fn head(client: &Client, request: Request, limits: &Limits, origin: &Origin) -> Result<Response, Failed> {
    match timeout(limits.head, client.execute(request)).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(error)) => Err(Failed::of_request(&error, origin)),
        Err(_) => {
            let ms = limits.head.as_millis();
            Err(Failed::after(Phase::Timeout, format!("{origin} began no answer within {ms} ms")))
        }
    }
}

/// After a redirect the upstream has seen the first request, however the next one ends.
fn after_hop(failed: Failed, hops: usize) -> Failed {
    match hops {
        0 => failed,
        _ => Failed::after(failed.phase, failed.message),
    }
}

/// Where a redirect points, when that is in the same origin and passes the same rules as every URL.
fn next_hop(policy: &Policy, from: &Url, response: &Response) -> Option<Url> {
    let points = matches!(
        response.status(),
        StatusCode::MOVED_PERMANENTLY
            | StatusCode::FOUND
            | StatusCode::SEE_OTHER
            | StatusCode::TEMPORARY_REDIRECT
            | StatusCode::PERMANENT_REDIRECT
    );
    let location = response.headers().get(LOCATION).filter(|_| points)?.to_str().ok()?;
    if location.contains('\\') {
        return None;
    }
    let next = check_url(policy, from.join(location).ok()?.as_str()).ok()?;
    (Origin::of(&next) == Origin::of(from)).then_some(next)
}

async fn answer(response: Response, limits: &Limits, origin: &Origin) -> Result<Answered, Failed> {
    let head = Head::read(response.status().as_u16(), response.headers());
    let body = body::read(response, head.coding, limits, origin).await?;
    Ok(Answered {
        status: head.status,
        media_type: head.media_type,
        charset: head.charset,
        kept_headers: head.kept_headers,
        body: body.bytes,
        truncated: body.truncated,
        remote_wire_bytes: body.wire_bytes,
    })
}
