//! Templates: an argument fills its place and never becomes more than a value there.

use callbook_tests::book::{http, with};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use serde_json::json;

async fn world() -> (World, Upstream) {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).toml("[public]\nREGION = \"eu-1\"").start().await;
    (world, upstream)
}

#[tokio::test]
async fn an_argument_keeps_the_shape_of_the_path() {
    let (world, upstream) = world().await;
    world.create(&http("ONE", &format!("GET {}/v1/$1/end", upstream.origin()), "a", "")).await;
    world.create(&http("SPAN", &format!("GET {}/repos/$1+", upstream.origin()), "a", "")).await;
    for (key, argument, target) in [
        ("ONE", "a b&c?d#e", "/v1/a%20b%26c%3Fd%23e/end"),
        ("ONE", "%2e%2e", "/v1/%252e%252e/end"),
        ("ONE", "...", "/v1/.../end"),
        ("ONE", "é@:;=+", "/v1/%C3%A9%40%3A%3B%3D%2B/end"),
        ("SPAN", "owner/name", "/repos/owner/name"),
        ("SPAN", "a?b/c d", "/repos/a%3Fb/c%20d"),
    ] {
        let answer = world.call(key, &json!([argument])).await;
        assert_eq!(answer.json()["ok"], true, "{argument}: {}", answer.text);
        assert_eq!(upstream.seen().last().unwrap().target, target, "{argument}");
    }
    let before = upstream.count();
    for (key, argument) in [
        ("ONE", ""),
        ("ONE", "."),
        ("ONE", ".."),
        ("ONE", "a/b"),
        ("ONE", "a\\b"),
        ("ONE", "a\u{0}b"),
        ("ONE", "a\r\nb"),
        ("ONE", "/"),
        ("SPAN", "a//b"),
        ("SPAN", "../x"),
        ("SPAN", "a/../../b"),
        ("SPAN", "/a"),
        ("SPAN", "a/"),
        ("SPAN", "a\\b"),
        ("SPAN", "./a"),
    ] {
        let answer = world.call(key, &json!([argument])).await;
        assert!(
            answer.status == 400 && answer.error().starts_with("argument_refused:$1"),
            "{key} {argument:?}: {}",
            answer.text
        );
        assert_eq!(answer.json()["ran"], false);
    }
    assert_eq!(upstream.count(), before);
    world.stop().await;
}

#[tokio::test]
async fn an_argument_stays_one_value_of_the_query() {
    let (world, upstream) = world().await;
    let properties = json!({"q": {"type": "string"}, "tags": {"type": "array"}, "open": {"type": "boolean"}});
    let schema = json!({"input_schema": {"type": "object", "properties": properties}});
    let target = format!("GET {}/s?fixed=1&q=$1&tags=$2&open=$3&at=$REGION&cost=$$5", upstream.origin());
    world.create(&with(http("ROW", &target, "q | tags | open", ""), &schema)).await;
    for (args, query) in [
        (json!({"q": "a&b=c#d +?/é"}), "fixed=1&q=a%26b%3Dc%23d%20%2B%3F%2F%C3%A9&at=eu-1&cost=$5"),
        (
            json!({"q": "x", "tags": ["a", "b c"], "open": true}),
            "fixed=1&q=x&tags=a&tags=b%20c&open=true&at=eu-1&cost=$5",
        ),
        (json!({}), "fixed=1&at=eu-1&cost=$5"),
        (json!({"q": ""}), "fixed=1&q=&at=eu-1&cost=$5"),
        (json!({"q": "$2 ${q} $REGION $$"}), "fixed=1&q=%242%20%24%7Bq%7D%20%24REGION%20%24%24&at=eu-1&cost=$5"),
    ] {
        let answer = world.call("ROW", &args).await;
        assert_eq!(answer.json()["ok"], true, "{args}: {}", answer.text);
        assert_eq!(upstream.seen().last().unwrap().target, format!("/s?{query}"), "{args}");
    }
    world.stop().await;
}

