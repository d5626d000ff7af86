//! The change feed in SQL: what the book holds, and what changed after a revision.
//!
//! Revisions are taken under the exclusive lock, so they become visible in order and a reader that has seen one has
//! seen all before it.

use callbook_domain::key::Key;
use callbook_domain::row::Row;
use sqlx::{Acquire, PgConnection};

use crate::snapshot::Recommended;
use crate::stored::Stored;

/// The last committed revision; 0 for an empty book.
pub async fn revision(connection: &mut PgConnection) -> sqlx::Result<i64> {
    let newest = sqlx::query_scalar!("select max(revision) from directory_history").fetch_one(connection).await?;
    Ok(newest.unwrap_or(0))
}

/// What changed after a revision.
#[derive(Debug)]
pub struct Changes {
    /// The revision that it leads to.
    pub revision: i64,
    /// Rows as they are now.
    pub rows: Vec<Row>,
    /// Keys that are gone.
    pub removed: Vec<Key>,
    /// The standing answers, where one of them changed.
    pub recommended: Option<Vec<Recommended>>,
}

/// Everything after `held`, whole revisions at a time; `held` 0 reads the whole book.
pub async fn changes(connection: &mut PgConnection, held: i64) -> sqlx::Result<Changes> {
    let mut transaction = connection.begin().await?;
    sqlx::query!("set transaction isolation level repeatable read read only").execute(&mut *transaction).await?;
    let newest = revision(&mut transaction).await?;
    let mut changes = match held {
        0 => whole(&mut transaction).await?,
        _ => after(&mut transaction, held).await?,
    };
    changes.revision = newest;
    transaction.commit().await?;
    Ok(changes)
}

async fn whole(connection: &mut PgConnection) -> sqlx::Result<Changes> {
    let stored = sqlx::query_as!(Stored, "select * from directory").fetch_all(&mut *connection).await?;
    Ok(Changes {
        revision: 0,
        rows: readable(stored),
        removed: Vec::new(),
        recommended: Some(recommended(connection).await?),
    })
}

async fn after(connection: &mut PgConnection, held: i64) -> sqlx::Result<Changes> {
    let touched = sqlx::query!(
        r#"select key, bool_or(action = 'recommend') as "recommend!"
           from directory_history where revision > $1 group by key"#,
        held
    )
    .fetch_all(&mut *connection)
    .await?;
    let any_recommended = touched.iter().any(|record| record.recommend);
    let keys: Vec<String> = touched.into_iter().map(|record| record.key).collect();
    let stored = sqlx::query_as!(Stored, "select * from directory where key = any($1)", &keys)
        .fetch_all(&mut *connection)
        .await?;
    let rows = readable(stored);
    let present: std::collections::HashSet<&str> = rows.iter().map(|row| row.definition.key.as_str()).collect();
    let removed =
        keys.iter().filter(|key| !present.contains(key.as_str())).filter_map(|key| Key::parse(key).ok()).collect();
    let recommended = if any_recommended { Some(recommended(connection).await?) } else { None };
    Ok(Changes { revision: 0, rows, removed, recommended })
}

/// A record that this build cannot read is left out: it must not keep the others from being seen.
fn readable(stored: Vec<Stored>) -> Vec<Row> {
    let rows = stored.into_iter().map(Stored::into_row);
    rows.filter_map(|row| row.inspect_err(|error| tracing::error!(%error, "a row cannot be read")).ok()).collect()
}

/// Every standing answer, in the order of pattern and key.
pub async fn recommended(connection: &mut PgConnection) -> sqlx::Result<Vec<Recommended>> {
    let records = sqlx::query!("select * from recommended order by pattern, key").fetch_all(connection).await?;
    Ok(records
        .into_iter()
        .filter_map(|record| {
            Some(Recommended {
                pattern: record.pattern,
                key: Key::parse(&record.key).ok()?,
                demote: record.demote,
                reason: record.reason,
                actor: record.actor,
                created_at: record.created_at,
            })
        })
        .collect())
}
