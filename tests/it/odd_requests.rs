//! Requests that nobody sends by mistake: each is answered, and none with a 5xx.

use callbook_tests::book::echo;
use callbook_tests::door::send;
use callbook_tests::world::World;
use reqwest::Method;
use serde_json::json;

/// Texts that break careless readers, as they stand in a query.
const ODD: [&str; 16] = [
    "",
    "%00",
    "a%00b",
    "%EF%BF%BF",
    "%F4%8F%BF%BF",
    "%27%20or%201=1--",
    "%25",
    "%2500",
    "%5C",
    "%C2%85",
    "%E2%80%AE",
    "-1",
    "0",
    "99999999999999999999",
    "%7B%7D",
    "inv_00000000000000000000000000",
];

#[tokio::test]
async fn odd_values_in_any_query_are_answered_without_a_fault_of_ours() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    let called = world.invoke("ECHO", "x").await;
    assert_eq!(called.status, 200);
    let paths = [
        "/api/dispatch?ask=",
        "/api/dispatch?key=",
        "/api/dispatch?map=",
        "/api/dispatch?confirm=",
        "/api/dispatch?receipt=",
        "/api/dispatch?registry=1&category=",
        "/api/dispatch?registry=1&cursor=",
        "/api/dispatch?registry=1&limit=",
        "/api/dispatch?ask=x&category=",
        "/api/dispatch?ask=x&cursor=",
        "/api/dispatch?ask=x&effect=",
        "/api/dispatch?key=ECHO&format=",
        "/api/directory?category=",
        "/api/directory?cursor=",
        "/api/directory?type=",
        "/api/directory?limit=",
        "/api/directory:list?namespace=",
        "/api/directory:list?cursor=",
        "/api/directory:describe?key=",
        "/api/directory:describe?namespace=",
        "/api/directory:search?q=",
        "/api/directory:search?q=x&category=",
        "/api/directory:search?q=x&cursor=",
        "/api/directory:categories?cursor=",
        "/api/directory:export?category=",
        "/api/directory/ECHO/history?cursor=",
        "/api/directory/ECHO/history?limit=",
        "/api/invocations?key=",
        "/api/invocations?actor=",
        "/api/invocations?parent=",
        "/api/invocations?cursor=",
        "/api/invocations?since=",
        "/api/invocations?status=",
        "/api/invocations/stats?key=",
        "/api/invocations/stats?actor=",
        "/api/recommended?key=",
        "/api/recommended?cursor=",
        "/api/principals?cursor=",
        "/receipt/",
        "/api/directory/",
    ];
    let mut faults = Vec::new();
    for path in paths {
        for odd in ODD {
            let answer = world.get(&format!("{path}{odd}")).await;
            if answer.status >= 500 {
                faults.push(format!("{path}{odd}: {}", answer.text));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    world.stop().await;
}

#[tokio::test]
async fn odd_bodies_of_any_write_are_answered_without_a_fault_of_ours() {
    let world = World::start().await;
    world.create(&echo("ECHO")).await;
    world.create(&echo("PATCHED")).await;
    let odd = ["\u{0}", "a\u{0}b", "\u{ffff}", "\u{202e}", "'; drop table directory;--", "\\", "%00", "ECHO", ""];
    let mut faults = Vec::new();
    for text in odd {
        let row = echo("ROW");
        let columns = [
            "key",
            "type",
            "target",
            "auth",
            "content",
            "category",
            "allowed_categories",
            "runner",
            "includes",
            "input_schema",
            "output_schema",
            "examples",
            "provenance",
            "seq",
            "timeout_ms",
        ];
        for column in columns {
            for value in [json!(text), json!([text]), json!({text: text}), json!([[text]])] {
                let mut row = row.clone();
                row[column] = value;
                let answers = [
                    world.post("/api/directory", &row).await,
                    world.put("ROW", &row).await,
                    world.patch("PATCHED", &json!({column: row[column]})).await,
                    world.import("?mode=each&on_conflict=replace", row.to_string()).await,
                ];
                let answers = answers.iter().filter(|answer| answer.status >= 500);
                faults.extend(answers.map(|answer| format!("{column} {}: {}", row[column], answer.text)));
            }
        }
        for body in [
            json!({"key": text, "body": text}),
            json!({"key": "ECHO", "args": [text]}),
            json!({"key": "ECHO", "args": {text: text}}),
            json!({"key": "ECHO", "body": text, "idempotency_key": text}),
            json!({"key": "ECHO", "repairs": text}),
            json!({"replay": text}),
        ] {
            let answer = world.post("/api/dispatch", &body).await;
            if answer.status >= 500 {
                faults.push(format!("{body}: {}", answer.text));
            }
        }
        for (path, body) in [
            ("/api/recommended", json!({"pattern": text, "key": "ECHO", "reason": text})),
            ("/api/recommended", json!({"pattern": "x", "key": text})),
            ("/api/principals", json!({"name": text, "grants": [{"may": "invoke", "prefix": text}]})),
            ("/api/directory/ECHO/restore", json!({})),
        ] {
            let answer = send(world.owner(Method::POST, path).json(&body)).await;
            if answer.status >= 500 {
                faults.push(format!("{path} {body}: {}", answer.text));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    world.stop().await;
}