#[tokio::test]
async fn an_argument_stays_inside_its_json_form_or_text() {
    let (world, upstream) = world().await;
    let target = format!("POST {}/", upstream.origin());
    world.create(&http("JSON", &target, "a | b", "{\"s\":\"<$1>\",\"v\":$2,\"k\":{\"$$ref\":1}}")).await;
    world.create(&http("FORM", &target, "a | b", "form:a=$1&b=$2&c=x+y")).await;
    world.create(&http("TEXT", &target, "a | b", "text/csv; charset=utf-8:\na,$1\nb,$2")).await;
    let odd = "\"},\n\\ \u{1}é😀&=+|";
    for (key, args, media_type, body) in [
        (
            "JSON",
            json!([odd, {"x": 1}]),
            "application/json",
            r#"{"s":"<\"},\n\\ \u0001é😀&=+|>","v":{"x":1},"k":{"$ref":1}}"#,
        ),
        ("JSON", json!(["", "],x"]), "application/json", r#"{"s":"<>","v":"],x","k":{"$ref":1}}"#),
        ("JSON", json!(["$2", null]), "application/json", r#"{"s":"<$2>","v":null,"k":{"$ref":1}}"#),
        ("FORM", json!(["1&b=2 é", "+"]), "application/x-www-form-urlencoded", "a=1%26b%3D2+%C3%A9&b=%2B&c=x+y"),
        ("TEXT", json!(["x\ny", "$1"]), "text/csv; charset=utf-8", "a,x\ny\nb,$1"),
    ] {
        let answer = world.call(key, &args).await;
        assert_eq!(answer.json()["ok"], true, "{key} {args}: {}", answer.text);
        let sent = upstream.seen().last().unwrap().clone();
        assert_eq!(sent.headers["content-type"], media_type, "{key}");
        assert_eq!(String::from_utf8_lossy(&sent.body), body, "{key} {args}");
    }
    let before = upstream.count();
    let refused = world.call("TEXT", &json!(["a\u{0}", "b"])).await;
    assert_eq!(
        (refused.status, refused.error()),
        (400, "argument_refused:$1:control_character".to_owned()),
        "{}",
        refused.text
    );
    assert_eq!(upstream.count(), before);
    world.stop().await;
}

#[tokio::test]
async fn one_row_may_hold_several_operations() {
    let (world, upstream) = world().await;
    let origin = upstream.origin();
    let operations = json!({
        "list": format!("GET {origin}/items?page=$1"),
        "add": {"method": "POST", "url": format!("{origin}/items"), "body": {"name": "$1"}},
        "drop": {"method": "DELETE", "url": format!("{origin}/items/$1")},
    });
    let target = format!("target_map:{operations}");
    world.create(&http("ITEMS", &target, "operation | value", "")).await;
    assert_eq!(world.look("/api/dispatch?key=ITEMS").await.json()["effect"], "destructive");
    for (body, method, path, sent) in [
        ("list|2", "GET", "/items?page=2", ""),
        ("add|x", "POST", "/items", "{\"name\":\"x\"}"),
        ("drop|7", "DELETE", "/items/7", ""),
    ] {
        assert_eq!(world.invoke("ITEMS", body).await.json()["ok"], true, "{body}");
        let seen = upstream.seen().last().unwrap().clone();
        assert_eq!((seen.method.as_str(), seen.target.as_str(), &seen.body[..]), (method, path, sent.as_bytes()));
    }
    let unknown = world.invoke("ITEMS", "steal|7").await;
    assert_eq!(
        (unknown.status, unknown.error()),
        (400, "argument_refused:$1:unknown_operation".to_owned()),
        "{}",
        unknown.text
    );
    assert_eq!(upstream.count(), 3);
    world.stop().await;
}

#[tokio::test]
async fn no_template_can_read_a_secret_or_an_undeclared_variable() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let secrets = tempfile::tempdir().unwrap();
    std::fs::write(secrets.path().join("TOKEN"), "sentinel-of-this-test").unwrap();
    let world = World::with()
        .allow(&[upstream.origin()])
        .set(|set| {
            set.secrets_dir = Some(secrets.path().to_owned());
            set.secret_origins = Some(format!("TOKEN={}", upstream.origin()));
        })
        .start()
        .await;
    for target in ["$TOKEN", "${TOKEN}", "$PATH", "$$TOKEN"] {
        let row = http("ROW", &format!("GET {}/{target}", upstream.origin()), "none", "");
        let answer = world.post("/api/directory?allow_lookalike=true", &row).await;
        if target == "$$TOKEN" {
            assert_eq!(answer.status, 201, "{}", answer.text);
            world.invoke("ROW", "").await;
            assert_eq!(upstream.seen()[0].target, "/$TOKEN");
        } else {
            assert_eq!(answer.error(), "registry_hygiene_refused: bad_template", "{target}: {}", answer.text);
        }
    }
    let argument = http("ARGUMENT", &format!("GET {}/x?q=$1", upstream.origin()), "q", "");
    world.create(&argument).await;
    world.call("ARGUMENT", &json!(["${TOKEN} $TOKEN"])).await;
    assert_eq!(upstream.seen()[1].target, "/x?q=%24%7BTOKEN%7D%20%24TOKEN");
    world.stop().await;
}
