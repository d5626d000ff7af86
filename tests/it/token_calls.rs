//! What a token's holder may call, in the order in which it is asked, and how often.

use std::time::Duration;

use callbook_domain::clock::Clock;
use callbook_tests::book::{echo, http, with};
use callbook_tests::caller::{Line, request};
use callbook_tests::database;
use callbook_tests::issuer::{Aim, Holder, Issuer, payload};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use callbook_wire::executor::v1::{InvokeRequest, arguments::Form};
use data_encoding::HEXLOWER;
use futures::future::join_all;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;

async fn stage() -> (World, Issuer, Line) {
    let world = World::start().await;
    for key in ["ROW", "OTHER"] {
        world.create(&echo(key)).await;
    }
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    (world, issuer, line)
}

fn digest(text: &str) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(text)))
}

/// How often each counter of the deployment was used, highest first.
async fn used(world: &World) -> Vec<i64> {
    let mut owner = database::owner(&world.database_url).await;
    sqlx::query_scalar("select used from token_use order by used desc").fetch_all(&mut owner).await.unwrap()
}

#[tokio::test]
async fn the_scope_is_asked_before_whether_there_is_such_a_row() {
    let (world, issuer, line) = stage().await;
    let token = issuer.bearer(&["ROW", "GONE"]).await;
    let answer = line.call(&token, "ROW", "a").await.unwrap();
    assert!(answer.ok && answer.ran && answer.held.is_none(), "{answer:?}");
    assert_eq!(&answer.output[..], b"a");
    for outside in ["OTHER", "NO_SUCH_ROW", "row", "not a key", ""] {
        assert_eq!(line.call(&token, outside, "a").await.unwrap_err(), "scope_mismatch", "{outside:?}");
    }
    assert_eq!(line.call(&token, "GONE", "a").await.unwrap_err(), "unknown_key");
    world.change("ROW", &json!({"enabled": false})).await;
    assert_eq!(line.call(&token, "ROW", "a").await.unwrap_err(), "unknown_key");

    let mut claims = issuer.claims(&[]);
    claims["cap"] = json!({"prefixes": ["OT"], "risk": "low", "effect": "read"});
    let token = issuer.root(&claims).await;
    assert!(line.call(&token, "OTHER", "a").await.unwrap().ok);
    assert_eq!(line.call(&token, "ROW", "a").await.unwrap_err(), "scope_mismatch");
    world.stop().await;
}

