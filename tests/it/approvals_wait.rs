//! Held calls over time: waiting for the decision, idempotency keys, receipts, the log, and what is erased.

use std::time::Duration;

use callbook_domain::clock::Clock;
use callbook_runtime::grpc::from_status;
use callbook_tests::database;
use callbook_tests::world::{World, keyed, owned, send};
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::arguments::Form;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use reqwest::Method;
use serde_json::json;
use tonic::Code;

use super::approvals::{Shop, approval};

#[tokio::test]
async fn a_caller_that_waits_goes_on_once_its_call_is_approved() {
    let shop = Shop::open().await;
    let wait = json!({"wait_ms": 20_000});
    let waiting = shop.pay_with("7", &wait);
    let deciding = async {
        let id = loop {
            match shop.list(&shop.boss, "?state=held").await.pop() {
                Some(id) => break id,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        assert_eq!(shop.upstream.count(), 0);
        shop.approve(&id).await;
    };
    let (answer, ()) = tokio::join!(waiting, deciding);
    assert_eq!((answer.status, &answer.json()["ok"]), (200, &json!(true)), "{}", answer.text);
    assert_eq!(shop.upstream.count(), 1);

    let wait = json!({"wait_ms": 300});
    let late = shop.pay_with("8", &wait).await;
    assert_eq!((late.status, &late.json()["ran"]), (202, &json!(false)), "{}", late.text);
    let beside = shop.pay_with("8", &json!({"wait_ms": 1, "repairs": answer.id()})).await;
    assert_eq!((beside.status, beside.error()), (400, "invalid_request".to_owned()), "{}", beside.text);
    shop.world.stop().await;
}

#[tokio::test]
async fn a_caller_that_waits_is_told_of_a_refusal() {
    let shop = Shop::open().await;
    let wait = json!({"wait_ms": 20_000});
    let deciding = async {
        let id = shop.held("7").await;
        shop.decide(&shop.boss, &id, "refuse", &json!({"reason": "no"})).await
    };
    let (answer, decided) = tokio::join!(shop.pay_with("7", &wait), deciding);
    assert_eq!((answer.status, answer.error()), (403, "denied:no".to_owned()), "{}", answer.text);
    assert_eq!(decided.status, 200, "{}", decided.text);
    assert_eq!(shop.upstream.count(), 0);
    shop.world.stop().await;
}

#[tokio::test]
async fn an_idempotency_key_waits_with_its_call_fires_once_and_replays_after() {
    let shop = Shop::open().await;
    let key = json!({"idempotency_key": "order-1"});
    let first = shop.pay_with("7", &key).await;
    let again = shop.pay_with("7", &key).await;
    assert_eq!((first.status, again.status, approval(&first)), (202, 202, approval(&again)), "{}", again.text);
    let other = shop.pay_with("8", &key).await;
    assert_eq!((other.status, other.error()), (409, "idempotency_mismatch".to_owned()), "{}", other.text);
    shop.approve(&approval(&first)).await;
    let fired = shop.pay_with("7", &key).await;
    assert_eq!(
        (fired.status, &fired.json()["replayed"], fired.id()),
        (200, &json!(null), first.id()),
        "{}",
        fired.text
    );
    let stored = shop.pay_with("7", &key).await;
    assert_eq!((stored.status, &stored.json()["replayed"], stored.id()), (200, &json!(true), first.id()));
    let other = shop.pay_with("8", &key).await;
    assert_eq!((other.status, other.error()), (409, "idempotency_mismatch".to_owned()), "{}", other.text);
    assert_eq!(shop.upstream.count(), 1);
    shop.world.stop().await;
}

#[tokio::test]
async fn the_log_tells_who_held_and_who_decided() {
    let shop = Shop::open().await;
    let answer = shop.pay("7").await;
    let id = approval(&answer);
    shop.decide(&shop.boss, &id, "refuse", &json!({"reason": "no"})).await;
    let row = shop.world.row("PAY").await;
    let (held, decided) = (shop.events("hold").await, shop.events("approve").await);
    assert_eq!((held.len(), decided.len()), (1, 1));
    for (name, value) in [("inv", json!(answer.id())), ("key", json!("PAY")), ("actor", json!("principal:shop"))] {
        assert_eq!((&held[0][name], &decided[0][name]), (&value, &value), "{name}");
    }
    assert_eq!(held[0]["contract"], row["contract_hash"]);
    assert_eq!((&held[0]["reason"], &held[0]["risk"]), (&json!("sensitive"), &json!("high")));
    assert!(held[0]["in"].as_str().unwrap().starts_with("c1:"), "{}", held[0]);
    assert_eq!(
        (&decided[0]["by"], &decided[0]["decision"], &decided[0]["reason"]),
        (&json!("principal:boss"), &json!("refused"), &json!("no"))
    );
    assert!(!held[0].to_string().contains("\"7\""), "what was sent is no part of the log");
    shop.world.stop().await;
}

#[tokio::test]
async fn a_held_call_has_a_public_confirmation_until_it_is_fired_or_denied() {
    let shop = Shop::open().await;
    let status =
        async |id: &str| shop.world.look(&format!("/api/dispatch?confirm={id}")).await.json()["status"].clone();
    let (fired, refused) = (shop.pay("7").await, shop.pay("8").await);
    assert_eq!((status(&fired.id()).await, status(&refused.id()).await), (json!("HELD"), json!("HELD")));
    shop.approve(&approval(&fired)).await;
    shop.decide(&shop.boss, &approval(&refused), "refuse", &json!({})).await;
    assert_eq!(shop.pay("7").await.status, 200);
    assert_eq!(status(&fired.id()).await, json!("PROVEN_MATERIAL_RESULT"));
    assert_eq!(status(&refused.id()).await, json!("DENIED"));
    shop.world.stop().await;
}

#[tokio::test]
async fn what_was_sent_with_a_held_call_is_erased_with_the_rest() {
    let clock = Clock::held(time::macros::datetime!(2026-08-01 12:00 UTC));
    let days = |set: &mut callbook_runtime::settings::Overrides| set.retention_days = Some("1".into());
    let world = World::with().set(days).clock(clock.clone()).start().await;
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let sensitive = json!({"sensitive": true, "input_schema": schema});
    world.create(&callbook_tests::book::with(callbook_tests::book::echo("TELL"), &sensitive)).await;
    let team = world.principal("team", &json!([{"may": "invoke"}])).await;
    let call = world.bearer(&team, Method::POST, "/api/dispatch").json(&json!({"key": "TELL", "body": "grandmother"}));
    let id = approval(&send(call).await);
    let path = format!("/api/approvals/{id}");
    assert_eq!(world.get(&path).await.json()["input"], json!({"body": "grandmother"}));
    clock.advance(Duration::from_secs(25 * 3_600));
    let mut owner = database::owner(&world.database_url).await;
    let mut kept = 1i64;
    for _ in 0..100 {
        kept = sqlx::query_scalar("select count(*) from approval where input is not null or nonce is not null")
            .fetch_one(&mut owner)
            .await
            .unwrap();
        if kept == 0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(kept, 0);
    let look = world.get(&path).await.json();
    assert_eq!((&look["input"], &look["shape"], &look["state"]), (&json!(null), &json!(null), &json!("expired")));
    world.stop().await;
}

#[tokio::test]
async fn everything_is_there_over_grpc() {
    let shop = Shop::open().await;
    let mut executor = ExecutorServiceClient::new(shop.world.channel().await);
    let arguments = Some(wire::Arguments { form: Some(Form::Body("7".into())) });
    let call = wire::InvokeRequest { key: "PAY".into(), arguments, ..Default::default() };
    let answer = executor.invoke(keyed(&shop.team, call.clone())).await.unwrap().into_inner().answer.unwrap();
    let held = answer.held.unwrap();
    assert!(!answer.ran && held.state() == wire::ApprovalState::Held, "{held:?}");
    assert_eq!(held.invocation_id, answer.proof.unwrap().invocation_id);

    let asked = wire::ListApprovalsRequest { state: wire::ApprovalState::Held.into(), ..Default::default() };
    let listed = executor.list_approvals(keyed(&shop.boss, asked)).await.unwrap().into_inner().approvals;
    assert_eq!(listed, std::slice::from_ref(&held));
    let asked = wire::GetApprovalRequest { id: held.id.clone() };
    let look = executor.get_approval(keyed(&shop.boss, asked)).await.unwrap().into_inner();
    let shape = look.shape.unwrap();
    assert_eq!((shape.method.as_str(), shape.secret_name.as_str()), ("POST", "PAY_KEY"));
    assert_eq!((&look.input_json[..], look.is_current), (&br#"{"body":"7"}"#[..], true));

    let decide = wire::DecideApprovalRequest { id: held.id.clone(), approve: true, reason: "fine".into() };
    let own = executor.decide_approval(keyed(&shop.team, decide.clone())).await.unwrap_err();
    assert_eq!(own.code(), Code::PermissionDenied);
    let decided = executor.decide_approval(keyed(&shop.boss, decide.clone())).await.unwrap().into_inner();
    let decided = decided.approval.unwrap();
    assert_eq!((decided.decided_by.as_str(), decided.decision_reason.as_str()), ("principal:boss", "fine"));
    let twice = executor.decide_approval(owned(decide)).await.unwrap_err();
    assert_eq!(
        (twice.code(), from_status(&twice).error_text()),
        (Code::Aborted, "already_decided:approved".to_owned())
    );
    let fired = executor.invoke(keyed(&shop.team, call.clone())).await.unwrap().into_inner().answer.unwrap();
    assert!(fired.ok && fired.ran && fired.held.is_none(), "{fired:?}");
    assert_eq!(fired.proof.unwrap().invocation_id, held.invocation_id);
    let waiting = executor.invoke(keyed(&shop.team, call)).await.unwrap().into_inner().answer.unwrap();
    assert!(waiting.held.is_some_and(|anew| anew.id != held.id));
    assert_eq!(shop.upstream.count(), 1);
    shop.world.stop().await;
}
