//! Functions that need a database, called as rows. They need `DATABASE_URL`; the tests of the whole product run
//! without it too.

use std::collections::BTreeMap;
use std::str::FromStr as _;
use std::sync::Arc;
use std::time::Duration;

use callbook_caller::Callers;
use callbook_domain::arguments::Sent;
use callbook_domain::caller::{Caller, Grant, May, Principal};
use callbook_domain::clock::Clock;
use callbook_domain::compile::Rules;
use callbook_domain::key::Key;
use callbook_ranking::{Entry, Shelf};
use callbook_store::directory::Directory;
use callbook_store::pool;
use callbook_store::write::{self, Options, Writer};
use serde_json::{Value, json};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _};
use uuid::Uuid;

use crate::call::{Answer, Deadline, Request};
use crate::config::{Config, Database};
use crate::egress::{Egress, Policy, Secrets};
use crate::{App, Parts, invoke};

/// An executor over databases of its own.
struct Stage {
    app: Arc<App>,
    server: PgConnectOptions,
    databases: [String; 2],
}

impl Stage {
    /// None where there is no server to make the databases on.
    async fn set() -> Option<Stage> {
        let url = std::env::var("DATABASE_URL").ok()?;
        let server = PgConnectOptions::from_str(&url).unwrap();
        let databases = ["own", "other"].map(|name| format!("fn_{name}_{}", Uuid::new_v4().simple()));
        let mut connection = server.clone().connect().await.unwrap();
        for name in &databases {
            connection.execute(AssertSqlSafe(format!("create database {name}"))).await.unwrap();
        }
        connection.close().await.unwrap();
        let (base, _) = url.rsplit_once('/').unwrap();
        let database = |name: &str, max_rows, ms| Database {
            url: format!("{base}/{name}").into(),
            max_rows,
            timeout: Duration::from_millis(ms),
        };
        let config = Config {
            databases: BTreeMap::from([
                ("other".to_owned(), database(&databases[1], 3, 500)),
                ("own".to_owned(), database(&databases[0], 3, 500)),
                ("gone".to_owned(), database("no_such_database", 3, 500)),
            ]),
            ..Config::default()
        };
        let app = app(&server.clone().database(&databases[0]), config).await;
        Some(Stage { app, server, databases })
    }

    async fn clear(self) {
        let mut connection = self.server.connect().await.unwrap();
        for name in &self.databases {
            connection.execute(AssertSqlSafe(format!("drop database {name} with (force)"))).await.unwrap();
        }
    }

    /// A row for a function that passes on its first `count` arguments. Its key is the name in capitals.
    async fn row(&self, target: &str, count: usize) {
        let key = Key::parse(&target.to_uppercase()).unwrap();
        let slots: Vec<String> = (1..=count).map(|n| format!("${n}")).collect();
        let content = format!("# WHAT: {target}\n# SAFE: no\n[{}]", slots.join(","));
        let fields = json!({"type": "fn", "target": target, "content": content, "examples": ["x"]});
        write::put(&self.writer(), &key, fields.as_object().unwrap(), Options::default()).await.unwrap();
    }

    fn writer(&self) -> Writer {
        let (directory, clock) = (self.app.directory.clone(), self.app.clock.clone());
        Writer { directory, clock, caller: Caller::Owner }
    }

    async fn call(&self, caller: &Caller, key: &str, args: Value) -> Answer {
        let request = Request {
            key: key.to_owned(),
            sent: Sent::new(None, Some(serde_json::from_value(args).unwrap())).unwrap(),
            idempotency_key: None,
            repairs: None,
            replay_of: None,
            deadline: Deadline::after(Duration::from_secs(20)),
            wait: Duration::ZERO,
            place: None,
        };
        invoke::invoke(&self.app, caller, request, invoke::Until::Ended).await.unwrap()
    }

    /// A team that may call rows whose keys begin with this.
    async fn team(&self, prefix: &str) -> Caller {
        let (id, grants) = (Uuid::new_v4(), vec![Grant { may: May::Invoke, prefix: prefix.into() }]);
        let principal = Principal { id, name: id.to_string(), grants, vouched_until: None };
        sqlx::query("insert into principal values ($1, $2, $3, '[]', now(), 'test')")
            .bind(id)
            .bind(&principal.name)
            .bind(id.as_bytes().as_slice())
            .execute(self.app.directory.pool())
            .await
            .unwrap();
        Caller::Principal(principal)
    }

    /// The seed's text of what a call of the owner gives.
    async fn owner(&self, key: &str, args: Value) -> String {
        self.call(&Caller::Owner, key, args).await.result
    }
}