#[tokio::test]
async fn ceilings_of_risk_effect_size_and_arguments_hold() {
    let (world, issuer, line) = stage().await;
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    world.create(&with(echo("RISKY"), &json!({"sensitive": true, "input_schema": schema}))).await;
    world.create(&http("WRITE", &format!("POST {}/x", upstream.origin()), "none", "")).await;
    let token = issuer.bearer(&["RISKY", "WRITE"]).await;
    assert_eq!(line.call(&token, "RISKY", "a").await.unwrap_err(), "risk_ceiling:low<row:high");
    assert_eq!(line.call(&token, "WRITE", "").await.unwrap_err(), "effect_ceiling:read<row:write");
    assert_eq!(
        line.call(&token, "WRITE", "1|2|3").await.unwrap_err(),
        "effect_ceiling:read<row:write",
        "before arguments"
    );

    let mut claims = issuer.claims(&["ROW"]);
    claims["cap"]["max_bytes"] = 4.into();
    let small = issuer.root(&claims).await;
    assert!(line.call(&small, "ROW", "four").await.unwrap().ok);
    assert_eq!(line.call(&small, "ROW", "fives").await.unwrap_err(), "payload_ceiling:5>4");

    let mut claims = issuer.claims(&["ROW"]);
    claims["cap"]["body"] = digest(r#"["a"]"#).into();
    let fixed = issuer.root(&claims).await;
    let args = |text: &str| {
        let mut request = request("ROW", "");
        request.arguments.as_mut().unwrap().form = Some(Form::ArgsJson(text.as_bytes().to_vec().into()));
        request
    };
    assert!(line.send(&fixed, None, args(r#"[ "a" ]"#)).await.unwrap().ok, "other white space is the same call");
    for other in [args(r#"["b"]"#), request("ROW", "a"), request("ROW", "")] {
        assert_eq!(line.send(&fixed, None, other).await.unwrap_err(), "body_not_allowed:fixed_body_only");
    }
    let large = args("[9007199254740993]");
    assert_eq!(line.send(&fixed, None, large.clone()).await.unwrap_err(), "args_not_canonical");
    assert!(
        line.send(&issuer.bearer(&["ROW"]).await, None, large).await.unwrap().ok,
        "nobody hashes what is not fixed"
    );
    assert_eq!(upstream.count(), 0);
    world.stop().await;
}

#[tokio::test]
async fn a_pinned_token_ends_with_the_row_that_it_was_pinned_to_on_either_replica() {
    let (world, issuer, line) = stage().await;
    let second = World::with().database(&world.database_url).start().await;
    let lines = [line, Line::to(&second).await];
    for round in 0..10 {
        let pinned = world.row("ROW").await["contract_hash"].as_str().unwrap().to_owned();
        let mut claims = issuer.claims(&[]);
        claims["cap"] = json!({"keys": {"ROW": pinned}, "prefixes": ["RO"], "risk": "low", "effect": "read"});
        let token = issuer.root(&claims).await;
        for line in &lines {
            assert!(line.call(&token, "ROW", "a").await.unwrap().ok);
        }
        world.change("ROW", &json!({"timeout_ms": 1_000 + round})).await;
        let now = world.row("ROW").await["contract_hash"].as_str().unwrap().to_owned();
        for line in &lines {
            let refused = line.call(&token, "ROW", "a").await.unwrap_err();
            assert_eq!(refused, format!("contract_changed:{pinned}!={now}"));
        }
    }
    world.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn a_proof_is_the_idempotency_key_and_fires_once() {
    let (world, issuer, line) = stage().await;
    let holder = Holder::new(&world.clock);
    let token = issuer.root(&issuer.claims_of(&holder, &["ROW"])).await;
    let proof = holder.proof(&Aim { token: &token, key: "ROW", sent: r#""a""# });
    let first = line.prove(&token, &proof, "ROW", "a").await.unwrap();
    let again = line.prove(&token, &proof, "ROW", "a").await.unwrap();
    assert!(first.ok && !first.replayed && again.ok && again.replayed);
    assert_eq!(first.proof.unwrap().invocation_id, again.proof.unwrap().invocation_id);

    let fresh = holder.proof_claims(&Aim { token: &token, key: "ROW", sent: r#""a""# });
    let (fresh, id) = (holder.sign_proof(&fresh), fresh["jti"].as_str().unwrap().to_owned());
    let with_key = |key: &str| InvokeRequest { idempotency_key: Some(key.to_owned()), ..request("ROW", "a") };
    let refused = line.send(&token, Some(&fresh), with_key("another")).await.unwrap_err();
    assert_eq!(refused, "idempotency_mismatch");
    assert!(line.send(&token, Some(&fresh), with_key(&id)).await.unwrap().ok, "the same beside it is no other");
    world.stop().await;
}

#[tokio::test]
async fn a_call_counts_under_every_link_and_a_repeat_does_not() {
    let (world, issuer, line) = stage().await;
    let (holder, next) = (Holder::new(&world.clock), Holder::new(&world.clock));
    let mut claims = issuer.claims_of(&holder, &["ROW"]);
    claims["cap"]["uses"] = 3.into();
    let root = issuer.root(&claims).await;
    let narrow = holder.derive(&root, &next, |claims| claims["cap"]["uses"] = 1.into());
    let sibling = holder.derive(&root, &next, |claims| claims["cap"]["uses"] = 2.into());
    let proof = |token: &str, who: &Holder| who.proof(&Aim { token, key: "ROW", sent: r#""a""# });
    let kept = proof(&narrow, &next);
    assert!(line.prove(&narrow, &kept, "ROW", "a").await.unwrap().ok);
    assert!(line.prove(&narrow, &kept, "ROW", "a").await.unwrap().replayed, "a repeat consumes nothing");
    assert_eq!(used(&world).await, [1, 1]);
    assert_eq!(line.prove(&narrow, &proof(&narrow, &next), "ROW", "a").await.unwrap_err(), "token_exhausted");
    assert_eq!(line.prove(&sibling, &proof(&sibling, &next), "ROW", "1|2|3").await.unwrap_err(), "pop_invalid");
    assert!(line.prove(&sibling, &proof(&sibling, &next), "ROW", "a").await.unwrap().ok);
    assert!(line.prove(&root, &proof(&root, &holder), "ROW", "a").await.unwrap().ok);
    for (token, who) in [(&root, &holder), (&sibling, &next)] {
        assert_eq!(line.prove(token, &proof(token, who), "ROW", "a").await.unwrap_err(), "token_exhausted");
    }
    assert_eq!(used(&world).await, [3, 1, 1], "refused calls count nowhere");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn use_count_race() {
    let upstream = Upstream::slow(Duration::from_millis(20), |_| answered(200, "{}")).await;
    let first = World::with().allow(&[upstream.origin()]).start().await;
    let second = World::with().allow(&[upstream.origin()]).database(&first.database_url).start().await;
    first.create(&http("PAY", &format!("POST {}/pay/$1", upstream.origin()), "$1=amount", "")).await;
    let issuer = Issuer::of(&first).await;
    let lines = [Line::to(&first).await, Line::to(&second).await];
    for (round, uses) in [1, 1, 1, 7].into_iter().enumerate() {
        let before = upstream.count();
        let mut claims = issuer.claims(&["PAY"]);
        claims["cap"] = json!({"keys": {"PAY": null}, "risk": "low", "effect": "write", "uses": uses});
        let token = issuer.root(&claims).await;
        let tries = join_all((0..100).map(|n| {
            let (line, token) = (lines[n % 2].clone(), token.clone());
            async move { line.call(&token, "PAY", &n.to_string()).await }
        }))
        .await;
        let (fired, refused): (Vec<_>, Vec<_>) = tries.into_iter().partition(Result::is_ok);
        assert_eq!((fired.len(), upstream.count() - before), (uses, uses), "round {round}");
        for refused in refused {
            assert_eq!(refused.unwrap_err(), "token_exhausted");
        }
    }
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn the_end_of_a_token_is_asked_at_the_commit_point() {
    let start = OffsetDateTime::from_unix_timestamp(1_790_000_000).unwrap();
    let clock = Clock::held(start);
    let world = World::with().clock(clock.clone()).start().await;
    world.create(&echo("ROW")).await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let token = issuer.bearer(&["ROW"]).await;
    // whoever holds the lock alone keeps the call between its checks and its commit
    let pool = database::services(&world.database_url);
    let mut writer = pool.begin().await.unwrap();
    callbook_store::lock::exclusive(&mut writer).await.unwrap();
    let call = tokio::spawn(async move { line.call(&token, "ROW", "a").await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    clock.advance(Duration::from_secs(900));
    writer.commit().await.unwrap();
    assert_eq!(call.await.unwrap().unwrap_err(), "expired");
    world.stop().await;
}

#[tokio::test]
async fn in_read_mode_a_token_is_asked_for_its_end_and_counted_calls_are_durable() {
    let on = |overrides: &mut callbook_runtime::settings::Overrides| overrides.read_mode = Some("on".into());
    let world = World::with().set(on).start().await;
    world.create(&echo("ROW")).await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let plain = issuer.bearer(&["ROW"]).await;
    let mut claims = issuer.claims(&["ROW"]);
    claims["cap"]["uses"] = 1.into();
    let counted = issuer.root(&claims).await;
    let read = callbook_wire::receipt::v1::CommitMode::Read;
    assert_eq!(line.call(&plain, "ROW", "a").await.unwrap().mode(), read);
    assert_ne!(line.call(&counted, "ROW", "a").await.unwrap().mode(), read);
    assert_eq!(line.call(&counted, "ROW", "a").await.unwrap_err(), "token_exhausted");
    let name = format!("sub:{}", payload(&plain)["sub"].as_str().unwrap());
    issuer.revoke(&name).await;
    assert_eq!(line.call(&plain, "ROW", "a").await.unwrap_err(), format!("revoked:{name}"));
    world.stop().await;
}

#[tokio::test]
async fn every_denial_of_a_known_holder_is_an_event_without_the_token() {
    let (world, issuer, line) = stage().await;
    let token = issuer.bearer(&["ROW"]).await;
    for key in ["OTHER", "NO_SUCH_ROW", &token] {
        assert_eq!(line.call(&token, key, "a").await.unwrap_err(), "scope_mismatch");
    }
    assert_eq!(line.call(&token, "ROW", "1|2|3").await.unwrap_err(), "extra_arguments:expected 1, got 3");
    let actor = format!("cap:{}", payload(&token)["jti"].as_str().unwrap());
    let mut owner = database::owner(&world.database_url).await;
    let mut found: Vec<(String, String)> = Vec::new();
    for _ in 0..100 {
        let events = "select key, body from event where kind = 'denied' and actor = $1 order by id";
        found = sqlx::query_as(events).bind(&actor).fetch_all(&mut owner).await.unwrap();
        if found.len() == 4 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let bodies: Vec<(String, Value)> =
        found.into_iter().map(|(key, body)| (key, serde_json::from_str(&body).unwrap())).collect();
    let mut reasons: Vec<(&str, &str)> =
        bodies.iter().map(|(key, body)| (key.as_str(), body["reason"].as_str().unwrap())).collect();
    reasons.sort_unstable();
    let scope = "scope_mismatch";
    assert_eq!(reasons, [("", scope), ("NO_SUCH_ROW", scope), ("OTHER", scope), ("ROW", "extra_arguments")]);
    for (_, body) in &bodies {
        assert_eq!((&body["actor"], &body["kind"]), (&json!(actor), &json!("denied")));
        assert_eq!(body["lineage"], json!([payload(&token)["jti"]]));
    }
    // a flood of refusals is cut off, and the log does not grow with it
    join_all((0..200).map(|_| line.call(&token, "OTHER", "a"))).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let count: i64 = sqlx::query_scalar("select count(*) from event where kind = 'denied' and actor = $1")
        .bind(&actor)
        .fetch_one(&mut owner)
        .await
        .unwrap();
    assert!((5..150).contains(&count), "{count}");
    world.stop().await;
}
