//! `sql_query`: one statement on a database that the operator configured, read-only, bounded, and never Callbook's own.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use callbook_domain::arguments::Argument;
use callbook_domain::json;
use callbook_domain::outcome::{Failure, Output};
use callbook_domain::row::Effect;
use callbook_store::fault::{fault, is_outage};
use secrecy::ExposeSecret as _;
use sqlx::postgres::{PgConnectOptions, PgDatabaseError, PgPoolOptions, PgTypeInfo};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, Executor as _, PgConnection, PgPool, SqlSafeStr as _};

use super::{Given, World, failed, refused, text_of, too_large};
use crate::config::Database;

const MAX_CONNECTIONS: u32 = 4;
const ACQUIRE: Duration = Duration::from_secs(2);
const IDLE: Duration = Duration::from_secs(300);
/// Bounds of time, for the transaction alone.
const BOUND: &str = "select set_config('statement_timeout', $1, true), set_config('lock_timeout', $1, true)";
/// Which database this is. The identifier is a cluster's from `initdb` on and a standby has it too, so Callbook's
/// database is known by whatever address it is reached.
const IDENTITY: &str = "select
    (select system_identifier from pg_catalog.pg_control_system()),
    (select oid::bigint from pg_catalog.pg_database where datname = pg_catalog.current_database())";

/// Connections by name of the database, made when they are first needed.
#[derive(Default)]
pub(crate) struct Databases(Mutex<HashMap<String, PgPool>>);

/// The rows of a statement as a JSON list of objects. Arguments: the database's name, the statement, and the texts of
/// `$1`, `$2`, … (`null` is null; a statement says what they are, as in `$1::int`).
pub(super) async fn query(world: &World<'_>, arguments: &[Argument]) -> Given {
    let name = text_of(arguments, 0);
    let database = world.app.config.databases.get(name);
    let database =
        database.ok_or_else(|| Failure::new("fn:unknown_database", "no database of this name is configured"))?;
    let parameters = arguments.get(2..).unwrap_or_default();
    let statement = statement(text_of(arguments, 1), parameters)?;
    let own = async {
        let mut own = world.app.directory.pool().acquire().await?;
        identity(&mut own).await
    };
    let own = own.await.map_err(|error| failed(&fault(error), Effect::Read))?;
    let mut connection = world.app.databases.pool(name, database)?.acquire().await.map_err(unavailable)?;
    if identity(&mut connection).await.map_err(unavailable)? == own {
        return Err(Failure::new("fn:own_database", "this is Callbook's own database"));
    }
    let bounds = Bounds { rows: database.max_rows, bytes: world.max_bytes(), time: database.timeout.min(world.limit) };
    read(&mut connection, statement, parameters, &bounds).await
}

/// What a query may take.
struct Bounds {
    rows: u32,
    bytes: usize,
    time: Duration,
}

/// The statement without its final semicolon.
fn statement<'a>(text: &'a str, parameters: &[Argument]) -> Result<&'a str, Failure> {
    let statement = text.trim().trim_end_matches(|c: char| c == ';' || c.is_whitespace());
    if statement.is_empty() {
        return Err(refused("the statement is empty"));
    }
    if text.contains('\0') || parameters.iter().any(|parameter| parameter.as_text().contains('\0')) {
        return Err(refused("a statement and its parameters have no U+0000"));
    }
    match (1..=parameters.len()).find(|n| !statement.contains(&format!("${n}"))) {
        Some(n) => Err(refused(format!("the statement has no ${n}, and {} parameters are given", parameters.len()))),
        None => Ok(statement),
    }
}

impl Databases {
    fn pool(&self, name: &str, database: &Database) -> Result<PgPool, Failure> {
        let mut pools = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(name) {
            return Ok(pool.clone());
        }
        let options: PgConnectOptions = database
            .url
            .expose_secret()
            .parse()
            .map_err(|_| Failure::new("fn:sql:unavailable", "the address of the database cannot be read"))?;
        // nothing of one query is left for the next: no statements, settings, locks or temporary tables
        let options =
            options.application_name("callbook sql_query").statement_cache_capacity(0).disable_statement_logging();
        let pool = PgPoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .acquire_timeout(ACQUIRE)
            .idle_timeout(IDLE)
            .after_release(|connection, _| {
                Box::pin(async move {
                    connection.execute("discard all").await?;
                    Ok(true)
                })
            })
            .connect_lazy_with(options);
        pools.insert(name.to_owned(), pool.clone());
        Ok(pool)
    }
}

