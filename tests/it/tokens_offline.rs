//! A holder needs nobody: the example of the documents narrows and proves with nothing but a crypto library, and the
//! command line does the same.

use std::path::Path;
use std::process::{Command, Output};

use callbook_tests::process::binary;
use callbook_tests::token::claims;
use callbook_tests::world::World;
use callbook_tests::{book, is_here};
use serde_json::json;

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/examples/holder.mjs");

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap().trim().to_owned()
}

fn node(arguments: &[&str]) -> String {
    said(&Command::new("node").arg(EXAMPLE).args(arguments).output().unwrap())
}

fn callbook(token: &str, arguments: &[&str]) -> Output {
    Command::new(binary()).args(["token"]).args(arguments).env("CALLBOOK_KEY", token).output().unwrap()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().unwrap().to_owned()
}

#[tokio::test]
async fn narrowing_offline_with_nothing_but_a_crypto_library_works() {
    if !is_here("node", "--version") {
        return;
    }
    let world = World::start().await;
    for key in ["ECHO", "ECHO_OTHER", "PINNED"] {
        world.create(&book::echo(key)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let [alice, bob, bobs_public] = ["alice.jwk", "bob.jwk", "bob.pub.jwk"].map(|name| path(folder.path(), name));
    for file in [&alice, &bob] {
        std::fs::write(file, node(&["key"])).unwrap();
    }
    std::fs::write(&bobs_public, node(&["public", &bob])).unwrap();
    let public: serde_json::Value = serde_json::from_str(&node(&["public", &alice])).unwrap();
    let wanted = json!({"keys": ["ECHO", "PINNED"], "prefixes": ["ECHO"], "pin": true, "holder": public, "uses": 10});
    let root = world.mint(&wanted).await;
    let less = r#"{"keys":["ECHO"],"uses":2,"ttl":60}"#;
    let token = node(&["narrow", &root, &alice, less, &bobs_public]);
    let said = claims(&token);
    let (cap, life) = (&said["cap"], said["exp"].as_i64().unwrap() - said["iat"].as_i64().unwrap());
    assert_eq!((&cap["uses"], life, &cap["prefixes"]), (&json!(2), 60, &json!([])));
    let keys = cap["keys"].as_object().unwrap();
    assert!(keys.len() == 1 && keys["ECHO"].is_string(), "the pin stays: {said}");

    let prove = |key: &str, call: &str| node(&["prove", &token, &bob, key, call]);
    let proof = prove("ECHO", r#"{"body":"grüße \"x\""}"#);
    let done = world.spend(&token, Some(&proof), "ECHO", "grüße \"x\"").await;
    assert_eq!((done.status, &done.json()["ok"]), (200, &json!(true)), "{}", done.text);
    let again = world.spend(&token, Some(&proof), "ECHO", "grüße \"x\"").await;
    assert_eq!((again.status, &again.json()["replayed"]), (200, &json!(true)), "{}", again.text);
    let other = world.spend(&token, Some(&proof), "ECHO", "other").await;
    assert_eq!((other.status, &*other.error()), (401, "pop_invalid"), "{}", other.text);
    let scope = world.spend(&token, Some(&prove("ECHO_OTHER", r#"{"body":"a"}"#)), "ECHO_OTHER", "a").await;
    assert_eq!((scope.status, &*scope.error()), (403, "scope_mismatch"), "{}", scope.text);
    assert_eq!(world.spend(&token, Some(&prove("ECHO", r#"{"body":"a"}"#)), "ECHO", "a").await.status, 200);
    let third = world.spend(&token, Some(&prove("ECHO", r#"{"body":"a"}"#)), "ECHO", "a").await;
    assert_eq!((third.status, &*third.error()), (429, "token_exhausted"), "{}", third.text);
    let wider = node(&["narrow", &root, &alice, r#"{"uses":11}"#]);
    let proof = node(&["prove", &wider, &alice, "ECHO", r#"{"body":"a"}"#]);
    let refused = world.spend(&wider, Some(&proof), "ECHO", "a").await;
    assert_eq!((refused.status, &*refused.error()), (403, "widened:uses"), "{}", refused.text);
    world.stop().await;
}

#[tokio::test]
async fn the_command_line_narrows_and_proves_without_a_gateway() {
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let folder = tempfile::tempdir().unwrap();
    let [alice, bob] = ["alice.jwk", "bob.jwk"].map(|name| path(folder.path(), name));
    let public = said(&callbook("", &["holder", &alice]));
    assert!(!public.contains("\"d\""), "{public}");
    said(&callbook("", &["holder", &bob]));
    let public: serde_json::Value = serde_json::from_str(&public).unwrap();
    let root = world.mint(&json!({"keys": ["ECHO"], "holder": public})).await;
    // an address where nobody listens: nothing is asked
    let nobody = ["--url", "http://127.0.0.1:1"];
    let offline = ["narrow", "--offline", "--holder-key", &alice, "--to", &bob, "--uses", "1", "ECHO"];
    let token = said(&callbook(&root, &[&offline[..], &nobody].concat()));
    let proof = said(&callbook(&token, &[&["prove", "ECHO", "grüße", "--holder-key", &bob][..], &nobody].concat()));
    let done = world.spend(&token, Some(&proof), "ECHO", "grüße").await;
    assert_eq!((done.status, &done.json()["ok"]), (200, &json!(true)), "{}", done.text);
    let wider = callbook(&token, &["narrow", "--offline", "--holder-key", &bob, "--uses", "2"]);
    assert_eq!(wider.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wider.stderr).contains("widened:uses"), "{wider:?}");
    let stranger = callbook(&token, &["prove", "ECHO", "--holder-key", &alice]);
    assert_eq!(stranger.status.code(), Some(2), "{stranger:?}");
    world.stop().await;
}
