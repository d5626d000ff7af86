//! Arguments: checked before anything runs, and carried to the upstream and the receipt as they were written.

use callbook_tests::book::{echo, http, with};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{Answer, World, send};
use reqwest::Method;
use serde_json::{Value, json};

async fn world() -> (World, Upstream) {
    let upstream = Upstream::start(|_| answered(200, "{\"ok\":true}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    (world, upstream)
}

/// A call whose body is exactly this text, so that numbers stay as they are.
async fn raw(world: &World, text: String) -> Answer {
    send(world.owner(Method::POST, "/api/dispatch").header("content-type", "application/json").body(text)).await
}

fn last_body(upstream: &Upstream) -> String {
    String::from_utf8(upstream.seen().last().unwrap().body.to_vec()).unwrap()
}

/// A row with a schema: a whole number of days, a place, and whether wind is wanted.
fn weather(upstream: &Upstream) -> Value {
    let row = http("WEATHER", &format!("GET {}/$1?days=$2&wind=$3", upstream.origin()), "place | days | wind", "");
    with(
        row,
        &json!({"input_schema": {"type": "object", "required": ["place"], "additionalProperties": false, "properties": {
            "place": {"type": "string", "minLength": 2}, "wind": {"type": "boolean"},
            "days": {"type": "integer", "minimum": 1, "maximum": 14}}}}),
    )
}

#[tokio::test]
async fn numbers_arrive_at_the_upstream_and_in_the_receipt_as_they_were_written() {
    let (world, upstream) = world().await;
    let target = format!("POST {}/n?q=$1", upstream.origin());
    let typed = json!({"input_schema": {"type": "object", "properties": {"n": {"type": "number"}}}});
    world.create(&with(http("TYPED", &target, "n", "{\"n\":$1,\"s\":\"$1\",\"l\":[${n}]}"), &typed)).await;
    world.create(&http("OPEN", &target, "n", "{\"n\":$1,\"s\":\"$1\",\"l\":[${n}]}")).await;
    for number in [
        "9007199254740993",
        "1.10",
        "-0",
        "1e400",
        "0.1000000000000000055",
        "-1E-7",
        "123456789012345678901234567890.5",
    ] {
        for key in ["TYPED", "OPEN"] {
            for arguments in [
                format!("\"args\":{{\"n\":{number}}}"),
                format!("\"args\":[{number}]"),
                format!("\"body\":\"{number}\""),
                format!("\"body\":\"[{number}]\""),
            ] {
                if key == "OPEN" && arguments.contains("\"[") {
                    continue; // one list is one argument there
                }
                let answer = raw(&world, format!("{{\"key\":\"{key}\",{arguments}}}")).await;
                assert_eq!(answer.json()["ok"], true, "{key} {arguments}: {}", answer.text);
                let sent = upstream.seen().last().unwrap().clone();
                assert_eq!(sent.target, format!("/n?q={number}"), "{key} {arguments}");
                assert_eq!(
                    last_body(&upstream),
                    format!("{{\"n\":{number},\"s\":\"{number}\",\"l\":[{number}]}}"),
                    "{key} {arguments}"
                );
                let receipt = world.get(&format!("/api/dispatch?receipt={}", answer.id())).await;
                assert!(receipt.text.contains(number), "{key} {arguments}: {}", receipt.text);
            }
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn numbers_come_back_as_the_upstream_wrote_them() {
    let text = r#"{"id":1915883588174806058,"f":0.1000000000000000055,"e":1e400,"z":-0,"t":1.10}"#;
    let upstream = Upstream::start(move |_| answered(200, text)).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&http("ROW", &format!("GET {}/", upstream.origin()), "none", "")).await;
    let answer = world.invoke("ROW", "").await;
    assert!(answer.text.contains(&format!("\"output\":{text}")), "{}", answer.text);
    world.create(&echo("ECHO")).await;
    let echoed = raw(&world, "{\"key\":\"ECHO\",\"args\":[1e400]}".to_owned()).await;
    assert!(echoed.text.contains("1e400"), "{}", echoed.text);
    world.stop().await;
}

#[tokio::test]
async fn what_the_schema_refuses_never_reaches_the_upstream_or_the_log() {
    let (world, upstream) = world().await;
    world.create(&weather(&upstream)).await;
    let cases = [
        (json!({"args": {"place": "Rome", "days": 0}}), "args_invalid:/days:minimum"),
        (json!({"args": {"place": "Rome", "days": 15}}), "args_invalid:/days:maximum"),
        (json!({"args": {"place": "Rome", "days": "3"}}), "args_invalid:/days:type"),
        (json!({"args": {"place": "Rome", "days": 1.5}}), "args_invalid:/days:type"),
        (json!({"args": {"place": 7}}), "args_invalid:/place:type"),
        (json!({"args": {"place": "R"}}), "args_invalid:/place:minLength"),
        (json!({"args": {"days": 3}}), "args_invalid::required"),
        (json!({}), "args_invalid::required"),
        (json!({"args": {"place": "Rome", "moon": 1}}), "args_invalid::additionalProperties"),
        (json!({"body": "Rome|many"}), "args_invalid:/days:type"),
        (json!({"body": "Rome|3|perhaps"}), "args_invalid:/wind:type"),
        (json!({"body": "Rome|3|true|more"}), "extra_arguments:expected 3, got 4"),
    ];
    for (arguments, error) in cases {
        let answer = world.post("/api/dispatch", &with(arguments.clone(), &json!({"key": "WEATHER"}))).await;
        let told = answer.json();
        assert_eq!(
            (answer.status, told["error"].as_str().unwrap(), &told["ran"]),
            (400, error, &json!(false)),
            "{arguments}: {told}"
        );
        if let Some((pointer, keyword)) = error.strip_prefix("args_invalid:").and_then(|rest| rest.split_once(':')) {
            assert_eq!((&told["pointer"], &told["keyword"]), (&json!(pointer), &json!(keyword)), "{told}");
            assert!(told["expected"].as_str().is_some_and(|expected| !expected.is_empty()), "{told}");
        }
    }
    assert_eq!(upstream.count(), 0);
    assert_eq!(world.get("/api/invocations").await.json()["invocations"], json!([]));
    world.stop().await;
}

#[tokio::test]
async fn arguments_find_their_places_by_position_and_by_name() {
    let (world, upstream) = world().await;
    world.create(&weather(&upstream)).await;
    let cases = [
        (json!({"body": "Rome|3|true"}), "/Rome?days=3&wind=true"),
        (json!({"body": "Rome"}), "/Rome"),
        (json!({"body": "{\"wind\":false,\"place\":\"Rome\"}"}), "/Rome?wind=false"),
        (json!({"body": "[\"Rome\",3]"}), "/Rome?days=3"),
        (json!({"args": {"days": 3, "place": "Rome"}}), "/Rome?days=3"),
        (json!({"args": ["Rome", 3, true]}), "/Rome?days=3&wind=true"),
        (json!({"body": "a\\|b"}), "/a%7Cb"),
        (json!({"body": "{Rome"}), "/%7BRome"),
    ];
    for (arguments, target) in cases {
        let answer = world.post("/api/dispatch", &with(arguments.clone(), &json!({"key": "WEATHER"}))).await;
        assert_eq!(answer.json()["ok"], true, "{arguments}: {}", answer.text);
        assert_eq!(upstream.seen().last().unwrap().target, target, "{arguments}");
    }
    let both = world.post("/api/dispatch", &json!({"key": "WEATHER", "body": "Rome", "args": ["Rome"]})).await;
    assert_eq!((both.status, both.error()), (400, "invalid_request".to_owned()));
    world.stop().await;
}

#[tokio::test]
async fn a_row_without_a_schema_wants_each_of_its_places_filled_and_no_more() {
    let (world, upstream) = world().await;
    world.create(&http("TWO", &format!("GET {}/$1/$2", upstream.origin()), "a | b", "")).await;
    world.create(&http("REST", &format!("POST {}/$1", upstream.origin()), "a | b", "{\"rest\":\"$2+\"}")).await;
    let cases = [
        ("TWO", json!({"body": "x"}), "missing_argument:$2"),
        ("TWO", json!({}), "missing_argument:$1"),
        ("TWO", json!({"body": "x|y|z"}), "extra_arguments:expected 2, got 3"),
        ("TWO", json!({"args": {"a": "x"}}), "missing_argument:b"),
        ("TWO", json!({"args": {"a": "x", "b": "y", "c": "z"}}), "args_invalid::additionalProperties"),
        ("REST", json!({"body": "x"}), "missing_argument:$2"),
    ];
    for (key, arguments, error) in cases {
        let answer = world.post("/api/dispatch", &with(arguments, &json!({"key": key}))).await;
        assert_eq!((answer.status, answer.error()), (400, error.to_owned()), "{}", answer.text);
    }
    assert_eq!(upstream.count(), 0);
    assert_eq!(world.invoke("REST", "x|y|z\\|w").await.json()["ok"], true);
    assert_eq!(last_body(&upstream), "{\"rest\":\"y|z|w\"}");
    world.create(&with(echo("ECHO"), &json!({"content": "# WHAT: x\n# EX: x"}))).await;
    assert_eq!(world.invoke("ECHO", "").await.json()["ok"], true, "a row without a template passes nothing on");
    world.stop().await;
}

#[tokio::test]
async fn a_property_that_nobody_knows_is_remarked_on_where_the_schema_allows_it() {
    let (world, upstream) = world().await;
    let schema = json!({"input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}});
    world.create(&with(http("ROW", &format!("GET {}/$1", upstream.origin()), "a", ""), &schema)).await;
    let answer = world.call("ROW", &json!({"a": "x", "colour": "red"})).await.json();
    assert_eq!((&answer["ok"], &answer["warnings"]), (&json!(true), &json!(["unknown_argument:colour"])), "{answer}");
    world.stop().await;
}

#[tokio::test]
async fn arguments_that_no_text_of_a_database_can_hold_are_kept_all_the_same() {
    let (world, upstream) = world().await;
    let schema = json!({"input_schema": {"type": "object", "properties": {"a": {"type": "string"}}}});
    let row = with(http("ROW", &format!("POST {}/", upstream.origin()), "a", "{\"a\":$1}"), &schema);
    world.create(&row).await;
    for args in [json!({"a": "x\u{0}y"}), json!({"a": "x", "odd\u{0}name": 1}), json!({"a": "\u{fffe}\u{10ffff}\u{1}"})]
    {
        let answer = world.call("ROW", &args).await;
        assert_eq!((answer.status, &answer.json()["ok"]), (200, &json!(true)), "{args}: {}", answer.text);
        assert_eq!(serde_json::from_str::<Value>(&last_body(&upstream)).unwrap()["a"], args["a"]);
        let receipt = world.get(&format!("/api/dispatch?receipt={}", answer.id())).await.json();
        let input: Value = serde_json::from_str(receipt["input"]["text"].as_str().unwrap()).unwrap();
        assert_eq!(input["args"], args);
    }
    world.stop().await;
}

#[tokio::test]
async fn json_that_two_readers_could_understand_differently_is_refused() {
    let (world, upstream) = world().await;
    world.create(&http("ROW", &format!("POST {}/", upstream.origin()), "a", "$1")).await;
    let twice = raw(&world, "{\"key\":\"ROW\",\"args\":{\"a\":{\"k\":1,\"k\":2}}}".to_owned()).await;
    assert_eq!(twice.status, 400, "{}", twice.text);
    let twice = raw(&world, "{\"key\":\"ROW\",\"key\":\"OTHER\",\"body\":\"x\"}".to_owned()).await;
    assert_eq!(twice.status, 400, "{}", twice.text);
    assert_eq!(upstream.count(), 0);
    world.stop().await;
}
