//! Refusals in SQL.

use sqlx::PgPool;
use time::OffsetDateTime;

/// One refusal for the log.
#[derive(Clone, Debug)]
pub struct Denied {
    /// When.
    pub at: OffsetDateTime,
    /// The row that was asked for; empty where it was no key.
    pub key: String,
    /// Who asked.
    pub actor: String,
    /// The body of the event.
    pub event: String,
}

/// Writes a group of refusals.
pub async fn write(pool: &PgPool, group: &[Denied]) -> sqlx::Result<()> {
    let (mut at, mut keys, mut actors, mut bodies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for denied in group {
        at.push(denied.at);
        keys.push(denied.key.clone());
        actors.push(denied.actor.clone());
        bodies.push(denied.event.clone());
    }
    sqlx::query!(
        "insert into event (at, kind, key, actor, body)
         select at, 'denied', key, actor, body
         from unnest($1::timestamptz[], $2::text[], $3::text[], $4::text[]) as d (at, key, actor, body)",
        &at,
        &keys,
        &actors,
        &bodies
    )
    .execute(pool)
    .await?;
    Ok(())
}
