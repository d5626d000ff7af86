//! What leaves the gateway: JSON with the fields in the interface's order, and refusals.

mod content;
mod refusal;
mod word;

use std::borrow::Cow;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use callbook_domain::fault::{Fault, Reason};
use callbook_domain::row::timestamp;
use http::{HeaderName, HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;

pub(crate) use self::content::{Bytes, Typed, raw};
pub(crate) use self::refusal::{Problem, Refusal, Refused};
pub(crate) use self::word::{
    Action, ApprovalState, Effect, Format, Mode, Provenance, Risk, RowType, Status, WatchAction, Word, only,
};

/// Marks an answer from what was last known, while the database does not answer.
const STALE: HeaderName = HeaderName::from_static("x-callbook-stale");

/// What a handler gives.
pub(crate) type Answer = Result<Response, Refusal>;

/// 200 with a JSON body.
pub(crate) fn json<T: Serialize>(body: &T) -> Answer {
    json_with(StatusCode::OK, body)
}

/// A JSON body with another status than 200.
pub(crate) fn json_with<T: Serialize>(status: StatusCode, body: &T) -> Answer {
    let text = serde_json::to_vec(body).map_err(|error| {
        tracing::error!(%error, "an answer could not be written as JSON");
        Fault::new(Reason::Internal, "something went wrong inside")
    })?;
    Ok(media(status, "application/json", text))
}

/// A body of a media type.
pub(crate) fn media(status: StatusCode, media_type: &str, body: impl Into<Body>) -> Response {
    let mut response = (status, body.into()).into_response();
    let media_type = HeaderValue::from_str(media_type).unwrap_or(HeaderValue::from_static("application/octet-stream"));
    response.headers_mut().insert(header::CONTENT_TYPE, media_type);
    response
}

/// The answer with a header that says that it may be out of date.
pub(crate) fn marked(mut response: Response, stale: bool) -> Response {
    if stale {
        response.headers_mut().insert(STALE, HeaderValue::from_static("true"));
    }
    response
}

/// A time as answers write it: RFC 3339, UTC, milliseconds. Nothing where the service sent none.
pub(crate) fn moment(at: Option<prost_types::Timestamp>) -> Option<String> {
    let at = at?;
    let nanos = i128::from(at.seconds) * 1_000_000_000 + i128::from(at.nanos);
    OffsetDateTime::from_unix_timestamp_nanos(nanos).ok().map(timestamp)
}

/// Text, or nothing where it is empty.
pub(crate) fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// A path of this surface as an address.
pub(crate) fn address(base: &str, path: impl Into<Cow<'static, str>>) -> String {
    format!("{base}{}", path.into())
}

/// JSON text of a service as it is.
pub(crate) type Raw = Box<RawValue>;
