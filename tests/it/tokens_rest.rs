//! Tokens through the front door: minted, explained, narrowed, spent and taken back, over HTTP and over gRPC.

use callbook_runtime::grpc::from_status;
use callbook_tests::book::{self, with};
use callbook_tests::caller::{request as call, with_token};
use callbook_tests::door::send;
use callbook_tests::issuer::Holder;
use callbook_tests::token::{claims, jti, proof, proof_for_receipt};
use callbook_tests::upstream::Upstream;
use callbook_tests::world::World;
use callbook_wire::contract::v1::GetContractRequest;
use callbook_wire::contract::v1::contract_service_client::ContractServiceClient;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::receipt::v1::GetReceiptRequest;
use callbook_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use callbook_wire::resolver::v1::AskRequest;
use callbook_wire::resolver::v1::resolver_service_client::ResolverServiceClient;
use data_encoding::BASE64URL_NOPAD;
use reqwest::Method;
use serde_json::{Value, json};
use tonic::Code;

fn life(claims: &Value) -> i64 {
    claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap()
}

/// The issuer's key that signed a root.
fn kid(token: &str) -> String {
    let header = BASE64URL_NOPAD.decode(token.split('.').next().unwrap().as_bytes()).unwrap();
    serde_json::from_slice::<Value>(&header).unwrap()["kid"].as_str().unwrap().to_owned()
}

fn sensitive(key: &str) -> Value {
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    with(book::echo(key), &json!({"sensitive": true, "input_schema": schema}))
}

#[tokio::test]
async fn a_token_says_what_was_asked_and_is_shown_once() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let alice = Holder::new(&world.clock);
    let wanted = json!({"keys": ["ECHO"], "prefixes": ["TEAM_"], "pin": true, "ttl": 120, "uses": 5, "risk": "high",
        "effect": "write", "max_bytes": 64, "body": "a", "owner_gate": true, "holder": alice.jwk(), "purpose": "a test",
        "subject": "agent:alice", "max_depth": 2});
    let minted = world.post("/api/tokens", &wanted).await;
    assert_eq!(
        (minted.status, minted.headers["cache-control"].to_str().unwrap()),
        (201, "no-store"),
        "{}",
        minted.text
    );
    let minted = minted.json();
    let names: Vec<&String> = minted.as_object().unwrap().keys().collect();
    assert_eq!(names, ["token", "jti", "expires_at", "claims"]);
    let token = minted["token"].as_str().unwrap();
    let said = claims(token);
    assert_eq!((&said, &said["jti"]), (&minted["claims"], &minted["jti"]));
    let contract = world.get("/api/dispatch?key=ECHO").await.json()["contract_hash"].clone();
    assert_eq!(minted["claims"]["cap"]["keys"]["ECHO"], contract);
    assert_eq!((life(&said), &said["sub"], &said["cnf"]["jwk"]), (120, &json!("agent:alice"), &alice.jwk()));
    let cap = &said["cap"];
    for (name, value) in [
        ("uses", json!(5)),
        ("risk", json!("high")),
        ("effect", json!("write")),
        ("max_bytes", json!(64)),
        ("owner_gate", json!(true)),
        ("prefixes", json!(["TEAM_"])),
    ] {
        assert_eq!(cap[name], value, "{name}");
    }
    let least = claims(&world.mint(&json!({"keys": ["ECHO"]})).await);
    assert_eq!((life(&least), &least["cnf"], &least["del"]["max"]), (900, &Value::Null, &json!(0)));
    assert_eq!(least["cap"], json!({"keys": {"ECHO": null}, "risk": "low", "effect": "read"}));
    let listed = world.get("/api/tokens?limit=1").await;
    assert_eq!(listed.json()["tokens"].as_array().unwrap().len(), 1);
    let cursor = listed.json()["next_cursor"].as_str().unwrap().to_owned();
    let rest = world.get(&format!("/api/tokens?limit=1&cursor={cursor}")).await;
    assert_eq!(
        (&rest.json()["tokens"][0]["purpose"], &rest.json()["next_cursor"]),
        (&json!("a test"), &Value::Null),
        "{}",
        rest.text
    );
    let secret = token.rsplit('.').next().unwrap();
    assert!(!format!("{}{}", listed.text, rest.text).contains(secret));
    world.stop().await;
}

