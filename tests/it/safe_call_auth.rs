//! Credentials: each form arrives as it should, at the origin that its secret is bound to and nowhere else.

use callbook_tests::book::{http, with};
use callbook_tests::secrets::Secrets;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use data_encoding::BASE64;
use serde_json::{Value, json};

const USER: &str = "u:ser-7Q";
const PASS: &str = "p@ss wörd-9Z";

struct Stage {
    world: World,
    upstream: Upstream,
    secrets: Secrets,
}

async fn stage() -> Stage {
    let upstream = Upstream::start(|_| answered(200, "{\"ok\":true}")).await;
    let secrets = Secrets::bound_to(
        &upstream.origin(),
        &[("TOKEN", "tok-1234567890\n"), ("USER", "user-7Q"), ("PASS", PASS), ("ODD", USER), ("GONE", "x-y-z-1")],
    );
    secrets.lose("GONE");
    let world = secrets.give(World::with().allow(&[upstream.origin()])).start().await;
    Stage { world, upstream, secrets }
}

impl Stage {
    fn row(&self, key: &str, auth: &str) -> Value {
        with(http(key, &format!("GET {}/x?q=1", self.upstream.origin()), "none", ""), &json!({"auth": auth}))
    }

    async fn call(&self, key: &str) -> Value {
        self.world.invoke(key, "").await.json()
    }
}

#[tokio::test]
async fn each_form_arrives_as_the_upstream_expects_it() {
    let stage = stage().await;
    let basic = |pair: &str| format!("Basic {}", BASE64.encode(pair.as_bytes()));
    let cases = [
        ("NONE", "", None, "/x?q=1"),
        ("BEARER", "bearer:TOKEN", Some("Bearer tok-1234567890".to_owned()), "/x?q=1"),
        ("BASIC_ONE", "basic:USER", Some(basic("user-7Q:")), "/x?q=1"),
        ("BASIC_TWO", "basic:USER:PASS", Some(basic(&format!("user-7Q:{PASS}"))), "/x?q=1"),
        ("QUERY", "query:TOKEN", None, "/x?q=1&access_token=tok-1234567890"),
        ("QUERY_NAMED", "query:api_key=PASS", None, "/x?q=1&api_key=p%40ss+w%C3%B6rd-9Z"),
        ("HEADER", "headers:{\"Authorization\":\"Token $TOKEN\"}", Some("Token tok-1234567890".to_owned()), "/x?q=1"),
    ];
    for (key, auth, authorization, target) in cases {
        stage.world.create(&stage.row(key, auth)).await;
        let answer = stage.call(key).await;
        assert_eq!(answer["ok"], true, "{auth}: {answer}");
        let seen = stage.upstream.seen().last().unwrap().clone();
        let sent = seen.headers.get("authorization").map(|value| value.to_str().unwrap().to_owned());
        assert_eq!((sent, seen.target.as_str()), (authorization, target), "{auth}");
    }
    let both = "headers:{\"X-API-Key\":\"${TOKEN}-x\",\"X-User\":\"$USER\",\"Accept\":\"application/json\"}";
    stage.world.create(&stage.row("HEADERS", both)).await;
    assert_eq!(stage.call("HEADERS").await["ok"], true);
    let seen = stage.upstream.seen().last().unwrap().clone();
    let header = |name: &str| seen.headers[name].to_str().unwrap().to_owned();
    assert_eq!(
        (header("x-api-key"), header("x-user"), header("accept")),
        ("tok-1234567890-x".to_owned(), "user-7Q".to_owned(), "application/json".to_owned())
    );
    assert!(
        header("user-agent").starts_with("callbook/")
            && !seen.headers.contains_key("referer")
            && !seen.headers.contains_key("cookie")
    );
    stage.world.stop().await;
}

#[tokio::test]
async fn a_form_that_does_not_exist_or_does_not_do_is_refused_at_the_write() {
    let stage = stage().await;
    for auth in [
        "token:TOKEN",
        "bearer:",
        "bearer:a b",
        "bearer:sk-live-1234",
        "basic::PASS",
        "query:=TOKEN",
        "headers:{\"Host\":\"$TOKEN\"}",
        "headers:[1]",
        "headers:{\"X\":\"a\\nb\"}",
        "TOKEN",
    ] {
        let refused = stage.world.post("/api/directory", &stage.row("ROW", auth)).await;
        assert_eq!(refused.error(), "registry_hygiene_refused: bad_template", "{auth}: {}", refused.text);
        assert!(!refused.text.contains("sk-live-1234"), "{}", refused.text);
    }
    stage.world.stop().await;
}

