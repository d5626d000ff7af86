//! Making a database.

use std::str::FromStr;

use anyhow::{Context, Result};
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection};

/// Makes the database that a URL names where it is missing; the URL's role must be allowed to.
///
/// # Errors
/// The server does not answer, or does not let us.
pub async fn ensure_database(url: &str) -> Result<()> {
    let options = PgConnectOptions::from_str(url).context("not the address of a database")?;
    let name = options.get_database().context("the address names no database")?.to_owned();
    let mut conn = options.database("postgres").connect().await.context("Postgres does not answer")?;
    let exists = sqlx::query("select 1 from pg_database where datname = $1").bind(&name);
    if exists.fetch_optional(&mut conn).await?.is_none() {
        let quoted = name.replace('"', "\"\"");
        let made = sqlx::query(AssertSqlSafe(format!("create database \"{quoted}\""))).execute(&mut conn).await;
        let there = matches!(&made, Err(sqlx::Error::Database(error)) if is_there(error.code().as_deref()));
        if !there {
            made.with_context(|| format!("the database {name} cannot be made"))?;
        }
    }
    conn.close().await?;
    Ok(())
}

/// Somebody else made it at the same moment: `duplicate_database`, or `unique_violation` of the catalogue.
fn is_there(code: Option<&str>) -> bool {
    matches!(code, Some("42P04" | "23505"))
}
