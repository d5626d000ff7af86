use axum::body::Body;
use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason};
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::arguments::Form;
use callbook_wire::receipt::v1::Failure;
use serde_json::json;

use crate::client::{gateway, post, send};
use crate::fake::Fake;

const ID: &str = "inv_01JH0000000000000000000000";

fn answer() -> wire::Answer {
    wire::Answer {
        ok: true,
        ran: true,
        result: "HTTP 200:{\"t\":15.70}".into(),
        output: Bytes::from_static(b"{\"t\":15.70}"),
        media_type: "application/json".into(),
        proof: Some(wire::Proof {
            invocation_id: ID.into(),
            did: "DONE — K".into(),
            ok: true,
            ..wire::Proof::default()
        }),
        ..wire::Answer::default()
    }
}

#[tokio::test]
async fn the_third_printed_step_works_as_printed() {
    let fake = Fake::default();
    fake.say("ExecutorService/Invoke", &wire::InvokeResponse { answer: Some(answer()) });
    let gateway = gateway(&fake).await;
    let headers = [("x-terminal-key", "k"), ("content-type", "application/json")];
    let body = r#"{"key":"ZZ_TEST_TEMPERATURE","body":"37.77|-122.42"}"#;
    let done = send(&gateway, "POST", "/api/dispatch", &headers, body).await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert!(
        done.text
            .starts_with(r#"{"ok":true,"ran":true,"result":"HTTP 200:{\"t\":15.70}","output":{"t":15.70},"proof":{"#),
        "{}",
        done.text
    );
    let proof = done.json()["proof"].clone();
    assert_eq!(proof["public_receipt"], format!("http://book.example:7700/receipt/{ID}"));
    assert_eq!(proof["confirm"], format!("http://book.example:7700/api/dispatch?confirm={ID}"));
    let request: wire::InvokeRequest = fake.last();
    assert_eq!((request.key.as_str(), request.idempotency_key), ("ZZ_TEST_TEMPERATURE", None));
    assert_eq!(request.arguments.unwrap().form, Some(Form::Body("37.77|-122.42".into())));
}

#[tokio::test]
async fn a_row_that_failed_answers_200_with_its_failure() {
    let fake = Fake::default();
    let error = Failure { code: "http:401".into(), upstream_status: Some(401), ..Failure::default() };
    let failed = wire::Answer { ok: false, error: Some(error), ..answer() };
    fake.say("ExecutorService/Invoke", &wire::InvokeResponse { answer: Some(failed) });
    let done = post(&gateway(&fake).await, "/api/dispatch", r#"{"key":"K","args":{"n":1.10}}"#).await;
    assert_eq!(
        (done.status.as_u16(), &done.json()["ran"], &done.json()["error"]["code"]),
        (200, &json!(true), &json!("http:401"))
    );
    let request: wire::InvokeRequest = fake.last();
    assert_eq!(request.arguments.unwrap().form, Some(Form::ArgsJson(Bytes::from_static(b"{\"n\":1.10}"))));
}

#[tokio::test]
async fn a_call_that_did_not_run_answers_with_its_reason() {
    let fake = Fake::default();
    let unknown = Fault::new(Reason::UnknownKey, "no row of this key")
        .with("attempted", "NWO")
        .with("did_you_mean", r#"["NOW"]"#);
    fake.refuse("ExecutorService/Invoke", unknown);
    let gateway = gateway(&fake).await;
    let refused = post(&gateway, "/api/dispatch", r#"{"key":"NWO"}"#).await;
    let body = refused.json();
    assert_eq!((refused.status.as_u16(), &body["error"], &body["ran"]), (404, &json!("unknown_key"), &json!(false)));
    assert_eq!((&body["attempted"], &body["did_you_mean"]), (&json!("NWO"), &json!(["NOW"])));
    fake.refuse(
        "ExecutorService/Invoke",
        Fault::new(Reason::ResultNotStored, "fired").with("fired", "true").with("invocation_id", ID),
    );
    let lost = post(&gateway, "/api/dispatch", r#"{"key":"NOW"}"#).await;
    assert_eq!((lost.status.as_u16(), &lost.json()["ran"], lost.header("retry-after")), (503, &json!(true), "1"));
    fake.refuse("ExecutorService/Invoke", callbook_domain::caller::unauthorized());
    let nobody = post(&gateway, "/api/dispatch", r#"{"key":"NOW"}"#).await;
    assert_eq!((nobody.status.as_u16(), nobody.header("www-authenticate")), (401, "Bearer"));
    assert!(nobody.text.starts_with(r#"{"error":"unauthorized","#));
}

#[tokio::test]
async fn a_shape_says_what_would_be_sent_and_that_nothing_ran() {
    let fake = Fake::default();
    let header = |name: &str, value: &str| wire::Header { name: name.into(), value: value.into() };
    fake.say(
        "ExecutorService/Shape",
        &wire::ShapeResponse {
            method: "GET".into(),
            url: "https://api.example/x".into(),
            headers: vec![header("accept", "a"), header("user-agent", "callbook"), header("accept", "b")],
            secret_name: "KEY".into(),
            verdict: "allowed".into(),
            effect: 1,
            risk: 1,
            ..wire::ShapeResponse::default()
        },
    );
    let shaped = post(&gateway(&fake).await, "/api/dispatch", r#"{"key":"K","body":"a","shape":true}"#).await.json();
    assert_eq!(
        (&shaped["ok"], &shaped["ran"], &shaped["proof"]["did"]),
        (&json!(false), &json!(false), &json!("DRY-RUN — K"))
    );
    assert_eq!(shaped["headers"], json!({"accept": "a, b", "user-agent": "callbook"}));
    assert_eq!((&shaped["secret"], &shaped["effect"]), (&json!({"name": "KEY", "allowed": false}), &json!("read")));
}

#[tokio::test]
async fn repair_and_replay_go_by_their_own_calls_and_keep_the_idempotency_key() {
    let fake = Fake::default();
    fake.say("ExecutorService/Repair", &wire::RepairResponse { answer: Some(answer()) });
    fake.say("ExecutorService/Replay", &wire::ReplayResponse { answer: Some(answer()) });
    let gateway = gateway(&fake).await;
    let repair = format!(r#"{{"key":"K","body":"b","repairs":"{ID}"}}"#);
    let headers = [("content-type", "application/json"), ("idempotency-key", "once")];
    assert_eq!(send(&gateway, "POST", "/api/dispatch", &headers, repair).await.status, 200);
    let request: wire::RepairRequest = fake.last();
    assert_eq!((request.invocation_id.as_str(), request.idempotency_key.as_deref()), (ID, Some("once")));
    assert_eq!(post(&gateway, "/api/dispatch", &format!(r#"{{"replay":"{ID}"}}"#)).await.status, 200);
    assert_eq!(fake.last::<wire::ReplayRequest>().invocation_id, ID);
}

#[tokio::test]
async fn an_answer_without_a_proof_is_not_called_not_run() {
    let fake = Fake::default();
    fake.say("ExecutorService/Invoke", &wire::InvokeResponse { answer: None });
    let answer = post(&gateway(&fake).await, "/api/dispatch", r#"{"key":"K"}"#).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["ran"]), (500, &serde_json::Value::Null));
}

#[tokio::test]
async fn a_get_never_invokes_for_a_key() {
    let fake = Fake::default();
    let answer =
        send(&gateway(&fake).await, "GET", "/api/dispatch?invoke=NOW", &[("x-terminal-key", "k")], Body::empty()).await;
    let body = answer.json();
    assert_eq!((answer.status.as_u16(), &body["error"]), (400, &json!("invalid_request")));
    assert_eq!(body["field"], "share");
    assert!(fake.asked().is_empty());
}
