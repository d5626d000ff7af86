//! Bring an earlier version of a row back, of a deleted one too.

use callbook_domain::caller::May;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use serde_json::{Map, Value};

use super::row::{Place, not_found, place};
use super::{Options, Writer, Written};
use crate::fault::fault;

/// Writes version `version` of the row anew, as its next version.
///
/// # Errors
/// `not found` where the row never had that version, else as a replacement.
pub async fn restore(writer: &Writer, key: &Key, version: i64, options: Options) -> Result<Written> {
    writer.caller.require(May::Edit, Some(key))?;
    let mut connection = writer.directory.pool().acquire().await.map_err(fault)?;
    let text = sqlx::query_scalar!(
        "select after from directory_history
         where key = $1 and version = $2 and after is not null and action not in ('reach', 'recommend')
         order by revision desc limit 1",
        key.as_str(),
        version
    )
    .fetch_optional(&mut *connection)
    .await
    .map_err(fault)?
    .flatten()
    .ok_or_else(not_found)?;
    drop(connection);
    let fields: Map<String, Value> =
        serde_json::from_str(&text).map_err(|_| Fault::new(Reason::Internal, "the stored version cannot be read"))?;
    place(writer, Place::Restore, key, &fields, options).await
}
