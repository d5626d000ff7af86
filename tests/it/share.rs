//! Tokens in an address: for models that can only open one, and for nobody else.

use callbook_tests::book;
use callbook_tests::door::{Answer, send};
use callbook_tests::token::jti;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{OWNER, World};
use reqwest::Method;
use serde_json::{Value, json};

/// Nothing keeps the answer, and no link in it takes the address along.
fn assert_quiet(answer: &Answer) {
    let header = |name: &str| answer.headers.get(name).map_or("", |value| value.to_str().unwrap()).to_owned();
    assert_eq!((header("cache-control").as_str(), header("referrer-policy").as_str()), ("no-store", "no-referrer"));
}

async fn shared(world: &World, uses: u64) -> String {
    world.mint(&json!({"prefixes": ["TEAM_"], "url": true, "uses": uses, "ttl": 600})).await
}

#[tokio::test]
async fn a_model_that_can_only_open_addresses_walks_from_a_question_to_a_receipt() {
    let world = World::start().await;
    world.create(&book::echo("TEAM_ECHO")).await;
    world.create(&book::saying("OTHER_ECHO", "Give back what came, for others")).await;
    let token = shared(&world, 5).await;
    let asked = world.look(&format!("/api/dispatch?ask=give+back+what+came&share={token}")).await;
    assert_quiet(&asked);
    assert!(!asked.text.contains("OTHER_ECHO") && !asked.text.contains(&token), "{}", asked.text);
    let run_now = asked.json()["best"]["run_now"].as_str().unwrap().to_owned();
    assert_eq!(run_now, format!("{}/api/dispatch?invoke=TEAM_ECHO&body=hello&share=<TOKEN>", world.http));
    let contract = world.look(&format!("/api/dispatch?key=TEAM_ECHO&share={token}")).await;
    assert_eq!(contract.status, 200, "{}", contract.text);
    let done = send(world.client.get(run_now.replace("<TOKEN>", &token))).await;
    assert_eq!(
        (done.status, &done.json()["ok"], &done.json()["output"]["text"]),
        (200, &json!(true), &json!("hello")),
        "{}",
        done.text
    );
    assert_quiet(&done);
    assert!(!done.text.contains(&token), "{}", done.text);
    let receipt = world.look(&format!("/api/dispatch?receipt={}&share={token}", done.id())).await;
    assert_eq!(receipt.json()["actor"], format!("cap:{}", jti(&token)), "{}", receipt.text);
    let confirmed = world.look(&format!("/api/dispatch?confirm={}&share={token}", done.id())).await;
    assert_eq!(confirmed.json()["confirmed"], true, "{}", confirmed.text);
    let hidden = world.look(&format!("/api/dispatch?invoke=OTHER_ECHO&body=a&share={token}")).await;
    assert_eq!((hidden.status, &*hidden.error()), (403, "scope_mismatch"), "{}", hidden.text);
    world.stop().await;
}

#[tokio::test]
async fn only_tokens_that_were_minted_for_addresses_are_taken_in_one() {
    let world = World::start().await;
    world.create(&book::echo("TEAM_ECHO")).await;
    let team = world.principal("team", &json!([{"may": "invoke"}])).await;
    let plain = world.mint(&json!({"keys": ["TEAM_ECHO"]})).await;
    for credential in [&plain, &team, &OWNER.to_owned(), &String::new()] {
        for verb in ["invoke=TEAM_ECHO&body=a", "ask=give+back", "key=TEAM_ECHO"] {
            let refused = world.look(&format!("/api/dispatch?{verb}&share={credential}")).await;
            assert!(matches!(refused.status, 401 | 403), "{verb}: {}", refused.text);
            assert!(credential.is_empty() || !refused.text.contains(credential.as_str()), "{}", refused.text);
            assert_quiet(&refused);
        }
    }
    let token = shared(&world, 5).await;
    let both = world.owner(Method::GET, &format!("/api/dispatch?invoke=TEAM_ECHO&share={token}"));
    let both = send(both).await;
    assert_eq!((both.status, &*both.error()), (400, "ambiguous_request"), "{}", both.text);
    for path in ["/api/directory", "/api/invocations", "/api/tokens", "/api/dispatch?registry=1"] {
        let joint = if path.contains('?') { '&' } else { '?' };
        let refused = world.look(&format!("{path}{joint}share={token}")).await;
        assert_eq!((refused.status, &*refused.error()), (400, "unrecognized_request"), "{path}: {}", refused.text);
    }
    let list: Value = world.get("/api/invocations").await.json();
    assert_eq!(list["invocations"].as_array().unwrap().len(), 0, "nothing ran");
    world.stop().await;
}

#[tokio::test]
async fn an_address_runs_what_reads_once_a_use_and_nothing_ahead_of_time() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let read = book::http("TEAM_READ", &format!("GET {}/$1", upstream.origin()), "$1=word", "");
    let write = book::http("TEAM_WRITE", &format!("POST {}/$1", upstream.origin()), "$1=word", "");
    world.create(&read).await;
    world.create(&write).await;
    let token = shared(&world, 2).await;
    let address = format!("/api/dispatch?invoke=TEAM_READ&body=a&share={token}");
    for ahead in [
        world.anyone(Method::HEAD, &address),
        world.anyone(Method::GET, &address).header("sec-purpose", "prefetch"),
        world.anyone(Method::GET, &address).header("purpose", "prefetch"),
        world.anyone(Method::GET, &format!("{address}&share={token}")),
        world.anyone(Method::POST, &address).json(&json!({"key": "TEAM_READ", "body": "a"})),
        world.anyone(Method::GET, "/api/dispatch?invoke=TEAM_READ&body=a"),
        world.owner(Method::GET, "/api/dispatch?invoke=TEAM_READ&body=a"),
    ] {
        let refused = send(ahead).await;
        assert!(matches!(refused.status, 400 | 401 | 405), "{} {}", refused.status, refused.text);
    }
    assert_eq!(upstream.count(), 0);
    let graver = world.look(&format!("/api/dispatch?invoke=TEAM_WRITE&body=a&share={token}")).await;
    assert_eq!((graver.status, &*graver.error()), (403, "effect_ceiling:read<row:write"), "{}", graver.text);
    let named = format!("{address}&idempotency_key=once");
    for replayed in [None, Some(true)] {
        let done = world.look(&named).await;
        assert_eq!((done.status, done.json()["replayed"].as_bool()), (200, replayed), "{}", done.text);
    }
    assert_eq!(upstream.count(), 1, "the same name runs once");
    assert_eq!(world.look(&address).await.status, 200);
    let spent = world.look(&address).await;
    assert_eq!((spent.status, &*spent.error(), upstream.count()), (429, "token_exhausted", 2), "{}", spent.text);
    let asked = world.get("/api/dispatch?ask=ask+the+upstream").await.json();
    for row in asked["matches"].as_array().unwrap() {
        assert_eq!(row["run_now"].is_string(), row["key"] == "TEAM_READ", "{row}");
    }
    world.stop().await;
}