#[tokio::test]
async fn nothing_that_was_asked_of_a_token_is_dropped() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let team = world
        .principal("team", &json!([{"may": "mint", "prefix": "TEAM_"}, {"may": "invoke", "prefix": "TEAM_"}]))
        .await;
    for (wanted, status) in [
        (json!({}), 400),
        (json!({"keys": ["ECHO"], "max_uses": 1}), 400),
        (json!({"keys": ["ECHO"], "uses": null}), 400),
        (json!({"keys": ["ECHO"], "ttl": 59}), 400),
        (json!({"keys": ["ECHO"], "ttl": 604_801}), 400),
        (json!({"keys": ["ECHO"], "effect": "write"}), 400),
        (json!({"keys": ["ECHO"], "url": true, "ttl": 3_601, "uses": 1}), 400),
        (json!({"keys": ["ECHO"], "url": true, "ttl": 60}), 400),
        (json!({"keys": ["ECHO"], "holder": {"kty": "OKP", "crv": "Ed25519", "x": "AA"}}), 400),
        (json!({"keys": ["NOT_THERE"]}), 404),
    ] {
        let refused = world.post("/api/tokens", &wanted).await;
        assert_eq!((refused.status, &refused.json()["ran"]), (status, &json!(false)), "{wanted}: {}", refused.text);
    }
    let wider = send(world.bearer(&team, Method::POST, "/api/tokens").json(&json!({"keys": ["ECHO"]}))).await;
    assert_eq!((wider.status, &*wider.error()), (403, "forbidden"), "{}", wider.text);
    let own = send(world.bearer(&team, Method::POST, "/api/tokens").json(&json!({"prefixes": ["TEAM_A"]}))).await;
    assert_eq!(own.status, 201, "{}", own.text);
    let of_team = send(world.bearer(&team, Method::GET, "/api/tokens")).await.json();
    assert_eq!(of_team["tokens"].as_array().unwrap().len(), 1, "its own and no other: {of_team}");
    world.stop().await;
}

