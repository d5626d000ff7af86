//! Asking a router without a listener.

use axum::Router;
use axum::body::Body;
use callbook_gateway::{Config, router};
use http::{HeaderMap, Request, StatusCode};
use serde_json::Value;
use tower::ServiceExt;

use crate::fake::Fake;

/// An answer, read to its end.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

/// A gateway in front of one fake.
pub async fn gateway(fake: &Fake) -> Router {
    router(Config::at(fake.start().await)).unwrap()
}

/// Sends a request with headers of the form `name: value`.
pub async fn send(
    router: &Router,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Body>,
) -> Answer {
    let mut request = Request::builder().method(method).uri(path).header("host", "book.example:7700");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let response = router.clone().oneshot(request.body(body.into()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    Answer { status: parts.status, headers: parts.headers, text: String::from_utf8(bytes.into()).unwrap() }
}

pub async fn get(router: &Router, path: &str) -> Answer {
    send(router, "GET", path, &[], Body::empty()).await
}

pub async fn post(router: &Router, path: &str, body: &str) -> Answer {
    send(router, "POST", path, &[("content-type", "application/json")], body.to_owned()).await
}
