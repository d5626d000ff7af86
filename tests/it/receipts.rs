//! What is left of a call: the public confirmation, the full receipt, and who may see which.

use std::time::Duration;

use callbook_domain::clock::Clock;
use callbook_tests::door::{Answer, send};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use callbook_tests::{book, database};
use data_encoding::{BASE64, HEXLOWER};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::macros::datetime;

/// An id that nobody ever got.
const NOBODYS: &str = "inv_01M8Q84YJ6FJKBYQHMM4PATHEA";

async fn receipt(world: &World, id: &str) -> Value {
    let receipt = world.get(&format!("/api/dispatch?receipt={id}")).await;
    assert_eq!(receipt.status, 200, "{}", receipt.text);
    receipt.json()
}

async fn confirm(world: &World, id: &str) -> Answer {
    world.look(&format!("/api/dispatch?confirm={id}")).await
}

/// The bytes of a part of a receipt.
fn bytes(part: &Value) -> Vec<u8> {
    match (part["text"].as_str(), part["base64"].as_str()) {
        (Some(text), None) => text.as_bytes().to_vec(),
        (None, Some(base64)) => BASE64.decode(base64.as_bytes()).unwrap(),
        _ => panic!("neither text nor base64: {part}"),
    }
}

#[tokio::test]
async fn salted_commitments_are_verified_from_the_full_receipt_and_stand_in_the_log() {
    let upstream = Upstream::start(|seen| match seen.target.as_str() {
        "/binary" => {
            let body = axum::body::Body::from(vec![0u8, 159, 146, 150, 0]);
            http::Response::builder().header("content-type", "image/png").body(body).unwrap()
        }
        _ => answered(200, "{\"n\":1.10,\"s\":\"\\u0000\"}"),
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&book::http("SEND", &format!("POST {}/$1", upstream.origin()), "$1=path", "")).await;
    world.create(&book::echo("ECHO")).await;
    let nul = "{\"key\":\"ECHO\",\"args\":[\"a\\u0000b\"]}";
    let nul = world.owner(Method::POST, "/api/dispatch").header("content-type", "application/json").body(nul);
    for answer in [world.invoke("SEND", "binary").await, world.invoke("SEND", "x").await, send(nul).await] {
        assert_eq!(answer.status, 200, "{}", answer.text);
        let receipt = receipt(&world, &answer.id()).await;
        let confirmed = confirm(&world, &answer.id()).await.json();
        for (part, logged) in [("input", "in"), ("output", "out"), ("request", "req"), ("response", "res")] {
            let commitment = &receipt["commitments"][part];
            assert_eq!(&confirmed["commitments"][part], commitment, "{part}");
            let last = receipt["events"].as_array().unwrap().last().unwrap();
            assert_eq!(&last["body"][logged], commitment, "the log commits to the {part}");
            if receipt[part].is_null() {
                assert!(commitment.is_null() && matches!(part, "request" | "response"), "{part}: {receipt}");
                continue;
            }
            let nonce = HEXLOWER.decode(receipt["nonces"][part].as_str().unwrap().as_bytes()).unwrap();
            let digest = Sha256::new().chain_update(&nonce).chain_update(bytes(&receipt[part])).finalize();
            assert_eq!(commitment, &json!(format!("c1:{}", HEXLOWER.encode(&digest))), "{part} of {receipt}");
        }
        assert_eq!(receipt["events"][0]["body"]["in"], receipt["commitments"]["input"]);
    }
    world.stop().await;
}

#[tokio::test]
async fn a_confirmation_needs_no_credential_and_shows_nothing_private() {
    let upstream = Upstream::start(|_| answered(200, r#"{"secret":"grandmother"}"#)).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&book::http("SEND", &format!("POST {}/v1/$1", upstream.origin()), "$1=path", "")).await;
    let team = world.principal("team-of-seven", &json!([{"may": "invoke"}])).await;
    let call = world.bearer(&team, Method::POST, "/api/dispatch").json(&json!({"key": "SEND", "body": "wolf"}));
    let id = send(call).await.id();
    let confirmed = confirm(&world, &id).await;
    let page = world.look(&format!("/receipt/{id}")).await;
    let as_json = send(world.anyone(Method::GET, &format!("/receipt/{id}")).header("accept", "application/json")).await;
    for (shown, what) in [(&confirmed, "confirmation"), (&page, "page"), (&as_json, "page as JSON")] {
        assert_eq!(shown.status, 200, "{what}: {}", shown.text);
        let port = upstream.at.port().to_string();
        for private in
            ["wolf", "grandmother", "team-of-seven", "principal:", "127.0.0.1:".trim_end_matches(':'), "/v1/"]
        {
            let shown = shown.text.replace(&world.http, "");
            assert!(!shown.contains(private) && !shown.contains(&port), "{what} shows {private}: {shown}");
        }
    }
    let body = confirmed.json();
    let names: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
    let public = [
        "confirmed",
        "status",
        "invocation_id",
        "key",
        "contract_hash",
        "started_at",
        "ended_at",
        "commitments",
        "repairs",
        "replay_of",
        "mode",
    ];
    assert!(names.iter().all(|name| public.contains(name)), "{names:?}");
    assert_eq!((&body["status"], &body["key"]), (&json!("PROVEN_MATERIAL_RESULT"), &json!("SEND")));
    let nobody = world.look(&format!("/api/dispatch?receipt={id}")).await;
    assert_eq!((nobody.status, nobody.error().as_str()), (401, "unauthorized"));
    world.stop().await;
}

#[tokio::test]
async fn an_unknown_id_is_not_confirmed() {
    let world = World::start().await;
    for id in [NOBODYS, "inv_", "nonsense", "inv_ZZZZZZZZZZZZZZZZZZZZZZZZZZ", "%00", "inv_'%3B--"] {
        let unknown = confirm(&world, id).await;
        assert_eq!((unknown.status, &unknown.json()["confirmed"]), (404, &json!(false)), "{id}: {}", unknown.text);
        let full = world.get(&format!("/api/dispatch?receipt={id}")).await;
        assert_eq!((full.status, full.error().as_str()), (404, "unknown_invocation"), "{id}: {}", full.text);
        assert_eq!(world.look(&format!("/receipt/{id}")).await.status, 404, "{id}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_call_that_runs_is_pending_until_its_result_is_there() {
    let upstream = Upstream::slow(Duration::from_millis(600), |_| answered(200, r#"{"yes":true}"#)).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&book::http("SEND", &format!("POST {}/$1", upstream.origin()), "$1=path", "")).await;
    let body = json!({"key": "SEND", "body": "a", "idempotency_key": "once"});
    let calling = world.post("/api/dispatch", &body);
    let looking = async {
        while upstream.count() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let id = world.post("/api/dispatch", &body).await.id();
        let confirmed = confirm(&world, &id).await.json();
        assert_eq!((&confirmed["status"], &confirmed["ended_at"]), (&json!("PENDING"), &Value::Null), "{confirmed}");
        let receipt = receipt(&world, &id).await;
        assert_eq!((&receipt["input"]["text"], &receipt["output"]), (&json!(r#"{"body":"a"}"#), &Value::Null));
        let pending = world.get("/api/invocations?status=PENDING").await.json();
        assert_eq!(pending["invocations"][0]["invocation_id"], json!(id), "{pending}");
        id
    };
    let (answer, id) = tokio::join!(calling, looking);
    assert_eq!((answer.id(), &answer.json()["ok"]), (id.clone(), &json!(true)), "{}", answer.text);
    assert_eq!(confirm(&world, &id).await.json()["status"], "PROVEN_MATERIAL_RESULT");
    world.stop().await;
}

#[tokio::test]
async fn a_receipt_outlives_its_row_and_says_what_ran_then() {
    let upstream = Upstream::start(|_| answered(204, "")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&book::http("SEND", &format!("POST {}/$1", upstream.origin()), "$1=path", "")).await;
    let id = world.invoke("SEND", "a").await.id();
    let before = receipt(&world, &id).await;
    assert_eq!((&before["material"], &before["upstream_status"]), (&json!(true), &json!(204)), "204 of a write counts");
    world.delete("SEND").await;
    world.create(&book::echo("SEND")).await;
    let after = receipt(&world, &id).await;
    assert_eq!(before, after);
    assert_ne!(after["contract_hash"], world.get("/api/dispatch?key=SEND").await.json()["contract_hash"]);
    assert_eq!(confirm(&world, &id).await.json()["confirmed"], true);
    world.stop().await;
}

#[tokio::test]
async fn retention_erases_what_was_said_and_the_log_and_the_confirmation_stay() {
    let clock = Clock::held(datetime!(2026-07-26 04:36 UTC));
    let two_days = |overrides: &mut callbook_runtime::settings::Overrides| overrides.retention_days = Some("2".into());
    let world = World::with().clock(clock.clone()).set(two_days).start().await;
    world.create(&book::echo("ECHO")).await;
    let old = world.invoke("ECHO", "grandmother").await.id();
    let before = (receipt(&world, &old).await, confirm(&world, &old).await.json());
    clock.advance(Duration::from_secs(36 * 3_600));
    let young = world.invoke("ECHO", "wolf").await.id();
    clock.advance(Duration::from_secs(13 * 3_600));
    let mut database = database::owner(&world.database_url).await;
    let mut left = vec![old.clone()];
    for _ in 0..100 {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let found = "select convert_from(bytes, 'utf8') from payload where part = 'input'";
        left = sqlx::query_scalar(found).fetch_all(&mut database).await.unwrap();
        if left.len() == 1 {
            break;
        }
    }
    assert_eq!(left, [r#"{"body":"wolf"}"#], "what is older than two days is gone within two heartbeats");
    let after = (receipt(&world, &old).await, confirm(&world, &old).await.json());
    assert_eq!((&after.0["erased"], &before.0["erased"]), (&json!(true), &json!(false)));
    for part in ["input", "output", "request", "response"] {
        assert!(after.0[part].is_null() && after.0["nonces"][part].is_null(), "{part}: {}", after.0);
    }
    for stays in ["commitments", "events", "status", "contract_hash", "started_at", "actor", "fingerprints"] {
        assert_eq!(after.0[stays], before.0[stays], "{stays}");
    }
    assert_eq!(after.1, before.1, "the confirmation is the same");
    assert_eq!(receipt(&world, &young).await["erased"], false);
    let replay = world.post("/api/dispatch", &json!({"replay": old})).await;
    assert_eq!((replay.status, replay.error().as_str()), (409, "erased"), "{}", replay.text);
    world.stop().await;
}

#[tokio::test]
async fn the_log_takes_no_change_from_the_services_role_or_its_owner() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    world.invoke("ECHO", "a").await;
    let mut database = database::owner(&world.database_url).await;
    for role in ["callbook_app", "callbook_owner"] {
        sqlx::query(sqlx::AssertSqlSafe(format!("set role {role}"))).execute(&mut database).await.unwrap();
        for change in ["update event set body = '{}'", "delete from event", "truncate event"] {
            let refused = sqlx::query(change).execute(&mut database).await.unwrap_err();
            let code = refused.as_database_error().and_then(|error| error.code()).unwrap_or_default().into_owned();
            assert_eq!(code, "42501", "{role}: {change}: {refused}");
        }
    }
    world.stop().await;
}
