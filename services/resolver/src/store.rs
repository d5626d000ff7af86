//! What was written to the book, from its history.

use sqlx::PgConnection;

/// One key in one revision.
#[derive(Debug)]
pub(crate) struct Touched {
    /// The revision.
    pub(crate) revision: i64,
    /// The key.
    pub(crate) key: String,
    /// The writable columns before the write, as JSON; absent for a new key.
    pub(crate) before: Option<String>,
    /// The writable columns after it; absent for a tombstone.
    pub(crate) after: Option<String>,
}

/// The entries that follow `(revision, key)`, up to and with the revision `until`, at most `limit`, in order.
pub(crate) async fn touched(
    connection: &mut PgConnection,
    (revision, key): (i64, &str),
    until: i64,
    limit: i64,
) -> sqlx::Result<Vec<Touched>> {
    sqlx::query_as!(
        Touched,
        "select revision, key, before, after from directory_history
         where (revision, key) > ($1, $2) and revision <= $3 order by revision, key limit $4",
        revision,
        key,
        until,
        limit
    )
    .fetch_all(connection)
    .await
}
