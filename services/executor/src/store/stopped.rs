//! Why a call did not pass the commit point, in SQL.

use callbook_domain::fault::Result;
use callbook_store::fault::fault;
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use super::commit::Candidate;

/// Why a candidate did not pass.
#[derive(Clone, Debug)]
pub enum Stopped {
    /// An earlier call with the same idempotency key.
    Earlier(Box<Earlier>),
    /// The principal's key was taken back.
    Ended,
    /// The token was taken back, by this name of it.
    Revoked(String),
    /// The credential is over.
    Over,
    /// The token was used as often as it may be.
    Exhausted,
    /// Its approval does not stand any more.
    Unapproved,
    /// The row is not at the revision that we hold, or what stood against it is gone by now.
    Moved,
}

/// A call that was accepted before, as far as its repetition needs.
#[derive(Clone, Debug)]
pub struct Earlier {
    /// Its id.
    pub id: Uuid,
    /// SHA-256 over its key and arguments.
    pub argument_hash: Vec<u8>,
    /// How far it came.
    pub state: String,
    /// When it was accepted.
    pub started_at: OffsetDateTime,
}

/// The call that used an idempotency key before.
pub async fn earlier(pool: &PgPool, caller: &str, idempotency_key: &str) -> Result<Option<Earlier>> {
    sqlx::query_as!(
        Earlier,
        "select id, argument_hash, state, started_at from invocation where caller = $1 and idempotency_key = $2",
        caller,
        idempotency_key
    )
    .fetch_optional(pool)
    .await
    .map_err(fault)
}

/// Names the reason for which a candidate did not pass.
pub async fn why(pool: &PgPool, candidate: &Candidate, now: OffsetDateTime) -> Result<Stopped> {
    if let Some(key) = &candidate.idempotency_key
        && let Some(earlier) = earlier(pool, &candidate.caller, key).await?
    {
        return Ok(Stopped::Earlier(Box::new(earlier)));
    }
    let (links, limits): (Vec<String>, Vec<i64>) =
        candidate.counters().iter().map(|counter| (counter.link.clone(), counter.limit)).unzip();
    let found = sqlx::query!(
        r#"select
             $1::uuid is not null and not exists (
                 select 1 from principal where id = $1 and revoked_at is null
             ) as "is_ended!",
             (select name from revocation where name = any($2) order by array_position($2, name) limit 1) as revoked,
             exists (
                 select 1 from unnest($3::text[], $4::bigint[]) as c (link, most)
                 join token_use u on u.link = c.link where u.used >= c.most
             ) as "is_exhausted!",
             $5::uuid is not null and not exists (
                 select 1 from approval where id = $5 and state = 'approved' and expires_at > $6
             ) as "is_unapproved!""#,
        candidate.principal,
        candidate.names(),
        &links,
        &limits,
        candidate.approval,
        now
    )
    .fetch_one(pool)
    .await
    .map_err(fault)?;
    Ok(match found.revoked {
        _ if found.is_ended => Stopped::Ended,
        Some(name) => Stopped::Revoked(name),
        None if candidate.is_over(now) => Stopped::Over,
        None if found.is_exhausted => Stopped::Exhausted,
        None if found.is_unapproved => Stopped::Unapproved,
        None => Stopped::Moved,
    })
}

/// Those of the names that were taken back.
pub async fn revoked(pool: &PgPool, names: &[String]) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!("select name from revocation where name = any($1)", names).fetch_all(pool).await
}

/// Lets an idempotency key go whose day is over, so that it can be used again.
pub async fn release_key(pool: &PgPool, id: Uuid) -> Result<()> {
    sqlx::query!("update invocation set idempotency_key = null where id = $1", id)
        .execute(pool)
        .await
        .map_err(fault)?;
    Ok(())
}
