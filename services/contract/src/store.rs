//! What the database knows and the snapshot does not.

use sqlx::PgConnection;
use time::{Duration, OffsetDateTime};

/// After this much silence an executor is dead (`spec/receipts.md`).
const SILENCE: Duration = Duration::seconds(20);

/// Those of the pools that no living executor serves.
pub(crate) async fn unserved(
    connection: &mut PgConnection,
    pools: &[String],
    now: OffsetDateTime,
) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        r#"select pool as "pool!" from unnest($1::text[]) as pool
           where not exists (select from executor where pool = any(executor.pools) and heartbeat_at > $2)"#,
        pools,
        now - SILENCE
    )
    .fetch_all(connection)
    .await
}
