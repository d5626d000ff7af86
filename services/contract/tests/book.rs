//! The book through its two services, on a real Postgres.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;

use callbook_caller::Callers;
use callbook_contract::grpc::Grpc;
use callbook_contract::{App, services};
use callbook_domain::clock::Clock;
use callbook_domain::compile::Rules;
use callbook_domain::fault::{Fault, Reason};
use callbook_runtime::grpc::from_status;
use callbook_store::directory::Directory;
use callbook_wire::contract::v1 as contract;
use callbook_wire::contract::v1::contract_service_client::ContractServiceClient;
use callbook_wire::contract::v1::contract_service_server::ContractServiceServer;
use callbook_wire::directory::v1 as wire;
use callbook_wire::directory::v1::directory_service_client::DirectoryServiceClient;
use callbook_wire::directory::v1::directory_service_server::DirectoryServiceServer;
use serde_json::{Value, json};
use sqlx::PgPool;
use time::macros::datetime;
use tonic::{Request, Response, Status};

const OWNER: &str = "the owner key of this test";

struct Book {
    rows: DirectoryServiceClient<DirectoryServiceServer<Grpc>>,
    contracts: ContractServiceClient<ContractServiceServer<Grpc>>,
}

async fn book(pool: PgPool) -> Book {
    let clock = Clock::held(datetime!(2026-07-26 04:36:19.832 UTC));
    let directory = Directory::open(pool.clone(), Rules::default(), Vec::new()).await.unwrap();
    let callers = Arc::new(Callers::new(OWNER, pool, clock.clone(), true));
    let (rows, contracts) = services(Arc::new(App { directory, callers, clock }));
    Book { rows: DirectoryServiceClient::new(rows), contracts: ContractServiceClient::new(contracts) }
}

fn owner<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-terminal-key", OWNER.parse().unwrap());
    request
}

fn fault<T: std::fmt::Debug>(answer: Result<Response<T>, Status>) -> Fault {
    from_status(&answer.unwrap_err())
}

fn seed() -> Value {
    json!({
        "key": "ZZ_TEST_TEMPERATURE", "type": "http", "category": "tools", "auth": "bearer:METEO_KEY",
        "target": "GET https://api.open-meteo.com/v1/forecast?latitude=$1&longitude=$2",
        "content": "# WHAT: Current temperature\n# ARGS: $1=latitude | $2=longitude\n# EX: [ZZ_TEST_TEMPERATURE]37.77|-122.42[/ZZ_TEST_TEMPERATURE]",
        "examples": "[\"37.77|-122.42\"]", "enabled": 1,
    })
}

impl Book {
    async fn create(&mut self, row: &Value) -> Result<Response<wire::CreateRowResponse>, Status> {
        let row_json = row.to_string().into();
        self.rows.create_row(owner(wire::CreateRowRequest { row_json, allow_lookalike: false })).await
    }

    async fn patch(&mut self, key: &str, patch: Value) -> wire::PatchRowResponse {
        let request = wire::PatchRowRequest { key: key.into(), patch_json: patch.to_string().into(), if_match: None };
        self.rows.patch_row(owner(request)).await.unwrap().into_inner()
    }

    async fn import(&mut self, text: String) -> wire::ImportRowsResponse {
        let part = |part| wire::ImportRowsRequest { part: Some(part) };
        let options = part(wire::import_rows_request::Part::Options(wire::ImportOptions::default()));
        let chunks = text
            .into_bytes()
            .chunks(7)
            .map(|chunk| part(wire::import_rows_request::Part::Chunk(chunk.to_vec().into())))
            .collect::<Vec<_>>();
        let parts = tokio_stream::iter(std::iter::once(options).chain(chunks));
        self.rows.import_rows(owner(parts)).await.unwrap().into_inner()
    }

    async fn export(&mut self) -> String {
        let mut stream = self.rows.export_rows(owner(wire::ExportRowsRequest::default())).await.unwrap().into_inner();
        let mut text = Vec::new();
        while let Some(part) = stream.message().await.unwrap() {
            text.extend_from_slice(&part.chunk);
        }
        String::from_utf8(text).unwrap()
    }

    async fn list(&mut self, request: wire::ListRowsRequest) -> wire::ListRowsResponse {
        self.rows.list_rows(request).await.unwrap().into_inner()
    }

