//! The one advisory lock on which callers, revocations and directory writes meet.
//!
//! A statement that began before a write committed does not see it and could commit after the write was
//! acknowledged. So callers take the lock shared for their one short transaction, and writes take it exclusive. Each is
//! its own statement, so that the next statement's snapshot is taken after the lock.

use sqlx::{Connection as _, PgConnection, Postgres, Transaction};

/// "callbook" as eight bytes, in decimals 7161124095259537259.
const COMMIT_POINT: i64 = 0x6361_6c6c_626f_6f6b;

/// Taken by everything that commits a call, for the length of its transaction.
pub async fn shared(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock_shared($1)", COMMIT_POINT).execute(connection).await?;
    Ok(())
}

/// Begins a transaction with the lock shared, in one message. Where that fails or is dropped the connection must be closed:
/// it may be in a transaction that it does not know of.
pub async fn begin_shared(connection: &mut PgConnection) -> sqlx::Result<Transaction<'_, Postgres>> {
    connection.begin_with("begin; select pg_advisory_xact_lock_shared(7161124095259537259)").await
}

/// Taken by directory writes and revocations, for the length of their transaction.
pub async fn exclusive(connection: &mut PgConnection) -> sqlx::Result<()> {
    sqlx::query!("select pg_advisory_xact_lock($1)", COMMIT_POINT).execute(connection).await?;
    Ok(())
}
