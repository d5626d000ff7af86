//! Keys: which are taken, and which would be mistaken for another.

use callbook_tests::book::echo;
use callbook_tests::world::World;
use reqwest::Method;
use serde_json::json;

#[tokio::test]
async fn a_key_is_read_by_its_rule() {
    let world = World::start().await;
    let long = "A".repeat(128);
    for key in ["NOW", "_a", "github.issues.create", "A-b_c.9", &long] {
        world.create(&echo(key)).await;
        assert_eq!(world.row(key).await["key"], *key);
    }
    let too_long = "A".repeat(129);
    let bad = [
        "",
        " ",
        "9A",
        ".a",
        "a.",
        "a..b",
        "a b",
        "a/b",
        "é",
        "NО",
        "a:b",
        "a.constructor",
        "__proto__",
        "then",
        "x.then.y",
        "prototype",
        "toString",
        "A\u{0}",
        "A\n",
        &too_long,
    ];
    for key in bad {
        let answer = world.post("/api/directory", &echo(key)).await;
        let told = answer.json();
        assert_eq!(
            (answer.status, &told["error"], &told["field"]),
            (400, &json!("invalid_request"), &json!("key")),
            "{key:?}: {told}"
        );
    }
    world.stop().await;
}

#[tokio::test]
async fn a_key_that_reads_like_another_is_refused_unless_the_write_says_so() {
    let world = World::start().await;
    world.create(&echo("NOW")).await;
    for twin in ["N0W", "now", "Now", "N0w"] {
        let refused = world.post("/api/directory", &echo(twin)).await;
        assert_eq!(
            (refused.status, &refused.json()["error"]),
            (409, &json!("lookalike_key:NOW")),
            "{twin}: {}",
            refused.text
        );
        assert_eq!(world.get(&format!("/api/directory/{twin}")).await.status, 404);
    }
    let line = echo("N0W").to_string();
    let imported = world.import("", line.clone()).await;
    assert_eq!(imported.json()["refused"][0]["error"], "lookalike_key:NOW", "{}", imported.text);

    assert_eq!(world.post("/api/directory?allow_lookalike=true", &echo("N0W")).await.status, 201);
    let mut row = echo("now");
    row["allow_lookalike"] = json!(true);
    assert_eq!(world.post("/api/directory", &row).await.status, 201);
    let imported = world.import("?allow_lookalike=true", echo("Now").to_string()).await;
    assert_eq!(imported.json()["created"], 1, "{}", imported.text);
    assert_eq!(world.import("", line).await.json()["unchanged"], 1, "a row that exists has no look-alike to fear");

    for (key, said) in [("NOW", "upper"), ("now", "lower"), ("N0W", "zero")] {
        assert_eq!(world.invoke(key, said).await.json()["output"]["text"], said, "{key}");
    }
    assert_eq!(world.put("NOW", &echo("NOW")).await.status, 200, "an edit of a row with look-alikes goes through");
    world.stop().await;
}

#[tokio::test]
async fn two_look_alikes_in_one_import_are_refused() {
    let world = World::start().await;
    let lines = [echo("L1ST"), echo("LIST"), echo("OTHER")].map(|row| row.to_string()).join("\n");
    let refused = world.import("?mode=each", lines.clone()).await.json();
    let errors: Vec<_> =
        refused["refused"].as_array().unwrap().iter().map(|line| line["error"].as_str().unwrap()).collect();
    assert_eq!((errors, &refused["created"]), (vec!["lookalike_key:LIST", "lookalike_key:L1ST"], &json!(1)));
    assert_eq!(world.import("?allow_lookalike=true", lines).await.json()["created"], 2);
    world.stop().await;
}

#[tokio::test]
async fn a_key_is_never_the_namespace_of_another() {
    let world = World::start().await;
    world.create(&echo("github.issues.create")).await;
    for clash in ["github", "github.issues", "github.issues.create.now"] {
        let refused = world.post("/api/directory", &echo(clash)).await;
        assert_eq!(refused.status, 409, "{clash}: {}", refused.text);
        assert_eq!(refused.json()["error"], "namespace_conflict:github.issues.create", "{clash}");
        let imported = world.import("", echo(clash).to_string()).await.json();
        assert_eq!(imported["refused"][0]["error"], "namespace_conflict:github.issues.create", "{clash}: {imported}");
    }
    world.create(&echo("github.issues.close")).await;
    world.create(&echo("github.issuesx")).await;
    world.delete("github.issues.create").await;
    world.delete("github.issues.close").await;
    world.create(&echo("github.issues")).await;
    let lines = [echo("a.b.c"), echo("a.b"), echo("a.d")].map(|row| row.to_string()).join("\n");
    let imported = world.import("?mode=each", lines).await.json();
    assert_eq!((&imported["created"], imported["refused"].as_array().unwrap().len()), (&json!(1), 2), "{imported}");
    world.stop().await;
}

#[tokio::test]
async fn the_seeds_addresses_give_way_to_rows_of_their_names() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    let listed = world.look("/api/directory/categories").await;
    assert_eq!(listed.status, 200, "{}", listed.text);
    assert_eq!(world.look("/api/directory/search?q=came").await.json()["count"], 1);
    world.create(&echo("categories")).await;
    assert_eq!(world.look("/api/directory/categories").await.json()["key"], "categories");
    let removed = callbook_tests::world::send(world.owner(Method::DELETE, "/api/directory/categories")).await;
    assert_eq!(removed.json()["deleted"], 1);
    world.stop().await;
}
