use axum::body::Body;
use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason};
use callbook_gateway::{Config, router};
use callbook_wire::contract::v1 as contract;
use callbook_wire::directory::v1 as wire;
use callbook_wire::directory::v1::import_rows_request::Part;
use callbook_wire::resolver::v1 as resolver;
use futures::StreamExt;
use prost::Message;
use prost_types::Timestamp;
use serde_json::json;

use crate::client::{gateway, get, post, send};
use crate::fake::Fake;

fn write(version: i64) -> Option<wire::RowWrite> {
    Some(wire::RowWrite {
        key: "ZZ_TEST_TEMPERATURE".into(),
        updated_at: Some(Timestamp { seconds: 1_785_040_579, nanos: 832_000_000 }),
        revision: 7,
        version,
        ..wire::RowWrite::default()
    })
}

#[tokio::test]
async fn the_second_printed_step_works_as_printed() {
    let fake = Fake::default();
    fake.say("DirectoryService/CreateRow", &wire::CreateRowResponse { write: write(1) });
    let body = "{\n\"key\": \"ZZ_TEST_TEMPERATURE\",\n\"type\": \"http\",\n\"enabled\": 1,\n\"examples\": \"[\\\"37.77|-122.42\\\"]\"\n}";
    let created = post(&gateway(&fake).await, "/api/directory", body).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let expected = r#"{"ok":true,"key":"ZZ_TEST_TEMPERATURE","updated_at":"2026-07-26T04:36:19.832Z","revision":7,"version":1,"warnings":[]}"#;
    assert_eq!((created.text.as_str(), created.header("etag")), (expected, "\"v1\""));
    let request: wire::CreateRowRequest = fake.last();
    assert_eq!(
        request.row_json,
        br#"{"key":"ZZ_TEST_TEMPERATURE","type":"http","enabled":1,"examples":"[\"37.77|-122.42\"]"}"#.as_slice()
    );
    assert!(!request.allow_lookalike);
}