#[tokio::test]
async fn the_walk_works_with_a_token_over_http() {
    let upstream = Upstream::weather().await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let target = format!("GET {}/v1/forecast?latitude=$1&longitude=$2", upstream.origin());
    world.create(&book::http("TEMPERATURE", &target, "$1=latitude | $2=longitude", "")).await;
    world.create(&book::echo("HIDDEN")).await;
    let alice = Holder::new(&world.clock);
    let bearer = world.mint(&json!({"keys": ["TEMPERATURE"]})).await;
    let held = world.mint(&json!({"keys": ["TEMPERATURE"], "holder": alice.jwk()})).await;
    for (token, by) in [(bearer, None), (held, Some(&alice))] {
        let get = async |path: &str| send(world.cap(&token, None, Method::GET, path)).await;
        let asked = get("/api/dispatch?ask=ask+the+upstream").await;
        assert_eq!(asked.json()["best"]["key"], "TEMPERATURE", "{}", asked.text);
        let contract = get("/api/dispatch?key=TEMPERATURE").await.json();
        let proof = by.map(|by| proof(by, &token, "TEMPERATURE", "37.77|-122.42"));
        let done = world.spend(&token, proof.as_deref(), "TEMPERATURE", "37.77|-122.42").await;
        assert_eq!((done.status, &done.json()["ok"]), (200, &json!(true)), "{}", done.text);
        assert_eq!(done.json()["proof"]["contract_hash"], contract["contract_hash"]);
        let asking = by.map(|by| proof_for_receipt(by, &token, "TEMPERATURE", &done.id()));
        let path = format!("/api/dispatch?receipt={}", done.id());
        let receipt = send(world.cap(&token, asking.as_deref(), Method::GET, &path)).await;
        assert_eq!(receipt.json()["actor"], format!("cap:{}", jti(&token)), "{}", receipt.text);
        for hidden in ["HIDDEN", "NOT_THERE"] {
            let answer = get(&format!("/api/dispatch?key={hidden}")).await;
            assert_eq!((answer.status, &*answer.error()), (404, "unknown_key"));
            assert_eq!(answer.text.replace(hidden, "KEY"), get("/api/dispatch?key=KEY").await.text);
            let refused = world.spend(&token, None, hidden, "a").await;
            assert!(matches!(&*refused.error(), "scope_mismatch" | "pop_required"), "{}", refused.text);
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn the_walk_works_with_a_token_over_grpc() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let (alice, channel) = (Holder::new(&world.clock), world.channel().await);
    let bearer = world.mint(&json!({"keys": ["ECHO"]})).await;
    let held = world.mint(&json!({"keys": ["ECHO"], "holder": alice.jwk()})).await;
    for (token, by) in [(bearer, None), (held, Some(&alice))] {
        let question = AskRequest { question: "give back what came".into(), ..AskRequest::default() };
        let asked = ResolverServiceClient::new(channel.clone()).ask(with_token(&token, None, question)).await.unwrap();
        assert_eq!(asked.into_inner().best.unwrap().summary.unwrap().key, "ECHO");
        let read = GetContractRequest { key: "ECHO".into(), format: 0 };
        let read = ContractServiceClient::new(channel.clone()).get_contract(with_token(&token, None, read)).await;
        let hash = read.unwrap().into_inner().contract_hash;
        let proof = by.map(|by| proof(by, &token, "ECHO", "a"));
        let mut executor = ExecutorServiceClient::new(channel.clone());
        let answer = executor.invoke(with_token(&token, proof.as_deref(), call("ECHO", "a"))).await.unwrap();
        let answer = answer.into_inner().answer.unwrap();
        let done = answer.proof.unwrap();
        assert!(answer.ok && done.contract_hash == hash, "{done:?}");
        let asking = by.map(|by| proof_for_receipt(by, &token, "ECHO", &done.invocation_id));
        let receipt = with_token(&token, asking.as_deref(), GetReceiptRequest { invocation_id: done.invocation_id });
        let receipt = ReceiptServiceClient::new(channel.clone()).get_receipt(receipt).await;
        let actor = receipt.unwrap().into_inner().receipt.unwrap().actor;
        assert_eq!(actor, format!("cap:{}", jti(&token)));
    }
    world.stop().await;
}

/// A token and its proof, the key and the text that it calls with, the reason of the refusal and its two statuses.
type Case<'a> = (&'a str, Option<&'a str>, &'a str, &'a str, &'a str, u16, Code);

#[tokio::test]
async fn a_refusal_has_the_same_reason_over_both_protocols() {
    let world = World::start().await;
    for row in [book::echo("ECHO"), sensitive("SECRET"), book::echo("OTHER")] {
        world.create(&row).await;
    }
    let alice = Holder::new(&world.clock);
    let token = world.mint(&json!({"keys": ["ECHO", "SECRET"], "max_bytes": 4})).await;
    let held = world.mint(&json!({"keys": ["ECHO"], "holder": alice.jwk()})).await;
    let fixed = world.mint(&json!({"keys": ["ECHO"], "body": "a"})).await;
    let gone = world.mint(&json!({"keys": ["ECHO"]})).await;
    let once = world.mint(&json!({"keys": ["ECHO"], "uses": 1})).await;
    assert_eq!(world.spend(&once, None, "ECHO", "a").await.status, 200);
    let jti = jti(&gone);
    assert_eq!(world.post("/api/tokens/revoke", &json!({"jti": jti})).await.json(), json!({"ok": true, "revoked": 1}));
    let (input, _) = token.rsplit_once('.').unwrap();
    let forged = format!("{input}.{}", held.rsplit('.').next().unwrap());
    let wrong = proof(&alice, &held, "ECHO", "other");
    let cases: [Case<'_>; 10] = [
        ("a.b.c", None, "ECHO", "a", "token_malformed", 401, Code::Unauthenticated),
        (&forged, None, "ECHO", "a", "bad_signature", 401, Code::Unauthenticated),
        (&held, None, "ECHO", "a", "pop_required", 401, Code::Unauthenticated),
        (&held, Some(&wrong), "ECHO", "a", "pop_invalid", 401, Code::Unauthenticated),
        (&gone, None, "ECHO", "a", "revoked:", 403, Code::PermissionDenied),
        (&token, None, "OTHER", "a", "scope_mismatch", 403, Code::PermissionDenied),
        (&token, None, "SECRET", "a", "risk_ceiling:low<row:high", 403, Code::PermissionDenied),
        (&fixed, None, "ECHO", "b", "body_not_allowed:fixed_body_only", 403, Code::PermissionDenied),
        (&token, None, "ECHO", "abcde", "payload_ceiling:5>4", 413, Code::InvalidArgument),
        (&once, None, "ECHO", "a", "token_exhausted", 429, Code::ResourceExhausted),
    ];
    let mut executor = ExecutorServiceClient::new(world.channel().await);
    for (token, proof, key, body, error, status, code) in cases {
        let refused = world.spend(token, proof, key, body).await;
        assert!(refused.status == status && refused.error().starts_with(error), "{error}: {}", refused.text);
        assert_eq!(refused.headers.contains_key("www-authenticate"), status == 401, "{error}");
        let refused = executor.invoke(with_token(token, proof, call(key, body))).await.unwrap_err();
        assert_eq!(refused.code(), code, "{error}");
        assert!(from_status(&refused).error_text().starts_with(error), "{refused:?}");
    }
    world.stop().await;
}

#[tokio::test]
async fn a_holder_reads_what_its_token_can_do_and_what_is_left() {
    let world = World::start().await;
    for row in [book::echo("ECHO"), sensitive("SECRET"), book::echo("OTHER")] {
        world.create(&row).await;
    }
    let token = world.mint(&json!({"keys": ["ECHO", "SECRET"], "uses": 3})).await;
    let explain = async |key: &str| {
        send(world.cap(&token, None, Method::GET, &format!("/api/tokens/explain?key={key}"))).await.json()
    };
    assert_eq!(world.spend(&token, None, "ECHO", "a").await.status, 200);
    let told = explain("ECHO").await;
    assert_eq!(
        (&told["uses_left"], &told["needs_proof"], &told["verdict"]),
        (&json!(2), &json!(false), &json!("allowed"))
    );
    assert_eq!(told["claims"][0]["cap"]["uses"], 3);
    assert_eq!(explain("SECRET").await["verdict"], "risk_ceiling:low<row:high");
    assert_eq!(explain("OTHER").await["verdict"], "scope_mismatch");
    assert_eq!(explain("NOT_THERE").await["verdict"], "scope_mismatch", "nothing is said about rows");
    let plain = world.get("/api/tokens/explain").await;
    assert_eq!(plain.status / 100, 4, "the owner has no token: {}", plain.text);
    let narrowed =
        send(world.cap(&token, None, Method::POST, "/api/tokens/narrow").json(&json!({"keys": ["ECHO"]}))).await;
    assert_eq!(narrowed.status, 201, "{}", narrowed.text);
    let narrowed = narrowed.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(world.spend(&narrowed, None, "ECHO", "a").await.status, 200);
    assert_eq!(explain("ECHO").await["uses_left"], 1, "they share what is left");
    let wider = send(world.cap(&token, None, Method::POST, "/api/tokens/narrow").json(&json!({"risk": "high"}))).await;
    assert_eq!((wider.status, &*wider.error()), (403, "widened:risk"), "{}", wider.text);
    let own = json!({"jti": jti(&token)});
    let back = send(world.cap(&token, None, Method::POST, "/api/tokens/revoke").json(&own)).await;
    assert_eq!((back.status, back.json()), (200, json!({"ok": true, "revoked": 1})), "{}", back.text);
    for ended in [&token, &narrowed] {
        let refused = world.spend(ended, None, "ECHO", "a").await;
        assert!(refused.status == 403 && refused.error().starts_with("revoked:"), "{}", refused.text);
    }
    world.stop().await;
}

#[tokio::test]
async fn keys_turn_and_tokens_of_the_one_before_stay_good() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let before = world.mint(&json!({"keys": ["ECHO"]})).await;
    let first = kid(&before);
    let published = async || {
        let set = world.look("/.well-known/jwks.json").await.json();
        set["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert!(published().await.contains(&first));
    let turned = world.post("/api/tokens/keys/rotate", &json!({})).await;
    assert_eq!(turned.status, 200, "{}", turned.text);
    let after = world.mint(&json!({"keys": ["ECHO"]})).await;
    assert_ne!(kid(&after), first);
    assert!(published().await.contains(&first) && published().await.contains(&kid(&after)));
    for token in [&before, &after] {
        let done = world.spend(token, None, "ECHO", "a").await;
        assert_eq!(done.status, 200, "{}", done.text);
    }
    let back = world.post("/api/tokens/revoke", &json!({"kid": first})).await;
    assert_eq!(back.status, 200, "{}", back.text);
    assert_eq!(world.spend(&before, None, "ECHO", "a").await.status / 100, 4);
    assert_eq!(world.spend(&after, None, "ECHO", "a").await.status, 200);
    world.stop().await;
}

#[tokio::test]
async fn a_token_that_fills_its_bounds_comes_through_every_door() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let alice = Holder::new(&world.clock);
    // some links of several KiB each: what HTTP/2 takes by default would be too little
    let prefixes: Vec<String> = (0..40).map(|n| format!("{n:0>120}")).collect();
    let wanted = json!({"keys": ["ECHO"], "prefixes": prefixes, "holder": alice.jwk()});
    let mut token = world.mint(&wanted).await;
    for _ in 0..3 {
        token = alice.derive(&token, &alice, |_| {});
    }
    assert!(token.len() > 24 * 1024, "{} bytes", token.len());
    let proven = proof(&alice, &token, "ECHO", "a");
    let done = world.spend(&token, Some(&proven), "ECHO", "a").await;
    assert_eq!(done.status, 200, "{}", done.text);
    let prior = reqwest::Client::builder().http2_prior_knowledge().no_proxy().build().unwrap();
    let proven = proof(&alice, &token, "ECHO", "a");
    let call = prior.post(format!("{}/api/dispatch", world.http)).header("authorization", format!("Cap {token}"));
    let done = send(call.header("cap-proof", proven).json(&json!({"key": "ECHO", "body": "a"}))).await;
    assert_eq!(done.status, 200, "{}", done.text);
    world.stop().await;
}
