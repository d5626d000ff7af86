//! Whether a principal still stands where it acts.

use callbook_domain::caller::{Caller, unauthorized};
use callbook_domain::fault::Result;
use sqlx::PgConnection;

use crate::fault::fault;

/// Refuses a principal that was ended since it was believed. Asked under the lock, shared or exclusive, it sees every end
/// that was acknowledged, and nothing ends it before the transaction does.
///
/// # Errors
/// `unauthorized`.
pub async fn check_alive(connection: &mut PgConnection, caller: &Caller) -> Result<()> {
    let Some(id) = caller.recorded_principal() else { return Ok(()) };
    let alive = sqlx::query_scalar!(
        r#"select exists (select 1 from principal where id = $1 and revoked_at is null) as "alive!""#,
        id
    );
    if alive.fetch_one(connection).await.map_err(fault)? { Ok(()) } else { Err(unauthorized()) }
}
