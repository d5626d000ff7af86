use std::num::{NonZeroU32, NonZeroUsize};

use axum::body::Body;
use callbook_gateway::{Config, router};
use serde_json::json;

use crate::client::{Answer, gateway, get, post, send};
use crate::fake::Fake;

/// Every refusal has this form, whoever made it.
fn assert_problem(answer: &Answer, status: u16, error: &str) {
    assert_eq!(answer.status, status, "{}", answer.text);
    assert_eq!(answer.header("content-type"), "application/problem+json");
    let body = answer.json();
    assert_eq!((&body["error"], &body["status"], &body["ran"]), (&json!(error), &json!(status), &json!(false)));
    assert!(body["message"].is_string() && body["type"].is_string() && body["title"].is_string(), "{body}");
}

#[tokio::test]
async fn what_is_not_there_is_a_problem() {
    let gateway = gateway(&Fake::default()).await;
    assert_problem(&get(&gateway, "/api/nothing").await, 404, "not found");
    assert_problem(&get(&gateway, "/").await, 404, "not found");
    let wrong = send(&gateway, "PUT", "/api/dispatch", &[], Body::empty()).await;
    assert_problem(&wrong, 405, "invalid_request");
    assert_eq!(wrong.header("allow"), "GET,HEAD,POST");
    assert_problem(&send(&gateway, "OPTIONS", "/api/directory", &[], Body::empty()).await, 405, "invalid_request");
}

#[tokio::test]
async fn a_body_that_cannot_be_read_is_a_problem() {
    let gateway = gateway(&Fake::default()).await;
    for bad in ["", "{", "[]", "{\"key\":1}", "{\"key\":\"A\",\"key\":\"B\"}", "{\"emit\":\"x\"}"] {
        assert_problem(&post(&gateway, "/api/dispatch", bad).await, 400, "invalid_request");
    }
    let json = [("content-type", "application/json")];
    let not_utf8 = send(&gateway, "POST", "/api/dispatch", &json, vec![b'{', 0xff, b'}']).await;
    assert_problem(&not_utf8, 400, "invalid_request");
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_problem(&send(&gateway, "POST", "/api/dispatch", &form, "{\"key\":\"NOW\"}").await, 415, "invalid_request");
    assert_problem(&send(&gateway, "POST", "/api/directory", &[], "{}").await, 415, "invalid_request");
    let large = post(&gateway, "/api/directory", &format!("{{\"content\":\"{}\"}}", "x".repeat(1024 * 1024))).await;
    assert_problem(&large, 413, "request_too_large");
}

#[tokio::test]
async fn addresses_and_headers_are_bounded() {
    let gateway = gateway(&Fake::default()).await;
    let long = format!("/api/dispatch?ask={}", "x".repeat(8 * 1024));
    assert_problem(&get(&gateway, &long).await, 414, "request_too_large");
    let value = "x".repeat(8 * 1024 + 1);
    assert_problem(
        &send(&gateway, "GET", "/api/dispatch", &[("x-a", &value)], Body::empty()).await,
        431,
        "request_too_large",
    );
    let token = "x".repeat(40 * 1024);
    assert_eq!(send(&gateway, "GET", "/api/dispatch", &[("authorization", &token)], Body::empty()).await.status, 200);
    let many: Vec<(&str, &str)> = vec![("x-a", "1"); 64];
    assert_problem(&send(&gateway, "GET", "/api/dispatch", &many, Body::empty()).await, 431, "request_too_large");
}

#[tokio::test]
async fn every_answer_can_be_found_again_and_is_not_kept_where_it_is_private() {
    let gateway = gateway(&Fake::default()).await;
    let answer = send(&gateway, "GET", "/api/dispatch", &[("x-request-id", "mine-1")], Body::empty()).await;
    assert_eq!(answer.header("x-request-id"), "mine-1");
    assert_eq!((answer.header("x-content-type-options"), answer.header("cache-control")), ("nosniff", "no-cache"));
    assert!(!answer.headers.contains_key("access-control-allow-origin"));
    let answer =
        send(&gateway, "GET", "/api/dispatch", &[("x-terminal-key", "k"), ("x-request-id", "a b")], Body::empty())
            .await;
    assert_eq!(answer.header("x-request-id").len(), 36);
    assert_eq!(answer.header("cache-control"), "no-store");
}

