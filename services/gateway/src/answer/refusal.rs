//! A fault as an HTTP answer. The body is made by the runtime; this adds what only HTTP has.

use axum::response::{IntoResponse, Response};
use callbook_domain::fault::{Fault, Kind, Reason};
use callbook_runtime::problem::{MEDIA_TYPE, http_body};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use utoipa::{IntoResponses, ToSchema};

use super::media;

/// A request that was refused.
#[derive(Debug)]
pub(crate) struct Refusal {
    fault: Fault,
    status: Option<StatusCode>,
    extra: Option<(&'static str, Value)>,
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Refusal { fault, status: None, extra: None }
    }
}

impl Refusal {
    /// A refusal whose status is more exact than its reason's, such as 405.
    pub(crate) fn with_status(status: StatusCode, fault: Fault) -> Self {
        Refusal { fault, status: Some(status), extra: None }
    }

    /// A refusal with one more field, first in its body.
    pub(crate) fn with_field(fault: Fault, name: &'static str, value: Value) -> Self {
        Refusal { fault, status: None, extra: Some((name, value)) }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, body) = http_body(&self.fault);
        let status =
            self.status.or_else(|| StatusCode::from_u16(status).ok()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let text = completed(body, status, self.extra).to_string();
        let mut response = media(status, MEDIA_TYPE, text);
        match self.fault.kind() {
            Kind::Unauthenticated => {
                response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge(self.fault.reason()));
            }
            Kind::Exhausted | Kind::Unavailable => {
                let seconds = self.fault.retry_after().unwrap_or(1_000).div_ceil(1_000).max(1);
                response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            }
            Kind::Invalid | Kind::Forbidden | Kind::NotFound | Kind::Conflict | Kind::Precondition | Kind::Internal => {
            }
        }
        response.extensions_mut().insert(self.fault.reason());
        response
    }
}

/// What would be taken: a credential where there is none, another one than a token that is no good (RFC 6750), and a
/// proof beside a token that needs one.
fn challenge(reason: Reason) -> HeaderValue {
    HeaderValue::from_static(match reason {
        Reason::Unauthorized => "Bearer",
        Reason::PopRequired => "Cap error=\"pop_required\"",
        Reason::PopInvalid => "Cap error=\"pop_invalid\"",
        _ => "Bearer error=\"invalid_token\"",
    })
}

