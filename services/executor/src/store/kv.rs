//! Key-value pairs of `fn` rows. A caller has a namespace of its own; keys under `shared/` are common to all.

use sqlx::PgPool;
use time::OffsetDateTime;

/// The value, or none.
pub async fn get(pool: &PgPool, namespace: &str, key: &str) -> sqlx::Result<Option<Vec<u8>>> {
    sqlx::query_scalar!("select value from kv where namespace = $1 and key = $2", namespace, key)
        .fetch_optional(pool)
        .await
}

/// Sets a value.
pub async fn put(pool: &PgPool, namespace: &str, key: &str, value: &[u8], now: OffsetDateTime) -> sqlx::Result<()> {
    sqlx::query!(
        "insert into kv (namespace, key, value, updated_at) values ($1, $2, $3, $4)
         on conflict on constraint kv_key do update set value = excluded.value, updated_at = excluded.updated_at",
        namespace,
        key,
        value,
        now
    )
    .execute(pool)
    .await?;
    Ok(())
}

/// Adds to the end of a value and gives its new length, or none where it would pass `max` bytes.
pub async fn append(
    pool: &PgPool,
    namespace: &str,
    key: &str,
    value: &[u8],
    max: i32,
    now: OffsetDateTime,
) -> sqlx::Result<Option<i32>> {
    sqlx::query_scalar!(
        r#"insert into kv as old (namespace, key, value, updated_at) values ($1, $2, $3, $4)
           on conflict on constraint kv_key do update
           set value = old.value || excluded.value, updated_at = excluded.updated_at
           where octet_length(old.value) + octet_length(excluded.value) <= $5
           returning octet_length(value) as "length!""#,
        namespace,
        key,
        value,
        now,
        max
    )
    .fetch_optional(pool)
    .await
}

/// Takes a pair out; whether there was one.
pub async fn delete(pool: &PgPool, namespace: &str, key: &str) -> sqlx::Result<bool> {
    let gone = sqlx::query!("delete from kv where namespace = $1 and key = $2", namespace, key).execute(pool).await?;
    Ok(gone.rows_affected() > 0)
}

/// The first thousand keys that begin with `prefix`, in order.
pub async fn list(pool: &PgPool, namespace: &str, prefix: &str) -> sqlx::Result<Vec<String>> {
    sqlx::query_scalar!(
        "select key from kv where namespace = $1 and starts_with(key, $2) order by key limit 1000",
        namespace,
        prefix
    )
    .fetch_all(pool)
    .await
}