    async fn hashes(&mut self) -> Vec<(String, String, String)> {
        let rows = self.list(wire::ListRowsRequest::default()).await.rows;
        rows.into_iter().map(|row| (row.key, row.contract_hash, row.text_hash)).collect()
    }
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_row_is_whole_for_its_editor_and_veiled_for_others(pool: PgPool) {
    let mut book = book(pool).await;
    let written = book.create(&seed()).await.unwrap().into_inner().write.unwrap();
    assert_eq!(
        (written.revision, written.version, &written.warnings[..]),
        (1, 1, &["secret_not_configured:METEO_KEY".to_owned()][..])
    );
    assert_eq!(fault(book.create(&seed()).await).reason(), Reason::AlreadyExists);

    let get = |key: &str| wire::GetRowRequest { key: key.to_owned() };
    let whole = book.rows.get_row(owner(get("ZZ_TEST_TEMPERATURE"))).await.unwrap().into_inner();
    let row = whole.row.unwrap();
    assert!(whole.editable && !whole.stale);
    assert_eq!(
        (row.auth.as_str(), row.row_num, &row.examples[0][..]),
        ("bearer:METEO_KEY", 1, &b"\"37.77|-122.42\""[..])
    );
    let veiled = book.rows.get_row(get("ZZ_TEST_TEMPERATURE")).await.unwrap().into_inner();
    assert!(!veiled.editable);
    assert_eq!(veiled.row.unwrap().auth, "bearer");

    book.patch("ZZ_TEST_TEMPERATURE", json!({"enabled": false})).await;
    assert_eq!(fault(book.rows.get_row(get("ZZ_TEST_TEMPERATURE")).await).reason(), Reason::NotFound);
    assert!(book.rows.get_row(owner(get("ZZ_TEST_TEMPERATURE"))).await.is_ok());
    assert_eq!(book.list(wire::ListRowsRequest::default()).await.count, 0);
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn without_a_credential_nothing_of_a_write_is_looked_at(pool: PgPool) {
    let mut book = book(pool).await;
    let create = wire::CreateRowRequest { row_json: "not json".into(), allow_lookalike: false };
    assert_eq!(fault(book.rows.create_row(create.clone()).await).reason(), Reason::Unauthorized);
    assert_eq!(fault(book.rows.create_row(owner(create)).await).reason(), Reason::InvalidRequest);
    assert_eq!(fault(book.rows.export_rows(wire::ExportRowsRequest::default()).await).reason(), Reason::Unauthorized);
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_contract_is_given_in_three_forms_and_not_for_what_cannot_be_called(pool: PgPool) {
    let mut book = book(pool).await;
    book.create(&seed()).await.unwrap();
    let get = |key: &str, format: i32| contract::GetContractRequest { key: key.to_owned(), format };
    let json = book.contracts.get_contract(get("ZZ_TEST_TEMPERATURE", 0)).await.unwrap().into_inner();
    let value: Value = serde_json::from_slice(&json.content).unwrap();
    assert_eq!((json.media_type.as_str(), json.version, json.revision), ("application/json", 1, 1));
    assert_eq!((&value["contract_hash"], &value["can"]), (&json!(json.contract_hash), &json!(["contract", "confirm"])));
    let long = book.contracts.get_contract(owner(get("ZZ_TEST_TEMPERATURE", 2))).await.unwrap().into_inner();
    assert!(String::from_utf8(long.content.to_vec()).unwrap().starts_with("# ZZ_TEST_TEMPERATURE\n"));
    let types = book.contracts.get_contract(get("ZZ_TEST_TEMPERATURE", 3)).await.unwrap().into_inner();
    assert!(String::from_utf8(types.content.to_vec()).unwrap().contains("latitude: string"));

    let unknown = fault(book.contracts.get_contract(get("ZZ_TEST_TEMPERATUR", 0)).await);
    assert_eq!(unknown.reason(), Reason::UnknownKey);
    assert!(unknown.metadata().contains(&("did_you_mean", r#"["ZZ_TEST_TEMPERATURE"]"#.to_owned())));
    book.patch("ZZ_TEST_TEMPERATURE", json!({"enabled": false})).await;
    let hidden = fault(book.contracts.get_contract(owner(get("ZZ_TEST_TEMPERATURE", 0))).await);
    assert_eq!((hidden.reason(), hidden.metadata()[0].1.as_str()), (Reason::UnknownKey, "ZZ_TEST_TEMPERATURE"));
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn pages_hold_every_row_once_in_the_canonical_order(pool: PgPool) {
    let mut book = book(pool).await;
    let row = |key: &str, seq: Option<i32>| json!({"key": key, "type": "fn", "target": "noop", "seq": seq, "content": "# WHAT: x", "examples": [""]});
    let lines = [row("C", None), row("B", Some(9)), row("A", None), row("D", Some(-1)), row("E", None)]
        .map(|row| row.to_string());
    assert!(book.import(lines.join("\n")).await.ok);
    let (mut keys, mut token) = (Vec::new(), String::new());
    loop {
        let request = wire::ListRowsRequest { page_size: 2, page_token: token, ..wire::ListRowsRequest::default() };
        let page = book.list(request).await;
        assert_eq!(page.count, 5);
        keys.extend(page.rows.into_iter().map(|row| (row.key, row.row_num)));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
        if keys.len() == 2 {
            book.rows
                .delete_row(owner(wire::DeleteRowRequest { key: keys[1].0.clone(), if_match: None }))
                .await
                .unwrap();
            book.create(&row("AA", Some(9))).await.unwrap();
        }
    }
    let expected = [("D", 1), ("B", 2), ("A", 3), ("C", 4), ("E", 5)].map(|(key, at)| (key.to_owned(), at));
    assert_eq!(keys, expected);
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn what_is_exported_and_imported_anew_has_the_same_hashes(pool: PgPool) {
    let mut book = book(pool).await;
    let schema = json!({"type": "object", "properties": {"n": {"type": "number", "maximum": 9007199254740993u64}}});
    book.create(&seed()).await.unwrap();
    book.create(
        &json!({"key": "STEP", "type": "fn", "target": "echo", "content": "# WHAT: x\n[\"$1\"]", "input_schema": schema,
        "examples": [{"n": 1}], "timeout_ms": 5, "provenance": "third_party"}),
    )
    .await
    .unwrap();
    book.create(&json!({"key": "FLOW", "type": "flow", "content": "# WHAT: x\n# ARGS: n\nSTEP: $1 => A > ZZ_TEST_TEMPERATURE: $A|$1",
        "examples": ["1"], "seq": 3})).await.unwrap();
    let (text, hashes) = (book.export().await, book.hashes().await);
    assert_eq!(text.lines().count(), 3);
    assert!(text.starts_with(r#"{"key":"FLOW","type":"flow","#), "{text}");
    for key in ["FLOW", "STEP", "ZZ_TEST_TEMPERATURE"] {
        book.rows.delete_row(owner(wire::DeleteRowRequest { key: key.into(), if_match: None })).await.unwrap();
    }
    let imported = book.import(text.clone()).await;
    assert_eq!((imported.ok, imported.created, imported.refused.len()), (true, 3, 0), "{imported:?}");
    assert_eq!((book.hashes().await, book.export().await), (hashes, text));
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn versions_tell_what_changed_and_survive_the_row(pool: PgPool) {
    let mut book = book(pool).await;
    book.create(&seed()).await.unwrap();
    assert_eq!(
        book.patch("ZZ_TEST_TEMPERATURE", json!({"category": "weather", "nonsense": 1})).await.fields,
        ["category"]
    );
    let ask = |page_size: u32, page_token: &str| wire::ListRowVersionsRequest {
        key: "ZZ_TEST_TEMPERATURE".into(),
        page_size,
        page_token: page_token.to_owned(),
    };
    let page = book.rows.list_row_versions(owner(ask(1, ""))).await.unwrap().into_inner();
    let newest = &page.versions[0];
    assert_eq!(
        (newest.version, newest.action(), newest.actor.as_str()),
        (2, wire::RowAction::Patch, "owner:terminal-key")
    );
    assert_eq!(
        (newest.changes[0].column.as_str(), &newest.changes[0].after_json.as_ref().unwrap()[..]),
        ("category", &b"\"weather\""[..])
    );
    let page = book.rows.list_row_versions(ask(1, &page.next_page_token)).await.unwrap().into_inner();
    let first = &page.versions[0];
    assert_eq!(
        (first.version, first.action(), first.actor.as_str(), page.next_page_token.as_str()),
        (1, wire::RowAction::Create, "", "")
    );
    assert!(first.after_json.is_none() && first.changes.iter().any(|change| change.column == "content"));
    assert!(first.changes.iter().all(|change| change.after_json.as_deref().is_none_or(|json| json == b"null")));

    book.rows
        .delete_row(owner(wire::DeleteRowRequest { key: "ZZ_TEST_TEMPERATURE".into(), if_match: None }))
        .await
        .unwrap();
    assert_eq!(fault(book.rows.list_row_versions(ask(0, "")).await).reason(), Reason::NotFound);
    let kept = book.rows.list_row_versions(owner(ask(0, ""))).await.unwrap().into_inner();
    assert_eq!((kept.versions.len(), kept.versions[0].action()), (3, wire::RowAction::Delete));
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_check_says_what_a_write_would_and_shapes_the_example(pool: PgPool) {
    let mut book = book(pool).await;
    let check = |row: &Value| {
        let subject = Some(wire::check_row_request::Subject::RowJson(row.to_string().into()));
        owner(wire::CheckRowRequest { subject, allow_lookalike: false })
    };
    let report = book.rows.check_row(check(&seed())).await.unwrap().into_inner();
    assert!(report.violations.is_empty(), "{report:?}");
    let shaped: Value = serde_json::from_slice(report.shaped_json.as_ref().unwrap()).unwrap();
    assert_eq!(shaped["url"], "https://api.open-meteo.com/v1/forecast?latitude=37.77&longitude=-122.42");
    assert_eq!(shaped["secret"], json!({"name": "METEO_KEY", "allowed": false}));
    assert!(book.export().await.is_empty(), "a check stores nothing");

    book.create(&seed()).await.unwrap();
    let twin = json!({"key": "zz_test_temperature", "type": "flow", "content": "# WHAT: x\nzz_test_temperature: > NOPE: 1", "runner": "edge"});
    let report = book.rows.check_row(check(&twin)).await.unwrap().into_inner();
    let codes: Vec<&str> = report.violations.iter().map(|violation| violation.code.as_str()).collect();
    assert_eq!(codes, ["lookalike_key", "cycle"]);
    for warning in ["unknown_step:NOPE", "pool_not_served:edge", "keyless_missing_examples"] {
        assert!(report.warnings.iter().any(|each| each == warning), "{warning} is not in {:?}", report.warnings);
    }
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_pool_that_nobody_serves_is_remarked_on(pool: PgPool) {
    let mut book = book(pool.clone()).await;
    let row = |key: &str| json!({"key": key, "type": "fn", "target": "noop", "content": "# WHAT: x", "examples": [""], "runner": "edge"});
    let warnings = book.create(&row("A")).await.unwrap().into_inner().write.unwrap().warnings;
    assert_eq!(warnings, ["pool_not_served:edge"]);
    assert_eq!(book.import(row("B").to_string()).await.warnings, ["B: pool_not_served:edge"]);
    sqlx::query("insert into executor (id, pools, address, started_at, heartbeat_at) values (gen_random_uuid(), '{edge}', '', now(), $1)")
        .bind(datetime!(2026-07-26 04:36:00 UTC))
        .execute(&pool)
        .await
        .unwrap();
    assert!(book.create(&row("C")).await.unwrap().into_inner().write.unwrap().warnings.is_empty());
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_standing_answer_is_set_listed_and_taken_back(pool: PgPool) {
    let mut book = book(pool).await;
    book.create(&seed()).await.unwrap();
    let set = |pattern: &str| {
        owner(contract::RecommendRequest {
            pattern: pattern.to_owned(),
            key: "ZZ_TEST_TEMPERATURE".into(),
            demote: false,
            reason: "ours".into(),
        })
    };
    let stored = book.contracts.recommend(set(" warm outside ")).await.unwrap().into_inner().recommendation.unwrap();
    assert_eq!((stored.pattern.as_str(), stored.actor.as_str()), ("warm outside", "owner:terminal-key"));
    book.contracts.recommend(set("cold")).await.unwrap();
    let list = |page_token: String| {
        owner(contract::ListRecommendationsRequest { key: String::new(), page_size: 1, page_token })
    };
    let first = book.contracts.list_recommendations(list(String::new())).await.unwrap().into_inner();
    assert_eq!(first.recommendations[0].pattern, "cold");
    let second = book.contracts.list_recommendations(list(first.next_page_token)).await.unwrap().into_inner();
    assert_eq!((second.recommendations[0].pattern.as_str(), second.next_page_token.as_str()), ("warm outside", ""));
    let gone = contract::DeleteRecommendationRequest { pattern: "cold".into(), key: "ZZ_TEST_TEMPERATURE".into() };
    assert_eq!(book.contracts.delete_recommendation(owner(gone.clone())).await.unwrap().into_inner().deleted, 1);
    assert_eq!(book.contracts.delete_recommendation(owner(gone)).await.unwrap().into_inner().deleted, 0);
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn without_a_database_reads_go_on_and_say_so(pool: PgPool) {
    let mut book = book(pool.clone()).await;
    book.create(&seed()).await.unwrap();
    pool.close().await;
    let key = "ZZ_TEST_TEMPERATURE".to_owned();
    let asked = contract::GetContractRequest { key: key.clone(), format: 0 };
    assert!(book.contracts.get_contract(asked).await.unwrap().into_inner().stale);
    assert!(book.rows.get_row(wire::GetRowRequest { key }).await.unwrap().into_inner().stale);
    assert!(book.list(wire::ListRowsRequest::default()).await.stale);
    assert_eq!(fault(book.create(&seed()).await).reason(), Reason::DatabaseUnavailable);
}
