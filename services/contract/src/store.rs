//! What the database knows and the snapshot does not.

use callbook_domain::fault::Result;
use callbook_domain::key::Key;
use callbook_domain::lookalike::skeleton;
use callbook_store::fault::fault;
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

/// A stored key that stands in the key's namespace or the other way round.
pub(crate) async fn namespace_clash(connection: &mut PgConnection, key: &Key) -> Result<Option<String>> {
    let above: Vec<String> = key.namespaces().map(str::to_owned).collect();
    let (from, to) = (format!("{key}."), format!("{key}/"));
    sqlx::query_scalar!(
        "select key from directory where key = any($1) or (key >= $2 and key < $3) order by key limit 1",
        &above,
        from,
        to
    )
    .fetch_optional(connection)
    .await
    .map_err(fault)
}

/// A stored key that reads like this one.
pub(crate) async fn twin(connection: &mut PgConnection, key: &Key) -> Result<Option<String>> {
    sqlx::query_scalar!(
        "select key from directory where skeleton = $1 and key <> $2 order by key limit 1",
        skeleton(key.as_str()),
        key.as_str()
    )
    .fetch_optional(connection)
    .await
    .map_err(fault)
}
