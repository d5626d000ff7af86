//! The gate as a process: where its keys are, who has them, what the operator decides.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use callbook_tests::outside::{ISS, OutsideIssuer};
use callbook_tests::process::Process;
use callbook_tests::world::{World, owned};
use callbook_tests::{book, database};
use callbook_wire::gate::v1::gate_service_client::GateServiceClient;
use callbook_wire::gate::v1::{
    GetKeysRequest, KeyState, MintTokenRequest, MintTokenResponse, RotateKeyRequest, TokenScope,
};
use serde_json::json;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// 32 bytes in base64url, as an operator may give them.
const GIVEN: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";

async fn gate(address: &str) -> GateServiceClient<Channel> {
    GateServiceClient::connect(address.to_owned()).await.unwrap()
}

fn for_team() -> MintTokenRequest {
    let scope = TokenScope { keys: vec!["TEAM_ECHO".into()], ..TokenScope::default() };
    MintTokenRequest { scope: Some(scope), ..MintTokenRequest::default() }
}

async fn mint(gate: &mut GateServiceClient<Channel>, asked: MintTokenRequest) -> Result<MintTokenResponse, Status> {
    gate.mint_token(owned(asked)).await.map(tonic::Response::into_inner)
}

async fn kids(gate: &mut GateServiceClient<Channel>) -> Vec<(String, KeyState)> {
    let keys = gate.get_keys(GetKeysRequest {}).await.unwrap().into_inner().keys;
    keys.into_iter().map(|key| (key.kid.clone(), key.state())).collect()
}

/// The result of a call of the row with this token.
async fn call(process: &Process, token: &str) -> (u16, String) {
    let request =
        process.anyone(reqwest::Method::POST, "/api/dispatch").header("authorization", format!("Cap {token}"));
    let answer = callbook_tests::door::send(request.json(&json!({"key": "TEAM_ECHO", "body": "hello"}))).await;
    (answer.status, answer.error())
}