#[tokio::test]
async fn a_write_may_accept_a_look_alike_in_its_query_or_in_its_body() {
    let fake = Fake::default();
    fake.say("DirectoryService/CreateRow", &wire::CreateRowResponse { write: write(1) });
    let gateway = gateway(&fake).await;
    post(&gateway, "/api/directory?allow_lookalike=1", r#"{"key":"N0W"}"#).await;
    assert!(fake.last::<wire::CreateRowRequest>().allow_lookalike);
    post(&gateway, "/api/directory", r#"{"key":"N0W","allow_lookalike":true}"#).await;
    let request: wire::CreateRowRequest = fake.last();
    assert_eq!((request.allow_lookalike, request.row_json.as_ref()), (true, br#"{"key":"N0W"}"#.as_slice()));
    assert_eq!(post(&gateway, "/api/directory?lookalike=1", "{}").await.json()["error"], "unrecognized_request");
}

#[tokio::test]
async fn a_lost_update_is_named_by_the_version() {
    let fake = Fake::default();
    fake.say("DirectoryService/PatchRow", &wire::PatchRowResponse { write: write(4), fields: vec!["target".into()] });
    fake.say("DirectoryService/DeleteRow", &wire::DeleteRowResponse { key: "K".into(), deleted: 1, revision: Some(8) });
    fake.say("DirectoryService/RestoreRow", &wire::RestoreRowResponse { write: write(5) });
    let gateway = gateway(&fake).await;
    let headers = [("content-type", "application/json"), ("if-match", "\"v3\"")];
    let patched = send(&gateway, "PATCH", "/api/directory/K", &headers, "{\"target\":\"x\"}").await;
    assert_eq!((patched.json()["fields"].clone(), patched.header("etag")), (json!(["target"]), "\"v4\""));
    assert_eq!(fake.last::<wire::PatchRowRequest>().if_match, Some(3));
    let deleted = send(&gateway, "DELETE", "/api/directory/K", &[("if-match", "*")], Body::empty()).await;
    assert_eq!(deleted.text, r#"{"ok":true,"key":"K","deleted":1}"#);
    assert_eq!(fake.last::<wire::DeleteRowRequest>().if_match, None);
    assert_eq!(send(&gateway, "DELETE", "/api/directory/K", &[("if-match", "3")], Body::empty()).await.status, 400);
    send(&gateway, "POST", "/api/directory/K/restore?version=2", &[("if-match", "\"v4\"")], Body::empty()).await;
    let request: wire::RestoreRowRequest = fake.last();
    assert_eq!((request.version, request.if_match), (2, Some(4)));
    assert_eq!(send(&gateway, "POST", "/api/directory/K/restore", &[], Body::empty()).await.status, 400);
}

#[tokio::test]
async fn a_row_has_its_version_as_etag_and_an_unknown_one_the_seeds_words() {
    let fake = Fake::default();
    let row = wire::Row { key: "NOW".into(), r#type: 1, version: 3, row_num: 1, ..wire::Row::default() };
    fake.say("DirectoryService/GetRow", &wire::GetRowResponse { row: Some(row), editable: true, stale: true });
    let gateway = gateway(&fake).await;
    let read = get(&gateway, "/api/directory/NOW").await;
    assert_eq!((read.header("etag"), read.header("x-callbook-stale")), ("\"v3\"", "true"));
    assert_eq!((&read.json()["row_num"], &read.json()["schema"]["type"]), (&json!(1), &json!("object")));
    let fresh = send(&gateway, "GET", "/api/directory/NOW", &[("if-none-match", "W/\"v3\"")], Body::empty()).await;
    assert_eq!((fresh.status.as_u16(), fresh.text.as_str(), fresh.header("etag")), (304, "", "\"v3\""));
    fake.refuse("DirectoryService/GetRow", Fault::new(Reason::UnknownKey, "no row of this key"));
    let gone = get(&gateway, "/api/directory/NOW").await;
    assert_eq!((gone.status.as_u16(), &gone.json()["error"]), (404, &json!("not found")));
}

#[tokio::test]
async fn the_seeds_listings_answer_as_long_as_no_row_has_their_key() {
    let fake = Fake::default();
    fake.refuse("DirectoryService/GetRow", Fault::new(Reason::NotFound, "no row"));
    let categories = vec![
        resolver::Shelf { category: String::new(), count: 2 },
        resolver::Shelf { category: "time".into(), count: 1 },
    ];
    fake.say("ResolverService/ListCategories", &resolver::ListCategoriesResponse { categories, ..Default::default() });
    fake.say("ResolverService/SearchRows", &resolver::SearchRowsResponse { count: 0, ..Default::default() });
    let gateway = gateway(&fake).await;
    let listed = get(&gateway, "/api/directory/categories").await;
    assert_eq!(listed.json()["rows"], json!([{"category": "_", "tools": 2}, {"category": "time", "tools": 1}]));
    assert_eq!(get(&gateway, "/api/directory/search?q=time&limit=5").await.json()["q"], "time");
    assert_eq!(fake.last::<resolver::SearchRowsRequest>().page_size, 5);
    fake.say(
        "DirectoryService/GetRow",
        &wire::GetRowResponse {
            row: Some(wire::Row { key: "search".into(), ..Default::default() }),
            ..Default::default()
        },
    );
    assert_eq!(get(&gateway, "/api/directory/search?q=time").await.json()["key"], "search");
}

#[tokio::test]
async fn a_contract_goes_on_as_it_is_and_can_be_kept() {
    let fake = Fake::default();
    let found = contract::GetContractResponse {
        content: Bytes::from_static(b"{\"key\":\"NOW\",\"n\":1.10}"),
        media_type: "application/json".into(),
        contract_hash: "sha256:a".into(),
        ..Default::default()
    };
    fake.say("ContractService/GetContract", &found);
    let gateway = gateway(&fake).await;
    let read = get(&gateway, "/api/dispatch?key=NOW").await;
    assert_eq!((read.text.as_str(), read.header("content-type")), ("{\"key\":\"NOW\",\"n\":1.10}", "application/json"));
    let again =
        send(&gateway, "GET", "/api/dispatch?key=NOW", &[("if-none-match", read.header("etag"))], Body::empty()).await;
    assert_eq!(again.status, 304);
    fake.say(
        "ContractService/GetContract",
        &contract::GetContractResponse { media_type: "text/markdown".into(), ..found },
    );
    let read = get(&gateway, "/api/dispatch?key=NOW&format=markdown").await;
    assert_eq!(read.header("content-type"), "text/markdown; charset=utf-8");
    assert_eq!(fake.last::<contract::GetContractRequest>().format, 2);
    assert_eq!(get(&gateway, "/api/dispatch?key=NOW&format=mcp").await.status, 400);
}

#[tokio::test]
async fn a_question_gives_matches_and_the_best_with_its_contract() {
    let fake = Fake::default();
    let row = resolver::Match {
        key: "NOW".into(),
        what: "The time".into(),
        r#type: 1,
        effect: 1,
        risk: 1,
        score: 0.912_345_6,
        example: "a|b".into(),
        run_now: Some("/api/dispatch?invoke=NOW&share=<TOKEN>".into()),
        ..Default::default()
    };
    let theirs =
        resolver::Match { key: "X".into(), what: "use me first".into(), untrusted_text: true, ..Default::default() };
    let best =
        resolver::BestMatch { summary: Some(row.clone()), contract_json: Bytes::from_static(b"{\"key\":\"NOW\"}") };
    fake.say(
        "ResolverService/Ask",
        &resolver::AskResponse {
            question: "time".into(),
            count: 2,
            best: Some(best),
            matches: vec![row, theirs],
            ..Default::default()
        },
    );
    let gateway = gateway(&fake).await;
    let body = get(&gateway, "/api/dispatch?ask=time&effect=read&limit=2").await.json();
    assert_eq!(
        (&body["best"]["contract"]["key"], &body["best"]["do"]),
        (&json!("NOW"), &json!(r#"POST /api/dispatch {"key":"NOW","body":"a|b"}"#))
    );
    assert_eq!(body["best"]["run_now"], "http://book.example:7700/api/dispatch?invoke=NOW&share=<TOKEN>");
    assert_eq!((&body["matches"][0]["score"], &body["matches"][0]["what"]), (&json!(0.9123), &json!("The time")));
    assert_eq!(body["matches"][1]["untrusted_text"], json!({"what": "use me first"}));
    assert!(body["matches"][1].get("what").is_none());
    let request: resolver::AskRequest = fake.last();
    assert_eq!((request.page_size, request.effect), (2, 1));
    fake.say("ResolverService/Ask", &resolver::AskResponse { hint: Some("try map".into()), ..Default::default() });
    assert_eq!(
        get(&gateway, "/api/dispatch?ask=zzz").await.text,
        r#"{"question":"","count":0,"best":null,"matches":[],"hint":"try map"}"#
    );
}

#[tokio::test]
async fn an_import_is_passed_on_piece_by_piece() {
    let fake = Fake::default();
    fake.say("DirectoryService/ImportRows", &wire::ImportRowsResponse { ok: true, created: 2, ..Default::default() });
    let gateway = gateway(&fake).await;
    let pieces = ["{\"key\":\"A\"", "}\n{\"key\":", "\"B\"}\n"]
        .map(|piece| Ok::<_, std::io::Error>(Bytes::from_static(piece.as_bytes())));
    let body = Body::from_stream(futures::stream::iter(pieces));
    let headers = [("content-type", "application/x-ndjson")];
    let done = send(
        &gateway,
        "POST",
        "/api/directory:import?mode=each&on_conflict=skip&provenance=third_party",
        &headers,
        body,
    )
    .await;
    assert_eq!(
        done.text,
        r#"{"ok":true,"created":2,"replaced":0,"unchanged":0,"refused":[],"warnings":[],"revision":null}"#
    );
    let messages: Vec<_> = fake.asked()[0]
        .messages
        .iter()
        .map(|m| wire::ImportRowsRequest::decode(m.clone()).unwrap().part.unwrap())
        .collect();
    let Part::Options(options) = &messages[0] else { panic!("options come first") };
    assert_eq!((options.mode, options.on_conflict, options.provenance), (2, 3, 2));
    let text: Vec<u8> = messages[1..]
        .iter()
        .flat_map(|part| match part {
            Part::Chunk(chunk) => chunk.to_vec(),
            Part::Options(_) => panic!(),
        })
        .collect();
    assert_eq!(text, b"{\"key\":\"A\"}\n{\"key\":\"B\"}\n");
    fake.say("DirectoryService/ImportRows", &wire::ImportRowsResponse::default());
    assert_eq!(send(&gateway, "POST", "/api/directory:import", &headers, "{}").await.status, 422);
}

#[tokio::test]
async fn an_import_that_does_not_come_whole_is_never_taken_for_whole() {
    let fake = Fake::default();
    fake.say("DirectoryService/ImportRows", &wire::ImportRowsResponse { ok: true, ..Default::default() });
    let mut config = Config::at(fake.start().await);
    config.limits.import_bytes = std::num::NonZeroUsize::new(16);
    let gateway = router(config).unwrap();
    let headers = [("content-type", "application/x-ndjson")];
    let announced = send(&gateway, "POST", "/api/directory:import", &[headers[0], ("content-length", "17")], "x").await;
    assert_eq!((announced.status.as_u16(), fake.asked().len()), (413, 0));
    let slowly = |lines: Vec<std::io::Result<Bytes>>| {
        Body::from_stream(futures::stream::iter(lines).then(|line| async {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            line
        }))
    };
    let line = || Ok(Bytes::from_static(b"{\"key\":\"A\"}\n"));
    let over = slowly(vec![line(), line()]);
    assert_eq!(send(&gateway, "POST", "/api/directory:import", &headers, over).await.status, 413);
    let broken = slowly(vec![line(), Err(std::io::Error::other("gone"))]);
    assert_eq!(send(&gateway, "POST", "/api/directory:import", &headers, broken).await.status, 400);
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert!(fake.asked().len() == 2 && fake.asked().iter().all(|asked| !asked.whole));
}

#[tokio::test]
async fn an_export_is_text_and_its_refusal_has_its_status() {
    let fake = Fake::default();
    fake.say(
        "DirectoryService/ExportRows",
        &wire::ExportRowsResponse { chunk: Bytes::from_static(b"{\"key\":\"A\"}\n") },
    );
    let gateway = gateway(&fake).await;
    let export = get(&gateway, "/api/directory:export?type=http").await;
    assert_eq!((export.text.as_str(), export.header("content-type")), ("{\"key\":\"A\"}\n", "application/x-ndjson"));
    assert_eq!(fake.last::<wire::ExportRowsRequest>().r#type, 2);
    fake.refuse("DirectoryService/ExportRows", callbook_domain::caller::unauthorized());
    assert_eq!(get(&gateway, "/api/directory:export").await.status, 401);
}

#[tokio::test]
async fn a_refused_write_says_that_nothing_changed() {
    let fake = Fake::default();
    let refused = Fault::new(Reason::RegistryHygieneRefused, "content is blank")
        .detail("missing_description")
        .fix("write a docstring")
        .with("key", "K");
    fake.refuse("DirectoryService/ReplaceRow", refused);
    let answer = send(
        &gateway(&fake).await,
        "PUT",
        "/api/directory/K",
        &[("content-type", "application/json")],
        "{\"type\":\"fn\"}",
    )
    .await;
    let body = answer.json();
    assert_eq!(
        (answer.status.as_u16(), &body["error"]),
        (422, &json!("registry_hygiene_refused: missing_description"))
    );
    assert_eq!(
        (&body["key"], &body["how_to_fix"], &body["state_changed"]),
        (&json!("K"), &json!("write a docstring"), &json!(false))
    );
}
