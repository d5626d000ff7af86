use axum::body::Body;
use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason};
use callbook_wire::receipt::v1 as wire;
use serde_json::json;

use crate::client::{gateway, get, send};
use crate::fake::Fake;

const ID: &str = "inv_01JH0000000000000000000000";

fn confirmed() -> wire::ConfirmResponse {
    wire::ConfirmResponse {
        invocation_id: ID.into(),
        confirmed: true,
        status: 1,
        key: "K".into(),
        mode: 1,
        ..Default::default()
    }
}

#[tokio::test]
async fn the_fourth_printed_step_works_as_printed() {
    let fake = Fake::default();
    fake.say("ReceiptService/Confirm", &confirmed());
    let gateway = gateway(&fake).await;
    let answer = get(&gateway, &format!("/api/dispatch?confirm={ID}")).await;
    assert!(answer.text.starts_with(r#"{"confirmed":true,"status":"PROVEN_MATERIAL_RESULT","#), "{}", answer.text);
    let unknown = get(&gateway, "/api/dispatch?confirm=inv_1").await;
    assert!(unknown.text.starts_with(r#"{"confirmed":false,"error":"unknown_invocation","#), "{}", unknown.text);
    assert_eq!(unknown.status, 404);
}

#[tokio::test]
async fn people_get_a_page_and_programs_what_they_accept() {
    let fake = Fake::default();
    fake.say("ReceiptService/Confirm", &confirmed());
    let gateway = gateway(&fake).await;
    let page = get(&gateway, &format!("/receipt/{ID}")).await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(page.header("content-security-policy").starts_with("default-src 'none'"));
    assert!(page.text.contains("viewport") && page.text.contains(ID) && page.text.contains("Confirmed"));
    let json = send(&gateway, "GET", &format!("/receipt/{ID}"), &[("accept", "application/json")], Body::empty()).await;
    assert_eq!(json.json()["confirmed"], true);
    fake.refuse("ReceiptService/Confirm", Fault::new(Reason::UnknownInvocation, "no invocation of this id"));
    let missing = get(&gateway, &format!("/receipt/{ID}")).await;
    assert_eq!((missing.status.as_u16(), missing.header("content-type")), (404, "text/html; charset=utf-8"));
}

#[tokio::test]
async fn a_receipt_gives_the_bytes_exactly() {
    let fake = Fake::default();
    let receipt = wire::Receipt {
        invocation_id: ID.into(),
        status: 2,
        input: Some(Bytes::from_static(b"{\"n\": 1.10}\n")),
        input_media_type: "application/json".into(),
        output: Some(Bytes::from_static(b"\xff")),
        output_media_type: "image/png".into(),
        nonces: Some(wire::Nonces { input: Bytes::from_static(b"\x01\xab"), ..Default::default() }),
        events: vec![wire::Event {
            kind: "intent".into(),
            body_json: Bytes::from_static(b"{\"v\":1}"),
            ..Default::default()
        }],
        ..Default::default()
    };
    fake.say("ReceiptService/GetReceipt", &wire::GetReceiptResponse { receipt: Some(receipt) });
    let gateway = gateway(&fake).await;
    let body = get(&gateway, &format!("/api/dispatch?receipt={ID}")).await.json();
    assert_eq!(body["input"], json!({"media_type": "application/json", "text": "{\"n\": 1.10}\n"}));
    assert_eq!(body["output"], json!({"media_type": "image/png", "base64": "/w=="}));
    assert_eq!((&body["nonces"]["input"], &body["events"][0]["body"]), (&json!("01ab"), &json!({"v": 1})));
    assert_eq!(get(&gateway, &format!("/api/invocations/{ID}")).await.json(), body);
}

#[tokio::test]
async fn listings_take_times_and_states() {
    let fake = Fake::default();
    fake.say(
        "ReceiptService/ListInvocations",
        &wire::ListInvocationsResponse { next_page_token: "n".into(), ..Default::default() },
    );
    let gateway = gateway(&fake).await;
    let listed = get(&gateway, "/api/invocations?status=UNKNOWN&since=2026-01-01T00:00:00Z&limit=5").await;
    assert_eq!(listed.text, r#"{"invocations":[],"next_cursor":"n"}"#);
    let request: wire::ListInvocationsRequest = fake.last();
    assert_eq!((request.status, request.page_size, request.since.unwrap().seconds), (4, 5, 1_767_225_600));
    for bad in ["status=DONE", "since=today", "limit=0", "parent=inv_1", "hours=3"] {
        let status = get(&gateway, &format!("/api/invocations?{bad}")).await.status.as_u16();
        assert!(matches!(status, 400 | 404), "{bad}: {status}");
    }
}