async fn app(options: &PgConnectOptions, config: Config) -> Arc<App> {
    pool::migrate(options).await.unwrap();
    let pool = pool::connect(options, 4);
    let index = Arc::new(Shelf::default());
    let directory = Directory::open(pool.clone(), Rules::default(), Vec::new()).await.unwrap();
    let callers = Arc::new(Callers::new("owner key of a test", pool, Clock::system(), true));
    App::new(Parts {
        config,
        directory,
        callers,
        index,
        clock: Clock::system(),
        egress: Egress::new(Policy::default(), "test"),
        secrets: Secrets::default(),
    })
}

#[tokio::test]
async fn pairs_belong_to_their_caller_unless_they_are_shared() {
    let Some(stage) = Stage::set().await else { return };
    for (name, count) in [("kv_get", 1), ("kv_put", 2), ("kv_append", 2), ("kv_delete", 1), ("kv_list", 1)] {
        stage.row(name, count).await;
    }
    let (first, second) = (stage.team("KV_").await, stage.team("KV_").await);
    assert_eq!(stage.owner("KV_PUT", json!(["greeting", "hello"])).await, r#"{"ok":true,"key":"greeting","bytes":5}"#);
    assert_eq!(stage.owner("KV_APPEND", json!(["greeting", "|é"])).await, r#"{"ok":true,"key":"greeting","bytes":8}"#);
    let got = stage.call(&Caller::Owner, "KV_GET", json!(["greeting"])).await.output.unwrap();
    assert_eq!((got.as_text(), got.media_type.as_str()), (Some("hello|é"), "text/plain; charset=utf-8"));
    let other = stage.call(&first, "KV_GET", json!(["greeting"])).await;
    assert_eq!((other.ok, other.failure.unwrap().code.as_str()), (false, "fn:no_key"));
    stage.call(&first, "KV_PUT", json!(["shared/a", serde_json::from_str::<Value>("{\"n\":1.10}").unwrap()])).await;
    let shared = stage.call(&second, "KV_GET", json!(["shared/a"])).await.output.unwrap();
    assert_eq!((shared.as_text(), shared.media_type.as_str()), (Some("{\"n\":1.10}"), "application/json"));
    assert_eq!(stage.owner("KV_LIST", json!([""])).await, r#"["greeting","shared/a"]"#);
    assert_eq!(stage.owner("KV_LIST", json!(["shared/"])).await, r#"["shared/a"]"#);
    assert_eq!(stage.call(&second, "KV_LIST", json!(["g"])).await.result, "[]");
    assert_eq!(stage.owner("KV_DELETE", json!(["greeting"])).await, r#"{"ok":true,"key":"greeting","deleted":true}"#);
    assert_eq!(stage.owner("KV_DELETE", json!(["greeting"])).await, r#"{"ok":true,"key":"greeting","deleted":false}"#);
    let long = "x".repeat(256 * 1024);
    for (key, value) in [("", "x"), (&long[..513], "x"), ("a\0", "x")] {
        assert!(stage.owner("KV_PUT", json!([key, value])).await.starts_with("ERR:fn:arguments:"));
    }
    assert!(stage.owner("KV_PUT", json!(["k", long])).await.starts_with("{\"ok\":true"));
    assert!(stage.owner("KV_APPEND", json!(["k", "y"])).await.starts_with("ERR:fn:too_large:"));
    stage.clear().await;
}

#[tokio::test]
async fn a_query_reads_another_database_and_nothing_else() {
    let Some(stage) = Stage::set().await else { return };
    stage.row("sql_query", 2).await;
    let mut other = stage.server.clone().database(&stage.databases[1]).connect().await.unwrap();
    other.execute("create table t (id int, n numeric, s text); insert into t select i, i / 10.0, 'é' || i from generate_series(1, 9) i; create sequence q").await.unwrap();
    let ask = async |sql: &str| stage.owner("SQL_QUERY", json!(["other", sql])).await;
    for (sql, answer) in [
        (
            "select id, n, s from t where id < 3 order by id desc ;",
            r#"[{"id":2,"n":0.20000000000000000000,"s":"é2"},{"id":1,"n":0.10000000000000000000,"s":"é1"}]"#,
        ),
        (
            "select 9007199254740993 as big, 'NaN'::numeric as nan, null as none -- end",
            r#"[{"big":9007199254740993,"nan":"NaN","none":null}]"#,
        ),
        ("with x as (values (1)) table x", r#"[{"column1":1}]"#),
        ("select 1 as t where false", "[]"),
    ] {
        assert_eq!(ask(sql).await, answer, "{sql}");
    }
    for (sql, code) in [
        ("select 1; select 2", "fn:sql:42601"),
        ("delete from t returning id", "fn:sql:42601"),
        ("with x as (delete from t returning id) select * from x", "fn:sql:0A000"),
        ("select nextval('q')", "fn:sql:25006"),
        ("select 1) as callbook_row) as each) as bound; drop table t --", "fn:sql:42601"),
        ("select 1) as callbook_row) u union all select * from (select 'x' from t", "fn:sql:42601"),
        ("select 1 /*", "fn:sql:42601"),
        ("commit", "fn:sql:42601"),
        ("select * from nothing", "fn:sql:42P01"),
        ("select id from t", "fn:too_many_rows"),
        ("select repeat('x', 5000000)", "fn:too_large"),
        ("select 1 as a, 2 as a", "fn:sql:duplicate_name"),
        ("select pg_sleep(5)", "timeout"),
        ("  ;", "fn:arguments"),
        ("select set_config('transaction_read_only', 'off', true), nextval('q')", "fn:sql:25001"),
    ] {
        assert!(ask(sql).await.starts_with(&format!("ERR:{code}:")), "{sql}: {}", ask(sql).await);
    }
    assert_eq!(ask("select count(*) as n from t").await, r#"[{"n":9}]"#);
    let refused = async |name: &str| stage.owner("SQL_QUERY", json!([name, "select 1 as a"])).await;
    assert!(refused("own").await.starts_with("ERR:fn:own_database:"));
    assert!(refused("gone").await.starts_with("ERR:fn:sql:unavailable:"));
    assert!(refused("unknown").await.starts_with("ERR:fn:unknown_database:"));
    other.close().await.unwrap();
    stage.clear().await;
}

#[tokio::test]
async fn parameters_are_texts_that_the_statement_gives_a_type() {
    let Some(stage) = Stage::set().await else { return };
    stage.row("sql_query", 4).await;
    let ask = async |sql: &str, a: Value, b: Value| stage.owner("SQL_QUERY", json!(["other", sql, a, b])).await;
    let given = ask("select $1::int + 1 as n, $2 as s", json!(41), json!("a'; --")).await;
    assert_eq!(given, r#"[{"n":42,"s":"a'; --"}]"#);
    assert_eq!(
        ask("select $1::jsonb as j, $2 as s", json!({"a": [1]}), Value::Null).await,
        r#"[{"j":{"a": [1]},"s":null}]"#
    );
    assert!(ask("select $1 as a", json!(1), json!(2)).await.starts_with("ERR:fn:arguments:"));
    assert!(ask("select $1::int + $2::int", json!("x"), json!(2)).await.starts_with("ERR:fn:sql:22P02:"));
    stage.clear().await;
}

#[tokio::test]
async fn the_book_is_read_and_written_with_the_callers_rights() {
    let Some(stage) = Stage::set().await else { return };
    for (name, count) in [
        ("row_put", 1),
        ("row_patch", 2),
        ("row_delete", 1),
        ("ask", 1),
        ("contract", 1),
        ("receipt", 1),
        ("nonsense", 0),
    ] {
        stage.row(name, count).await;
    }
    let team = stage.team("ROW_").await;
    let fields = json!({"key": "ROW_NEW", "type": "fn", "target": "now", "content": "# WHAT: The time\n# SAFE: yes", "examples": [""]});
    let refused = stage.call(&team, "ROW_PUT", json!([fields])).await;
    assert_eq!(refused.failure.map(|failure| failure.code).as_deref(), Some("forbidden"));
    let put: Value = serde_json::from_str(&stage.owner("ROW_PUT", json!([fields])).await).unwrap();
    assert_eq!((&put["ok"], &put["key"], &put["version"]), (&json!(true), &json!("ROW_NEW"), &json!(1)));
    let again: Value = serde_json::from_str(&stage.owner("ROW_PUT", json!([fields])).await).unwrap();
    assert_eq!(again["version"], 2);
    let patched: Value =
        serde_json::from_str(&stage.owner("ROW_PATCH", json!(["ROW_NEW", {"planner_rank": 7, "x": 1}])).await).unwrap();
    assert_eq!((&patched["fields"], &patched["ignored_fields"]), (&json!(["planner_rank"]), &json!(["x"])));
    assert_eq!(stage.owner("ROW_PATCH", json!(["NO_ROW", {"target": "x"}])).await, "ERR:not found:no row of this key");
    assert!(stage.owner("ROW_PUT", json!(["[1]"])).await.starts_with("ERR:fn:arguments:"));

    let contract: Value = serde_json::from_str(&stage.owner("CONTRACT", json!(["ROW_NEW"])).await).unwrap();
    assert_eq!(contract["what"], "The time");
    assert!(stage.call(&Caller::Owner, "CONTRACT", json!(["ROW_NE"])).await.result.starts_with("ERR:unknown_key:"));
    let answer = stage.call(&Caller::Owner, "NONSENSE", json!([])).await;
    assert_eq!(answer.result, "ERR:fn:unknown_target:nonsense");
    let receipt: Value = serde_json::from_str(&stage.owner("RECEIPT", json!([answer.id.to_string()])).await).unwrap();
    assert_eq!(
        (&receipt["key"], &receipt["status"]),
        (&json!("NONSENSE"), &json!("PROVEN_ATTEMPT_NO_MATERIAL_RESULT"))
    );
    assert!(
        stage.owner("RECEIPT", json!(["inv_00000000000000000000000000"])).await.starts_with("ERR:unknown_invocation:")
    );

    let deleted: Value = serde_json::from_str(&stage.owner("ROW_DELETE", json!(["ROW_NEW"])).await).unwrap();
    assert_eq!(deleted["deleted"], 1);
    assert_eq!(stage.owner("ROW_DELETE", json!(["ROW_NEW"])).await, r#"{"ok":true,"key":"ROW_NEW","deleted":0}"#);
    stage.clear().await;
}

#[tokio::test]
async fn a_question_is_answered_with_the_rows_that_the_caller_sees() {
    let Some(stage) = Stage::set().await else { return };
    stage.row("ask", 1).await;
    stage.row("now", 0).await;
    let entry = |key: &str, what: &str| {
        let key = Key::parse(key).unwrap();
        let (what, notes, when_to_use) = (what.to_owned(), String::new(), String::new());
        let (row_type, effect, risk) =
            (callbook_domain::row::RowType::Fn, callbook_domain::row::Effect::Read, callbook_domain::row::Risk::Low);
        Entry {
            key,
            category: None,
            row_type,
            effect,
            risk,
            planner_rank: 100,
            what,
            when_to_use,
            arguments: Vec::new(),
            notes,
            third_party: false,
        }
    };
    stage.app.index.apply(vec![entry("NOW", "now"), entry("ASK", "ask"), entry("GONE", "now")], &[], None);
    let asked: Value = serde_json::from_str(&stage.owner("ASK", json!(["NOW"])).await).unwrap();
    let first = &asked["matches"][0];
    assert_eq!(
        (&first["key"], &first["what"], &first["type"], &first["effect"]),
        (&json!("NOW"), &json!("now"), &json!("fn"), &json!("read"))
    );
    assert!(first["score"].as_f64().unwrap() > 0.5 && first["why"].is_array() && first["example"].is_string());
    let narrow: Value =
        serde_json::from_str(&stage.call(&stage.team("AS").await, "ASK", json!(["NOW"])).await.result).unwrap();
    assert_eq!((&narrow["matches"], narrow["hint"].is_string()), (&json!([]), true));
    stage.clear().await;
}

#[tokio::test]
async fn the_time_is_given_in_the_zone_that_is_named_and_ids_sort_by_it() {
    let Some(stage) = Stage::set().await else { return };
    for (name, count) in [("now", 1), ("uuid", 1), ("json_get", 1), ("random", 0)] {
        stage.row(name, count).await;
    }
    let now: Value = serde_json::from_str(&stage.owner("NOW", json!(["Asia/Tokyo"])).await).unwrap();
    assert_eq!(now["zone"], "Asia/Tokyo");
    let iso = format!("{}T{}+09:00", now["today"].as_str().unwrap(), now["time"].as_str().unwrap());
    assert_eq!((&now["iso"], now["now"].as_str().unwrap()), (&json!(iso), &iso.replace('T', " ")[..19]));
    assert!(stage.owner("NOW", json!(["Mars/Base"])).await.starts_with("ERR:fn:arguments:"));
    let (first, second) = (stage.owner("UUID", json!(["v7"])).await, stage.owner("UUID", json!(["v4"])).await);
    let version = |text: &str| Uuid::parse_str(text).unwrap().get_version_num();
    assert_eq!((version(&first), version(&second)), (7, 4));
    assert!(stage.owner("UUID", json!(["v9"])).await.starts_with("ERR:fn:arguments:"));
    let few = stage.owner("JSON_GET", json!(["$"])).await;
    assert_eq!(few, "ERR:fn:arguments:`json_get` takes 2 arguments, 1 given");
    let drawn: f64 = stage.owner("RANDOM", json!([])).await.parse().unwrap();
    assert!((0.0..1.0).contains(&drawn));
    stage.clear().await;
}
