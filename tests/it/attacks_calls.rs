//! Attacks by who holds a good token: between two checks, through other rows, by listening to refusals, and by load.

use std::time::{Duration, Instant};

use callbook_tests::book::{echo, flow, http, with};
use callbook_tests::caller::{Line, with_token};
use callbook_tests::database;
use callbook_tests::issuer::{Holder, Issuer};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use callbook_wire::directory::v1::GetRowRequest;
use callbook_wire::directory::v1::directory_service_client::DirectoryServiceClient;
use callbook_wire::resolver::v1::AskRequest;
use callbook_wire::resolver::v1::resolver_service_client::ResolverServiceClient;
use futures::StreamExt as _;
use futures::future::join_all;
use futures::stream;
use serde_json::json;

#[tokio::test]
async fn pin_check_then_row_edit() {
    let world = World::start().await;
    world.create(&echo("ROW")).await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let pinned = world.row("ROW").await["contract_hash"].as_str().unwrap().to_owned();
    let mut claims = issuer.claims(&[]);
    claims["cap"]["keys"] = json!({"ROW": pinned});
    let token = issuer.root(&claims).await;
    assert!(line.call(&token, "ROW", "a").await.unwrap().ok);
    // the edit waits for the lock, the call passes its checks against the old row and waits behind the edit
    let pool = database::services(&world.database_url);
    let mut writer = pool.begin().await.unwrap();
    callbook_store::lock::exclusive(&mut writer).await.unwrap();
    let pause = || tokio::time::sleep(Duration::from_millis(300));
    let edit = json!({"timeout_ms": 1_234});
    let (_, refused, ()) = tokio::join!(
        world.change("ROW", &edit),
        async {
            pause().await;
            line.call(&token, "ROW", "a").await.unwrap_err()
        },
        async {
            pause().await;
            pause().await;
            writer.commit().await.unwrap();
        }
    );
    let now = world.row("ROW").await["contract_hash"].as_str().unwrap().to_owned();
    assert_eq!(refused, format!("contract_changed:{pinned}!={now}"));
    world.stop().await;
}

#[tokio::test]
async fn confused_deputy_through_a_flow() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let write = http("STEP_WRITE", &format!("POST {}/write/$1", upstream.origin()), "$1=what", "");
    let read = http("STEP_READ", &format!("GET {}/read/$1", upstream.origin()), "$1=what", "");
    let schema = json!({"type": "object", "properties": {"what": {"type": "string"}}});
    world.create(&with(write.clone(), &json!({"key": "STEP_RISKY", "sensitive": true, "input_schema": schema}))).await;
    for row in [&write, &read] {
        world.create(row).await;
    }
    for (key, step) in [("FLOW_WRITE", "STEP_WRITE"), ("FLOW_READ", "STEP_READ"), ("FLOW_RISKY", "STEP_RISKY")] {
        world.create(&flow(key, &format!("{step}: $1"))).await;
    }
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let mut claims = issuer.claims(&[]);
    claims["cap"] = json!({"prefixes": ["FLOW_"], "risk": "low", "effect": "read"});
    let token = issuer.root(&claims).await;
    assert_eq!(line.call(&token, "FLOW_WRITE", "a").await.unwrap_err(), "effect_ceiling:read<row:write");
    assert_eq!(line.call(&token, "FLOW_RISKY", "a").await.unwrap_err(), "risk_ceiling:low<row:high");
    assert_eq!(
        line.call(&token, "STEP_READ", "a").await.unwrap_err(),
        "scope_mismatch",
        "the step alone is not covered"
    );
    assert_eq!(upstream.count(), 0);
    let answer = line.call(&token, "FLOW_READ", "a").await.unwrap();
    assert!(answer.ok, "a written step runs by the flow's authority: {answer:?}");
    assert_eq!(upstream.count(), 1);

    let mut claims = issuer.claims(&["FLOW_READ"]);
    claims["cap"]["max_bytes"] = 3.into();
    let small = issuer.root(&claims).await;
    assert_eq!(line.call(&small, "FLOW_READ", "four").await.unwrap_err(), "payload_ceiling:4>3");
    let mut claims = issuer.claims(&["FLOW_READ"]);
    claims["cap"]["uses"] = 2.into();
    let counted = issuer.root(&claims).await;
    assert!(line.call(&counted, "FLOW_READ", "a").await.unwrap().ok, "the flow and its step");
    assert_eq!(line.call(&counted, "FLOW_READ", "a").await.unwrap_err(), "token_exhausted", "steps count too");
    world.stop().await;
}