fn private_keys(data: &Path) -> Vec<std::path::PathBuf> {
    std::fs::read_dir(data.join("issuer")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_stay_through_a_restart_and_tokens_through_a_rotation() {
    let (url, data) = (database::fresh().await, tempfile::tempdir().unwrap());
    let data_dir = data.path().to_str().unwrap();
    let start = || Process::start(&["up"], &[("DATABASE_URL", &url), ("CALLBOOK_DATA_DIR", data_dir)]);
    let process = start();
    process.create(&book::echo("TEAM_ECHO")).await;
    let mut client = gate(&process.grpc).await;
    let before = kids(&mut client).await;
    let first = mint(&mut client, for_team()).await.unwrap().token;
    assert_eq!(call(&process, &first).await, (200, String::new()));
    for file in private_keys(data.path()) {
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600, "{}", file.display());
    }
    process.kill();

    let process = start();
    let mut client = gate(&process.grpc).await;
    assert_eq!(kids(&mut client).await, before);
    let rotated = client.rotate_key(owned(RotateKeyRequest {})).await.unwrap().into_inner().keys;
    assert_eq!(rotated.len(), 3);
    let second = mint(&mut client, for_team()).await.unwrap().token;
    for token in [&first, &second] {
        assert_eq!(call(&process, token).await, (200, String::new()));
    }
    assert_eq!(private_keys(data.path()).len(), 2, "the key that signs no more is not kept");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_operators_key_is_the_gates_alone_and_its_ceiling_holds() {
    let (url, data) = (database::fresh().await, tempfile::tempdir().unwrap());
    let ceiling = ("CALLBOOK_TOKEN_MAX_SECONDS", "120");
    let executor_data = data.path().to_str().unwrap();
    let roles = "resolver,contract,gate,gateway";
    let gated = Process::start(&["serve", roles], &[("DATABASE_URL", &url), ceiling, ("CALLBOOK_ISSUER_KEY", GIVEN)]);
    let executor = [("DATABASE_URL", &*url), ceiling, ("CALLBOOK_DATA_DIR", executor_data)];
    let executor = Process::start(&["serve", "executor"], &executor);
    assert!(!data.path().join("issuer").exists(), "an executor has no private key and makes none");
    let at = executor.grpc.strip_prefix("http://").unwrap();
    let executors = format!("default={at}");
    let service = gated.grpc.strip_prefix("http://").unwrap();
    let front = Process::start(
        &["serve", "gateway"],
        &[
            ("CALLBOOK_EXECUTORS", &executors),
            ("CALLBOOK_RESOLVER", service),
            ("CALLBOOK_CONTRACT", service),
            ("CALLBOOK_GATE", service),
        ],
    );
    front.create(&book::echo("TEAM_ECHO")).await;
    let mut client = gate(&gated.grpc).await;
    let minted = mint(&mut client, for_team()).await.unwrap();
    let (issued, token) = (minted.issued.unwrap(), minted.token);
    let life = issued.expires_at.unwrap().seconds - issued.issued_at.unwrap().seconds;
    assert_eq!(life, 120, "the default is no longer than the operator lets it");
    assert_eq!(call(&front, &token).await, (200, String::new()));
    let longer = MintTokenRequest { ttl_seconds: Some(121), ..for_team() };
    assert_eq!(mint(&mut client, longer).await.unwrap_err().code(), Code::InvalidArgument);
    let given = client.rotate_key(owned(RotateKeyRequest {})).await.unwrap_err();
    assert_eq!(given.code(), Code::InvalidArgument, "the operator changes the key by a setting");
    assert!(![&gated, &front, &executor].iter().any(|process| process.log().contains(GIVEN)));
}

#[tokio::test]
async fn a_jwt_of_a_configured_issuer_calls_and_mints_within_its_scopes() {
    let issuer = OutsideIssuer::start().await;
    let world = World::with().allow(&[issuer.upstream.origin()]).toml(&issuer.toml()).start().await;
    for key in ["TEAM_ECHO", "OTHER_ECHO"] {
        world.create(&book::echo(key)).await;
    }
    let now = world.clock.now().unix_timestamp();
    let claims = json!({"iss": ISS, "aud": "callbook", "sub": "alice", "exp": now + 300, "scope": "book"});
    let jwt = issuer.token(&claims);
    let calls = async |jwt: &str, key: &str| {
        let request = world.anyone(reqwest::Method::POST, "/api/dispatch").bearer_auth(jwt);
        callbook_tests::door::send(request.json(&json!({"key": key, "body": "hello"}))).await
    };
    let answer = calls(&jwt, "TEAM_ECHO").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let receipt = world.get(&format!("/api/invocations/{}", answer.id())).await;
    assert!(receipt.text.contains("principal:corp:alice"), "{}", receipt.text);
    assert_eq!(calls(&jwt, "OTHER_ECHO").await.error(), "forbidden");
    let mut over = claims.clone();
    over["exp"] = (now - 1).into();
    assert_eq!(calls(&issuer.token(&over), "TEAM_ECHO").await.status, 401);
    let mut client = GateServiceClient::new(world.channel().await);
    let asked = callbook_tests::world::keyed(&jwt, for_team());
    let minted = client.mint_token(asked).await.unwrap().into_inner().issued.unwrap();
    assert_eq!(minted.minted_by, "principal:corp:alice");
    let lives = minted.expires_at.unwrap().seconds;
    assert_eq!(lives, now + 300, "what it mints ends with it at the latest");
    assert_eq!(issuer.upstream.count(), 1, "its keys are asked for once");
    world.stop().await;
}

#[tokio::test]
async fn a_call_that_waits_past_the_end_of_its_jwt_is_not_fired() {
    let issuer = OutsideIssuer::start().await;
    let clock = callbook_domain::clock::Clock::held(time::macros::datetime!(2026-08-01 12:00 UTC));
    let world =
        World::with().allow(&[issuer.upstream.origin()]).toml(&issuer.toml()).clock(clock.clone()).start().await;
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    world.create(&book::with(book::echo("TEAM_SECRET"), &json!({"sensitive": true, "input_schema": schema}))).await;
    let now = clock.now().unix_timestamp();
    let jwt = issuer.token(&json!({"iss": ISS, "aud": "callbook", "sub": "alice", "exp": now + 60, "scope": "book"}));
    let call = world.anyone(reqwest::Method::POST, "/api/dispatch").bearer_auth(&jwt);
    let body = json!({"key": "TEAM_SECRET", "body": "a", "wait_ms": 20_000});
    let decide = async {
        let id = loop {
            let listed = world.get("/api/approvals?state=held").await.json();
            if let Some(id) = listed["approvals"][0]["id"].as_str() {
                break id.to_owned();
            }
        };
        clock.advance(std::time::Duration::from_secs(60));
        let approved = world.post(&format!("/api/approvals/{id}/approve"), &json!({})).await;
        assert_eq!(approved.status, 200, "{}", approved.text);
    };
    let (refused, ()) = tokio::join!(callbook_tests::door::send(call.json(&body)), decide);
    assert_eq!((refused.status, &*refused.error()), (401, "expired"), "{}", refused.text);
    world.stop().await;
}