fn completed(body: Value, status: StatusCode, extra: Option<(&'static str, Value)>) -> Value {
    let mut whole = serde_json::Map::new();
    if let Some((name, value)) = extra {
        whole.insert(name.to_owned(), value);
    }
    let Value::Object(body) = body else { return body };
    whole.extend(body);
    whole.insert("status".to_owned(), json!(status.as_u16()));
    if let Some(Value::String(keys)) = whole.get("did_you_mean") {
        let keys: Vec<&str> = keys.split(',').map(str::trim).filter(|key| !key.is_empty()).collect();
        let keys = json!(keys);
        whole.insert("did_you_mean".to_owned(), keys);
    }
    Value::Object(whole)
}

/// Why a request was refused. `error` never changes its words, with a detail after a colon where there is one;
/// further fields are the reason's own, such as `did_you_mean` or `needs`.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes in the API document what the runtime makes")]
pub(crate) struct Problem {
    /// The reason, and its detail after a colon.
    #[schema(example = "unknown_key")]
    error: String,
    /// The reason in a sentence.
    message: String,
    /// False: nothing was called. True: a call was fired. Null: nobody knows.
    #[schema(required = true)]
    ran: Option<bool>,
    /// What to do about it. Absent: the message says it.
    #[schema(nullable = false)]
    fix: Option<String>,
    /// After how many milliseconds another try makes sense. Absent: not said.
    #[schema(nullable = false)]
    retry_after_ms: Option<u64>,
    /// `urn:callbook:error:` and the reason.
    #[schema(rename = "type")]
    kind: String,
    /// The reason in words.
    title: String,
    /// The HTTP status.
    status: u16,
    /// The same as `message`.
    detail: String,
    /// Keys that come near to an unknown one.
    #[schema(nullable = false)]
    did_you_mean: Option<Vec<String>>,
    /// The grant that is missing.
    #[schema(nullable = false)]
    needs: Option<String>,
    /// The part of the request that does not do.
    #[schema(nullable = false)]
    field: Option<String>,
}

/// Every way to be refused.
#[derive(IntoResponses)]
#[expect(dead_code, reason = "describes in the API document what `Refusal` answers")]
pub(crate) enum Refused {
    /// The request cannot be read, or an argument does not do.
    #[response(status = 400, content_type = "application/problem+json")]
    Invalid(Problem),
    /// No credential, or one that is not known.
    #[response(status = 401, content_type = "application/problem+json")]
    Unauthorized(Problem),
    /// The credential does not cover this.
    #[response(status = 403, content_type = "application/problem+json")]
    Forbidden(Problem),
    /// Nothing here, or nothing that this caller may see.
    #[response(status = 404, content_type = "application/problem+json")]
    NotFound(Problem),
    /// The body did not arrive in time.
    #[response(status = 408, content_type = "application/problem+json")]
    Slow(Problem),
    /// The request clashes with what exists or runs.
    #[response(status = 409, content_type = "application/problem+json")]
    Conflict(Problem),
    /// The row has another version than `If-Match` says.
    #[response(status = 412, content_type = "application/problem+json")]
    Changed(Problem),
    /// The body is too large.
    #[response(status = 413, content_type = "application/problem+json")]
    TooLarge(Problem),
    /// The address is too long.
    #[response(status = 414, content_type = "application/problem+json")]
    TooLong(Problem),
    /// The body is of a media type that is not taken here.
    #[response(status = 415, content_type = "application/problem+json")]
    MediaType(Problem),
    /// The hygiene of the book refuses the row.
    #[response(status = 422, content_type = "application/problem+json")]
    Hygiene(Problem),
    /// Too much at once; `retry-after` says when to come back.
    #[response(status = 429, content_type = "application/problem+json")]
    Exhausted(Problem),
    /// Too many headers, or too large ones.
    #[response(status = 431, content_type = "application/problem+json")]
    Headers(Problem),
    /// Our mistake.
    #[response(status = 500, content_type = "application/problem+json")]
    Internal(Problem),
    /// A part that is needed does not answer now; `retry-after` says when to come back.
    #[response(status = 503, content_type = "application/problem+json")]
    Unavailable(Problem),
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn body(refusal: Refusal) -> (Response, Value) {
        let (parts, body) = refusal.into_response().into_parts();
        let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
        (Response::from_parts(parts, axum::body::Body::empty()), serde_json::from_slice(&bytes).unwrap())
    }

    #[tokio::test]
    async fn an_unknown_key_offers_a_list() {
        let fault = Fault::new(Reason::UnknownKey, "no row of this key").with("did_you_mean", "NOW, NOW_UTC");
        let (response, body) = body(fault.into()).await;
        assert_eq!(response.status(), 404);
        assert_eq!(body["did_you_mean"], json!(["NOW", "NOW_UTC"]));
    }

    #[tokio::test]
    async fn a_missing_credential_says_how_to_show_one() {
        let (response, body) = body(callbook_domain::caller::unauthorized().into()).await;
        assert_eq!(
            (response.status().as_u16(), &response.headers()["www-authenticate"]),
            (401, &"Bearer".parse().unwrap())
        );
        assert_eq!(body["error"], "unauthorized");
        for (reason, says) in [
            (Reason::BadSignature, "Bearer error=\"invalid_token\""),
            (Reason::Expired, "Bearer error=\"invalid_token\""),
            (Reason::PopRequired, "Cap error=\"pop_required\""),
        ] {
            let response = Refusal::from(Fault::new(reason, "no")).into_response();
            assert_eq!(
                (response.status().as_u16(), response.headers()["www-authenticate"].as_bytes()),
                (401, says.as_bytes())
            );
        }
        let forbidden = Refusal::from(Fault::new(Reason::ScopeMismatch, "no")).into_response();
        assert!(!forbidden.headers().contains_key("www-authenticate"));
    }

    #[tokio::test]
    async fn a_more_exact_status_stands_in_the_body_too() {
        let fault = Fault::new(Reason::InvalidRequest, "no such method here");
        let (response, body) = body(Refusal::with_status(StatusCode::METHOD_NOT_ALLOWED, fault)).await;
        assert_eq!((response.status().as_u16(), &body["status"]), (405, &json!(405)));
    }

    #[tokio::test]
    async fn whoever_has_to_wait_is_told_how_long() {
        let (response, _) = body(Fault::new(Reason::Overloaded, "busy").retry_after_ms(1_001).into()).await;
        assert_eq!(response.headers()["retry-after"], "2");
        let (response, _) = body(Fault::new(Reason::DatabaseUnavailable, "gone").into()).await;
        assert_eq!(response.headers()["retry-after"], "1");
    }
}
