//! The breaker of a credential in SQL: read, ask and write under one row lock.

use sqlx::PgPool;
use time::OffsetDateTime;

use crate::egress::breaker::{Breaker, Gate};

/// Which credential at which origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// `scheme://host[:port]`.
    pub origin: String,
    /// The secret's name; several names joined by `+`.
    pub secret: String,
    /// Tells its value of now from another one.
    pub fingerprint: String,
}

/// The breaker as it is, without taking part in it.
pub async fn look(pool: &PgPool, credential: &Credential) -> sqlx::Result<Breaker> {
    let record = sqlx::query!(
        "select streak, opened_at, fingerprint from credential_failure where origin = $1 and secret = $2",
        credential.origin,
        credential.secret
    )
    .fetch_optional(pool)
    .await?;
    Ok(record.map_or_else(Breaker::default, |record| breaker(record.streak, record.opened_at, record.fingerprint)))
}

/// Asks for a way through. A credential without failures has no record and needs no write.
pub async fn enter(pool: &PgPool, credential: &Credential, now: OffsetDateTime) -> sqlx::Result<Gate> {
    if look(pool, credential).await? == Breaker::default() {
        return Ok(Gate::Pass);
    }
    update(pool, credential, |breaker| breaker.enter(&credential.fingerprint, now)).await
}

/// Tells how the call ended.
pub async fn leave(
    pool: &PgPool,
    credential: &Credential,
    gate: Gate,
    answered: Option<u16>,
    now: OffsetDateTime,
) -> sqlx::Result<()> {
    let refused = matches!(answered, Some(401 | 403));
    if !refused && gate == Gate::Pass && look(pool, credential).await?.streak == 0 {
        return Ok(());
    }
    update(pool, credential, |breaker| breaker.leave(gate, &credential.fingerprint, answered, now)).await
}

/// Forgets every failure of these secrets. Gives how many records there were.
pub async fn reset(pool: &PgPool, secret: &str) -> sqlx::Result<u64> {
    let gone = sqlx::query!("delete from credential_failure where secret = $1", secret).execute(pool).await?;
    Ok(gone.rows_affected())
}

async fn update<R>(pool: &PgPool, credential: &Credential, change: impl FnOnce(&mut Breaker) -> R) -> sqlx::Result<R> {
    let mut transaction = pool.begin().await?;
    sqlx::query!(
        "insert into credential_failure (origin, secret, streak, fingerprint) values ($1, $2, 0, $3)
         on conflict on constraint credential_failure_of do nothing",
        credential.origin,
        credential.secret,
        credential.fingerprint
    )
    .execute(&mut *transaction)
    .await?;
    let record = sqlx::query!(
        "select streak, opened_at, fingerprint from credential_failure where origin = $1 and secret = $2 for update",
        credential.origin,
        credential.secret
    )
    .fetch_one(&mut *transaction)
    .await?;
    let mut breaker = breaker(record.streak, record.opened_at, record.fingerprint);
    let answer = change(&mut breaker);
    sqlx::query!(
        "update credential_failure set streak = $3, opened_at = $4, fingerprint = $5 where origin = $1 and secret = $2",
        credential.origin,
        credential.secret,
        i32::try_from(breaker.streak).unwrap_or(i32::MAX),
        breaker.opened_at,
        breaker.secret_fingerprint
    )
    .execute(&mut *transaction)
    .await?;
    transaction.commit().await?;
    Ok(answer)
}

fn breaker(streak: i32, opened_at: Option<OffsetDateTime>, fingerprint: String) -> Breaker {
    Breaker { streak: u32::try_from(streak).unwrap_or(0), opened_at, secret_fingerprint: fingerprint }
}