/// Which database a connection leads to.
async fn identity(connection: &mut PgConnection) -> sqlx::Result<(i64, i64)> {
    sqlx::query_as(IDENTITY).persistent(false).fetch_one(connection).await
}

/// Runs the statement in a transaction that can change nothing and is rolled back.
///
/// The statement is prepared by itself first: what the server takes as one statement cannot close the brackets that the
/// bounds are in.
async fn read(connection: &mut PgConnection, statement: &str, parameters: &[Argument], bounds: &Bounds) -> Given {
    let rows = async {
        let mut transaction = connection.begin_with("begin transaction read only").await?;
        let time = format!("{}ms", bounds.time.as_millis().max(1));
        sqlx::query(BOUND).bind(time).persistent(false).execute(&mut *transaction).await?;
        let types = vec![PgTypeInfo::with_name("text"); parameters.len()];
        (&mut *transaction).prepare_with(AssertSqlSafe(statement.to_owned()).into_sql_str(), &types).await?;
        let mut query = sqlx::query_scalar(AssertSqlSafe(bounded(statement, bounds))).persistent(false);
        for parameter in parameters {
            query = query.bind((!parameter.is_null()).then(|| parameter.as_text().to_owned()));
        }
        let rows: Vec<Option<String>> = query.fetch_all(&mut *transaction).await?;
        transaction.rollback().await?;
        Ok(rows)
    };
    list(&rows.await.map_err(refusal)?, bounds)
}

/// The statement with one row more than there may be, each as JSON, those past the bound of bytes as null.
fn bounded(statement: &str, bounds: &Bounds) -> String {
    let Bounds { rows, bytes, .. } = bounds;
    let rows = u64::from(*rows) + 1;
    // a line of its own, because the statement may end in a comment
    format!(
        "select case when bound.total <= {bytes} then bound.line end from (
         select each.line, sum(octet_length(each.line)) over (rows unbounded preceding) as total from (
         select row_to_json(callbook_row)::text as line from (
{statement}
) as callbook_row limit {rows}) as each) as bound"
    )
}

fn list(rows: &[Option<String>], bounds: &Bounds) -> Given {
    if rows.len() > usize::try_from(bounds.rows).unwrap_or(usize::MAX) {
        return Err(Failure::new(
            "fn:too_many_rows",
            format!("there are more than {} rows: ask for fewer", bounds.rows),
        ));
    }
    let lines: Option<Vec<&str>> = rows.iter().map(Option::as_deref).collect();
    let lines = lines.ok_or_else(|| too_large(bounds.bytes))?;
    for line in &lines {
        json::check(line).map_err(|problem| {
            Failure::new(format!("fn:sql:{}", problem.rule()), format!("a row is no answer: {problem}"))
        })?;
    }
    Ok(Output::json(format!("[{}]", lines.join(","))))
}

/// What the server says of a statement is about the caller's own words and goes to the caller.
fn refusal(error: sqlx::Error) -> Failure {
    let said = error.as_database_error().and_then(|error| error.try_downcast_ref::<PgDatabaseError>());
    let said = said.map(|said| (said.code().to_owned(), said.message().to_owned(), said.hint().map(str::to_owned)));
    match said {
        Some((code, ..)) if code == "57014" => Failure::new("timeout", "the query takes too long").retryable(),
        // a statement that would write is the caller's mistake; elsewhere this code is a standby's
        Some((code, message, hint)) if code == "25006" || !is_outage(&error) => {
            let hint = hint.map(|hint| format!(" ({hint})")).unwrap_or_default();
            Failure::new(format!("fn:sql:{code}"), format!("{message}{hint}"))
        }
        Some(_) | None => unavailable(error),
    }
}

/// What a connection says is about the operator's settings and stays in the log.
fn unavailable(error: sqlx::Error) -> Failure {
    tracing::warn!(%error, "a configured database does not answer");
    Failure::new("fn:sql:unavailable", "the database does not answer").retryable()
}