#[tokio::test]
async fn denial_oracle() {
    let world = World::start().await;
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    for key in ["OPEN", "HIDDEN_ROW"] {
        world.create(&echo(key)).await;
    }
    world.create(&with(echo("HIDDEN_RISK"), &json!({"sensitive": true, "input_schema": schema}))).await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let token = issuer.bearer(&["OPEN"]).await;
    let keys = ["HIDDEN_ROW", "HIDDEN_RISK", "HIDDEN_NOT"];
    for body in ["a", "1|2|3", ""] {
        for key in keys {
            assert_eq!(line.call(&token, key, body).await.unwrap_err(), "scope_mismatch", "{key} {body:?}");
        }
    }
    let mut book = DirectoryServiceClient::new(world.channel().await);
    let mut told = Vec::new();
    for key in keys {
        let request = with_token(&token, None, GetRowRequest { key: key.to_owned() });
        let refused = book.get_row(request).await.unwrap_err();
        let details = String::from_utf8_lossy(refused.details()).replace(key, "KEY");
        told.push((refused.code(), refused.message().replace(key, "KEY"), details));
    }
    assert!(told.windows(2).all(|pair| pair[0] == pair[1]), "{told:?}");
    let mut asks = ResolverServiceClient::new(world.channel().await);
    let question = AskRequest { question: "give back what came".into(), ..AskRequest::default() };
    let answer = asks.ask(with_token(&token, None, question)).await.unwrap().into_inner();
    let text = format!("{answer:?}");
    assert!(text.contains("OPEN") && !text.contains("HIDDEN"), "{text}");
    let near = line.call(&issuer.bearer(&["HIDDEN_NOT"]).await, "HIDDEN_NOT", "a").await;
    assert_eq!(near.unwrap_err(), "unknown_key");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn verification_flood() {
    let world = World::start().await;
    world.create(&echo("ROW")).await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let token = issuer.bearer(&["ROW"]).await;
    assert!(line.call(&token, "ROW", "a").await.unwrap().ok);
    let forger = Holder::new(&world.clock);
    let claims = issuer.claims(&["ROW"]);
    let header = json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": issuer.kid});
    let flood = {
        let lines = join_all((0..4).map(|_| Line::to(&world))).await;
        let tokens: Vec<String> = (0..4_000)
            .map(|n| {
                let mut claims = claims.clone();
                claims["sub"] = format!("forged {n}").into();
                forger.sign(&header, &claims.to_string())
            })
            .collect();
        tokio::spawn(async move {
            let tries = tokens.into_iter().enumerate().map(|(n, token)| {
                let line = lines[n % 4].clone();
                async move { line.call(&token, "ROW", "a").await.unwrap_err() }
            });
            stream::iter(tries).buffer_unordered(512).collect::<Vec<String>>().await
        })
    };
    let mut slowest = Duration::ZERO;
    let mut calls = 0;
    while !flood.is_finished() {
        let began = Instant::now();
        assert!(line.call(&token, "ROW", "a").await.unwrap().ok, "a token that is known is served");
        slowest = slowest.max(began.elapsed());
        calls += 1;
    }
    let refused = flood.await.unwrap();
    assert!(refused.iter().all(|reason| matches!(reason.as_str(), "bad_signature" | "overloaded")), "{:?}", refused[0]);
    assert!(calls > 3 && slowest < Duration::from_secs(5), "{calls} calls, the slowest {slowest:?}");
    world.stop().await;
}
