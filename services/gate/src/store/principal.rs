//! Principals in SQL.

use callbook_domain::caller::Caller;
use callbook_domain::event::EventKind;
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::principal::{Kept, grants_text};

struct Stored {
    id: Uuid,
    name: String,
    grants: String,
    created_at: OffsetDateTime,
    revoked_at: Option<OffsetDateTime>,
}

impl Stored {
    fn into_kept(self) -> sqlx::Result<Kept> {
        let grants = serde_json::from_str(&self.grants).map_err(|_| sqlx::Error::Decode("principal.grants".into()))?;
        Ok(Kept { id: self.id, name: self.name, grants, created_at: self.created_at, revoked_at: self.revoked_at })
    }
}

/// Adds a principal.
pub(crate) async fn insert(
    connection: &mut PgConnection,
    kept: &Kept,
    key_hash: &[u8],
    by: &Caller,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into principal (id, name, key_hash, grants, created_at, created_by) values ($1, $2, $3, $4, $5, $6)",
        kept.id,
        kept.name,
        key_hash,
        grants_text(&kept.grants),
        kept.created_at,
        by.actor()
    )
    .execute(connection)
    .await?;
    Ok(())
}

/// The principal of this name, an ended one too.
pub(crate) async fn find(connection: &mut PgConnection, name: &str) -> sqlx::Result<Option<Kept>> {
    let stored = sqlx::query_as!(
        Stored,
        "select id, name, grants, created_at, revoked_at from principal where name = $1",
        // no stored name has a NUL, and Postgres takes none
        name.replace('\0', "\u{fffd}")
    )
    .fetch_optional(connection)
    .await?;
    stored.map(Stored::into_kept).transpose()
}

/// Ends a living principal.
pub(crate) async fn end(connection: &mut PgConnection, kept: &Kept, at: OffsetDateTime) -> sqlx::Result<()> {
    sqlx::query!("update principal set revoked_at = $2 where id = $1 and revoked_at is null", kept.id, at)
        .execute(connection)
        .await?;
    Ok(())
}

/// At most `limit` principals whose names come after `after`, by name.
pub(crate) async fn page(
    connection: &mut PgConnection,
    after: &str,
    include_revoked: bool,
    limit: i64,
) -> sqlx::Result<Vec<Kept>> {
    let stored = sqlx::query_as!(
        Stored,
        r#"select id, name, grants, created_at, revoked_at from principal
           where name collate "C" > $1 and ($2 or revoked_at is null) order by name collate "C" limit $3"#,
        after,
        include_revoked,
        limit
    )
    .fetch_all(connection)
    .await?;
    stored.into_iter().map(Stored::into_kept).collect()
}

/// Writes into the log that the principal began or ended.
pub(crate) async fn record(
    connection: &mut PgConnection,
    kept: &Kept,
    kind: EventKind,
    by: &Caller,
    at: OffsetDateTime,
) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into event (at, kind, key, actor, body) values ($1, $2, '', $3, $4)",
        at,
        kind.as_str(),
        by.actor(),
        kept.event(kind, by, at)
    )
    .execute(connection)
    .await?;
    Ok(())
}
