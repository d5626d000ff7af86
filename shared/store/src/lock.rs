//! The one advisory lock on which callers, revocations and directory writes meet.
//!
//! A statement that began before a write committed does not see it and could commit after the write was
//! acknowledged. So callers take the lock shared for their one short transaction, and writes take it exclusive. Each is
//! its own statement, so that the next statement's snapshot is taken after the lock.

use sqlx::PgConnection;

/// "callbook" as eight bytes.
const COMMIT_POINT: i64 = 0x6361_6c6c_626f_6f6b;

/// Taken by everything that commits a call, for the length of its transaction.
pub async fn shared(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock_shared($1)", COMMIT_POINT).execute(connection).await?;
    Ok(())
}

/// Taken by directory writes and revocations, for the length of their transaction.
pub async fn exclusive(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock($1)", COMMIT_POINT).execute(connection).await?;
    Ok(())
}