#[tokio::test]
async fn a_secret_without_a_value_ends_the_call_before_anything_is_sent() {
    let stage = stage().await;
    for (key, auth, name) in [
        ("LOST", "bearer:GONE", "GONE"),
        ("UNKNOWN", "bearer:NOBODY", "NOBODY"),
        ("ENVIRONMENT", "bearer:PATH", "PATH"),
    ] {
        stage.world.create(&stage.row(key, auth)).await;
        let answer = stage.call(key).await;
        assert_eq!(answer["result"], format!("ERR:auth:missing_secret:{name}"), "{answer}");
        let error = &answer["error"];
        assert_eq!(
            (&answer["ok"], &answer["ran"], &error["retryable"]),
            (&json!(false), &json!(true), &json!(false)),
            "{answer}"
        );
        assert!(error["code"].as_str().unwrap().starts_with("auth:missing_secret"), "{answer}");
        let id = answer["proof"]["invocation_id"].as_str().unwrap();
        let receipt = stage.world.get(&format!("/api/dispatch?receipt={id}")).await.json();
        assert_eq!(
            (&receipt["status"], &receipt["request"]),
            (&json!("PROVEN_ATTEMPT_NO_MATERIAL_RESULT"), &Value::Null),
            "{receipt}"
        );
    }
    assert_eq!(stage.upstream.count(), 0);
    stage.world.stop().await;
}

#[tokio::test]
async fn a_rotated_secret_is_used_by_the_next_call() {
    let stage = stage().await;
    stage.world.create(&stage.row("ROW", "bearer:TOKEN")).await;
    stage.call("ROW").await;
    stage.secrets.rotate("TOKEN", "rotated-0987654321");
    let answer = stage.call("ROW").await;
    assert_eq!(answer["ok"], true);
    stage.secrets.lose("TOKEN");
    assert_eq!(stage.call("ROW").await["result"], "ERR:auth:missing_secret:TOKEN");
    let sent: Vec<_> =
        stage.upstream.seen().iter().map(|seen| seen.headers["authorization"].to_str().unwrap().to_owned()).collect();
    assert_eq!(sent, ["Bearer tok-1234567890", "Bearer rotated-0987654321"]);
    stage.world.stop().await;
}

#[tokio::test]
async fn a_row_written_under_other_bindings_sends_nothing_when_it_is_called() {
    let stage = stage().await;
    stage.world.create(&stage.row("ROW", "bearer:TOKEN")).await;
    let url = stage.world.database_url.clone();
    let allowed = || World::with().allow(&[stage.upstream.origin()]).database(&url);
    let elsewhere = allowed().set(|set| {
        set.secrets_dir = Some(stage.secrets.folder());
        set.secret_origins = Some("TOKEN=https://api.example.com".to_owned());
    });
    let other_key = allowed()
        .set(|set| set.secrets_dir = Some(stage.secrets.folder()))
        .toml(&format!("[secrets.TOKEN]\norigins = [\"{}\"]\nkeys = [\"TEAM_\"]", stage.upstream.origin()));
    for builder in [elsewhere, other_key] {
        let world = builder.start().await;
        let answer = world.invoke("ROW", "").await.json();
        assert_eq!(answer["result"], "ERR:auth:secret_origin_refused:TOKEN", "{answer}");
        let shaped = world.post("/api/dispatch", &json!({"key": "ROW", "shape": true})).await.json();
        assert_eq!(
            (&shaped["secret"]["allowed"], &shaped["verdict"]),
            (&json!(false), &json!("auth:secret_origin_refused:TOKEN")),
            "{shaped}"
        );
        world.stop().await;
    }
    assert_eq!(stage.upstream.count(), 0);
    stage.world.stop().await;
}

#[tokio::test]
async fn a_shape_shows_the_whole_request_and_neither_runs_it_nor_reads_a_secret() {
    let stage = stage().await;
    let row = with(
        http("ROW", &format!("POST {}/x/$1", stage.upstream.origin()), "a", "{\"a\":$1}"),
        &json!({"auth": "headers:{\"X-Key\":\"$TOKEN\"}"}),
    );
    stage.world.create(&row).await;
    stage.world.create(&stage.row("LOST", "bearer:GONE")).await;
    stage.world.create(&stage.row("QUERY", "query:key=TOKEN")).await;
    let shape = |key: &str, body: &str| {
        let asked = json!({"key": key, "body": body, "shape": true});
        let world = &stage.world;
        async move { world.post("/api/dispatch", &asked).await }
    };
    let shaped = shape("ROW", "1.10").await.json();
    assert_eq!((&shaped["ok"], &shaped["ran"], &shaped["method"]), (&json!(false), &json!(false), &json!("POST")));
    assert_eq!(
        (&shaped["url"], &shaped["body"]),
        (&json!(format!("{}/x/1.10", stage.upstream.origin())), &json!("{\"a\":1.10}"))
    );
    assert_eq!(
        (&shaped["secret"], &shaped["verdict"]),
        (&json!({"name": "TOKEN", "allowed": true}), &json!("allowed")),
        "{shaped}"
    );
    assert_eq!(shaped["headers"]["content-type"], "application/json", "{shaped}");
    assert_eq!(shaped["proof"]["did"], "DRY-RUN — ROW");
    for answer in [shape("ROW", "x").await, shape("LOST", "").await, shape("QUERY", "").await] {
        assert!(answer.status == 200 && !answer.text.contains("tok-1234567890"), "{}", answer.text);
    }
    let refused = shape("ROW", "a/b").await;
    assert_eq!((refused.status, refused.error()), (400, "argument_refused:$1:path_separator".to_owned()));
    assert_eq!(stage.upstream.count(), 0);
    assert_eq!(stage.world.get("/api/invocations").await.json()["invocations"], json!([]));
    stage.world.stop().await;
}
