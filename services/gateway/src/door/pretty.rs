//! `?pretty`: JSON with indents, for people.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use hyper::body::Body as _;
use serde_json::Value;

use crate::request::wants;

/// Bodies above this many bytes, and streams, are left as they are.
const MOST: u64 = 32 * 1024 * 1024;

/// Indents the JSON of the answer where the query asks for it. Numbers keep their text.
pub(super) async fn render(request: Request, next: Next) -> Response {
    let asked = wants(request.uri(), "pretty");
    let response = next.run(request).await;
    let known = response.body().size_hint().exact().is_some_and(|bytes| bytes <= MOST);
    if !asked || !known || !is_json(response.headers()) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(compact) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let text = match serde_json::from_slice::<Value>(&compact).and_then(|value| serde_json::to_vec_pretty(&value)) {
        Ok(text) => [text, b"\n".to_vec()].concat().into(),
        Err(_) => compact,
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(parts, Body::from(text))
}

fn is_json(headers: &HeaderMap) -> bool {
    let media_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    media_type.starts_with(b"application/json") || media_type.starts_with(b"application/problem+json")
}