#[tokio::test]
async fn people_may_ask_for_indents_and_clients_for_gzip() {
    let gateway = gateway(&Fake::default()).await;
    let pretty = get(&gateway, "/api/dispatch?pretty").await;
    assert!(pretty.text.starts_with("{\n  \"name\": \"callbook\",\n"), "{}", pretty.text);
    assert!(get(&gateway, "/nothing?pretty=1").await.text.starts_with("{\n  \"error\""));
    let request = http::Request::get("/openapi.json").header("accept-encoding", "gzip").body(Body::empty()).unwrap();
    let answer = tower::ServiceExt::oneshot(gateway, request).await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
}

#[tokio::test]
async fn a_caller_that_asks_too_much_is_told_when_to_come_back() {
    let mut config = Config::at("http://127.0.0.1:1".parse().unwrap());
    config.limits.anonymous_per_second = NonZeroU32::new(1);
    let limited = router(config).unwrap();
    assert_eq!(get(&limited, "/api/dispatch").await.status, 200);
    let answer = get(&limited, "/api/dispatch").await;
    assert_problem(&answer, 429, "rate_limited");
    assert_eq!(answer.header("retry-after"), "1");
    assert_eq!(get(&limited, "/healthz").await.status, 200);
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let mut config = Config::at("http://127.0.0.1:1".parse().unwrap());
    config.body_timeout = std::time::Duration::from_millis(20);
    config.in_flight = NonZeroUsize::new(1);
    let gateway = router(config).unwrap();
    let never = Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>());
    let answer = send(&gateway, "POST", "/api/dispatch", &[("content-type", "application/json")], never).await;
    assert_problem(&answer, 408, "invalid_request");
    assert_eq!(get(&gateway, "/api/dispatch").await.status, 200, "the place is free again");
}

#[tokio::test]
async fn the_document_names_every_route_and_every_refusal() {
    let gateway = gateway(&Fake::default()).await;
    let document = get(&gateway, "/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    for path in [
        "/api/dispatch",
        "/api/directory",
        "/api/directory/{key}",
        "/api/directory/{key}/history",
        "/api/directory/{key}/restore",
        "/api/directory/{key}/test",
        "/api/directory:categories",
        "/api/directory:search",
        "/api/directory:list",
        "/api/directory:describe",
        "/api/directory:stamp",
        "/api/directory:import",
        "/api/directory:export",
        "/api/invocations",
        "/api/invocations/stats",
        "/api/invocations/{id}",
        "/api/recommended",
        "/api/principals",
        "/api/principals/{name}",
        "/api/principals/{name}/revoke",
        "/api/tokens",
        "/api/tokens/narrow",
        "/api/tokens/explain",
        "/api/tokens/revoke",
        "/api/tokens/keys/rotate",
        "/.well-known/jwks.json",
        "/receipt/{id}",
        "/healthz",
        "/readyz",
        "/llms.txt",
    ] {
        assert!(paths.contains_key(path), "{path}");
    }
    let refusals = &document["paths"]["/api/dispatch"]["post"]["responses"];
    for status in ["400", "401", "403", "404", "409", "413", "415", "429", "500", "503"] {
        assert_eq!(
            refusals[status]["content"]["application/problem+json"]["schema"]["$ref"],
            "#/components/schemas/Problem"
        );
    }
    let names: Vec<&str> = paths
        .values()
        .flat_map(|path| path.as_object().unwrap().values())
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let different: std::collections::HashSet<_> = names.iter().collect();
    assert_eq!(names.len(), different.len(), "{names:?}");
}

#[tokio::test]
async fn the_short_text_holds_the_four_calls() {
    let text = get(&gateway(&Fake::default()).await, "/llms.txt").await.text;
    assert!(
        text.len() < 1_500
            && ["?ask=", "?key=", "POST /api/dispatch", "?confirm="].iter().all(|part| text.contains(part))
    );
}
