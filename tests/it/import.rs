//! Many rows as one write: what is taken, what is refused and on which line, and that a copy is the book.

use callbook_tests::book::{echo, flow, with};
use callbook_tests::world::{World, send};
use reqwest::Method;
use serde_json::{Value, json};

fn lines(rows: &[Value]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

/// `(line, key, error)` of every refused line.
fn refused(answer: &Value) -> Vec<(u64, Option<&str>, &str)> {
    let lines = answer["refused"].as_array().unwrap().iter();
    lines.map(|line| (line["line"].as_u64().unwrap(), line["key"].as_str(), line["error"].as_str().unwrap())).collect()
}

fn counts(answer: &Value) -> (u64, u64, u64) {
    let count = |name: &str| answer[name].as_u64().unwrap();
    (count("created"), count("replaced"), count("unchanged"))
}

#[tokio::test]
async fn one_refused_line_keeps_an_atomic_import_from_changing_anything() {
    let world = World::start().await;
    let bad = with(echo("BAD"), &json!({"content": ""}));
    let text = lines(&[echo("A"), bad, echo("B")]);
    let answer = world.import("", text.clone()).await;
    let told = answer.json();
    assert_eq!((answer.status, &told["ok"], counts(&told)), (422, &json!(false), (0, 0, 0)), "{told}");
    assert_eq!(refused(&told), [(2, Some("BAD"), "registry_hygiene_refused: missing_description")]);
    assert_eq!(world.get("/api/directory").await.json()["count"], 0);

    let answer = world.import("?mode=each", text).await;
    let told = answer.json();
    assert_eq!((answer.status, &told["ok"], counts(&told)), (200, &json!(true), (2, 0, 0)), "{told}");
    assert_eq!(refused(&told), [(2, Some("BAD"), "registry_hygiene_refused: missing_description")]);
    assert_eq!(told["revision"], 1, "one import is one revision");
    world.stop().await;
}

#[tokio::test]
async fn a_known_key_is_refused_replaced_or_skipped_as_the_import_says() {
    let world = World::start().await;
    world.create(&echo("A")).await;
    world.create(&echo("B")).await;
    let text = lines(&[echo("A"), with(echo("B"), &json!({"category": "new"})), echo("C")]);
    let told = world.import("", text.clone()).await.json();
    assert_eq!(refused(&told), [(2, Some("B"), "already_exists")], "what says what is stored is no conflict");
    let told = world.import("?on_conflict=refuse&mode=each", text.clone()).await.json();
    assert_eq!(counts(&told), (1, 0, 1), "{told}");
    let told = world.import("?on_conflict=skip", text.clone()).await.json();
    assert_eq!((counts(&told), world.row("B").await["category"].clone()), ((0, 0, 3), Value::Null), "{told}");
    let told = world.import("?on_conflict=replace", text.clone()).await.json();
    assert_eq!(counts(&told), (0, 1, 2), "{told}");
    let stored = world.row("B").await;
    assert_eq!((&stored["category"], &stored["version"]), (&json!("new"), &json!(2)));
    let revision = stored["revision"].clone();
    let told = world.import("?on_conflict=replace", text).await.json();
    assert_eq!((counts(&told), world.row("B").await["revision"].clone()), ((0, 0, 3), revision), "{told}");
    world.stop().await;
}

#[tokio::test]
async fn every_line_that_cannot_be_read_is_named_by_its_number() {
    let world = World::start().await;
    let text = format!(
        "\u{feff}{}\n\n{{\"key\": \"OPEN\",\n[1]\n\"text\"\nnull\n{}\r\n{}\n{}\n{}",
        echo("A"),
        json!({"type": "fn"}),
        json!({"key": "9BAD", "type": "fn"}),
        json!({"key": "T", "type": "prompt", "content": "x"}),
        echo("Z")
    );
    let told = world.import("?mode=each", text).await.json();
    let numbers: Vec<_> = refused(&told).iter().map(|(line, key, _)| (*line, *key)).collect();
    assert_eq!(
        numbers,
        [(3, None), (4, None), (5, None), (6, None), (7, None), (8, Some("9BAD")), (9, Some("T"))],
        "{told}"
    );
    assert!(refused(&told).iter().all(|(.., error)| *error == "invalid_request"), "{told}");
    assert_eq!(counts(&told).0, 2);
    world.stop().await;
}

#[tokio::test]
async fn a_list_is_taken_as_lines_are_and_its_places_are_the_numbers() {
    let world = World::start().await;
    let list = json!([echo("A"), 7, echo("B"), echo("A")]);
    let told = world.import("?mode=each", format!("  \n{list}")).await.json();
    assert_eq!(
        (refused(&told), counts(&told)),
        (vec![(2, None, "invalid_request"), (4, Some("A"), "already_exists")], (2, 0, 0))
    );
    let as_json = world.owner(Method::POST, "/api/directory:import?on_conflict=replace").json(&json!([echo("A")]));
    assert_eq!(counts(&send(as_json).await.json()), (0, 0, 1));
    for broken in ["[{\"key\":", "[]x", "[{},]"] {
        let answer = world.import("", broken).await;
        assert_eq!((answer.status, answer.error()), (400, "invalid_request".to_owned()), "{broken}: {}", answer.text);
    }
    let not_text = world.import("", vec![b'{', 0xff, b'}']).await;
    assert_eq!((not_text.status, not_text.error()), (400, "invalid_request".to_owned()));
    let nothing = world.import("", "").await.json();
    assert_eq!((&nothing["ok"], counts(&nothing)), (&json!(true), (0, 0, 0)), "{nothing}");
    world.stop().await;
}

#[tokio::test]
async fn references_are_looked_at_after_the_whole_import() {
    let world = World::start().await;
    let rows = [flow("OUTER", "INNER: $1 > GONE: $PREV"), flow("INNER", "STEP: $1"), echo("STEP")];
    let told = world.import("", lines(&rows)).await.json();
    assert_eq!(told["warnings"], json!(["OUTER: unknown_step:GONE"]));
    let one_by_one = World::start().await;
    for row in rows.iter().rev() {
        one_by_one.create(row).await;
    }
    for key in ["OUTER", "INNER", "STEP"] {
        assert_eq!(world.row(key).await["contract_hash"], one_by_one.row(key).await["contract_hash"], "{key}");
    }
    let moved = world.import("?on_conflict=replace", lines(&[with(echo("STEP"), &json!({"target": "noop"}))])).await;
    assert_eq!(counts(&moved.json()), (0, 1, 0));
    assert_ne!(world.row("OUTER").await["contract_hash"], one_by_one.row("OUTER").await["contract_hash"]);
    world.stop().await;
    one_by_one.stop().await;
}

#[tokio::test]
async fn an_import_needs_the_right_to_edit_each_of_its_rows() {
    let world = World::start().await;
    let team = world.principal("team", &json!([{"may": "edit", "prefix": "TEAM_"}])).await;
    let text = lines(&[echo("TEAM_A"), echo("OTHER")]);
    let nobody = send(world.anyone(Method::POST, "/api/directory:import").body(text.clone())).await;
    assert_eq!((nobody.status, nobody.error()), (401, "unauthorized".to_owned()));
    let import = |how: &str| {
        world
            .bearer(&team, Method::POST, &format!("/api/directory:import{how}"))
            .header("content-type", "application/x-ndjson")
            .body(text.clone())
    };
    let told = send(import("")).await.json();
    assert_eq!(refused(&told), [(2, Some("OTHER"), "forbidden")], "{told}");
    assert_eq!(counts(&send(import("?mode=each")).await.json()), (1, 0, 0));
    assert_eq!(world.get("/api/directory/OTHER").await.status, 404);
    let exported = send(world.bearer(&team, Method::GET, "/api/directory:export")).await;
    assert_eq!(exported.text.lines().count(), 1, "{}", exported.text);
    world.stop().await;
}

#[tokio::test]
async fn a_row_keeps_its_gates_in_an_import_too() {
    let world = World::start().await;
    let gated = with(echo("TEAM_A"), &json!({"sensitive": true, "input_schema": {"type": "object"}}));
    world.create(&gated).await;
    let team = world.principal("team", &json!([{"may": "edit", "prefix": ""}])).await;
    let open = lines(&[echo("TEAM_A")]);
    let request = world
        .bearer(&team, Method::POST, "/api/directory:import?on_conflict=replace")
        .header("content-type", "application/x-ndjson")
        .body(open.clone());
    assert_eq!(refused(&send(request).await.json()), [(1, Some("TEAM_A"), "forbidden")]);
    let patch = world.bearer(&team, Method::PATCH, "/api/directory/TEAM_A").json(&json!({"sensitive": false}));
    let told = send(patch).await.json();
    assert_eq!((&told["error"], &told["needs"]), (&json!("forbidden"), &json!("approve:TEAM_A")), "{told}");
    assert_eq!(counts(&world.import("?on_conflict=replace", open).await.json()), (0, 1, 0));
    world.stop().await;
}

#[tokio::test]
async fn an_import_is_at_most_64_mib() {
    let world = World::start().await;
    let row = echo("A").to_string();
    let fits = format!("{row}{}", " ".repeat(64 * 1024 * 1024 - row.len()));
    let answer = world.import("", fits.clone()).await;
    assert_eq!((answer.status, counts(&answer.json())), (200, (1, 0, 0)), "{}", answer.text);
    let long = send(
        world
            .owner(Method::POST, "/api/directory:import")
            .header("content-type", "application/x-ndjson")
            .body(fits + " "),
    )
    .await;
    assert_eq!((long.status, long.error()), (413, "request_too_large".to_owned()), "{}", long.text);
    world.stop().await;
}

#[tokio::test]
async fn a_copy_of_a_book_has_the_hashes_and_the_stamp_of_the_book() {
    let world = World::start().await;
    let properties = json!({"x": {"maximum": 9_007_199_254_740_993_u64}, "y": {"multipleOf": 1.10}});
    let odd = json!({"key": "ns.Odd-1", "type": "fn", "target": "echo", "seq": -3, "planner_rank": 0,
        "content": "# WHAT: Ünïcode 😀\n# ARGS: $1=x | $2=y\n# EX: a\\|b|c\n# SAFE: yes\n[\"$2+\", {\"a\": 1.10}]",
        "input_schema": {"type": "object", "properties": properties}, "examples": [{"x": 1}, "a|b", ["p"]]});
    for row in [
        odd,
        echo("STEP"),
        with(echo("OFF"), &json!({"enabled": false})),
        flow("FLOW", "STEP: $1 => A > ns.Odd-1: $A|$1"),
    ] {
        world.create(&row).await;
    }
    world.change("STEP", &json!({"category": "moved"})).await;
    let (text, copy) = (world.export().await, World::start().await);
    let told = copy.import("", text.clone()).await.json();
    assert_eq!((&told["ok"], counts(&told)), (&json!(true), (4, 0, 0)), "{told}");
    assert_eq!(copy.export().await, text);
    for key in ["ns.Odd-1", "STEP", "OFF", "FLOW"] {
        let (one, two) = (world.row(key).await, copy.row(key).await);
        assert_eq!((&one["contract_hash"], &one["text_hash"]), (&two["contract_hash"], &two["text_hash"]), "{key}");
    }
    let stamp = |answer: Value| answer["stamp"].clone();
    assert_eq!(
        stamp(world.get("/api/directory:stamp").await.json()),
        stamp(copy.get("/api/directory:stamp").await.json())
    );
    assert_eq!(counts(&world.import("", text).await.json()), (0, 0, 4), "a book takes its own export as nothing new");
    world.stop().await;
    copy.stop().await;
}

#[tokio::test]
async fn third_party_rows_are_marked_where_the_import_says_so() {
    let world = World::start().await;
    let text = lines(&[echo("A"), with(echo("B"), &json!({"provenance": "owner"}))]);
    assert_eq!(counts(&world.import("?provenance=third_party", text).await.json()).0, 2);
    assert_eq!(
        (&world.row("A").await["provenance"], &world.row("B").await["provenance"]),
        (&json!("third_party"), &json!("owner"))
    );
    let contract = world.look("/api/dispatch?key=A").await.json();
    assert!(contract["untrusted_text"].is_object() || contract["untrusted_text"] == json!(true), "{contract}");
    world.stop().await;
}
