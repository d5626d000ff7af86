//! Every version of a row, tombstones too.

use callbook_domain::fault::Result;
use callbook_domain::key::Key;
use serde_json::{Map, Value};
use sqlx::PgConnection;
use time::OffsetDateTime;

use crate::fault::fault;

/// One entry of a row's history.
#[derive(Clone, Debug)]
pub struct Version {
    /// The row's version after the write.
    pub version: i64,
    /// The directory's revision of the write.
    pub revision: i64,
    /// When.
    pub at: OffsetDateTime,
    /// Who.
    pub actor: String,
    /// `create`, `replace`, `patch`, `delete`, `restore`, `import`, or `reach` where only something that the row
    /// reaches changed.
    pub action: String,
    /// The writable columns before it.
    pub before: Option<Map<String, Value>>,
    /// The writable columns after it; absent for a tombstone.
    pub after: Option<Map<String, Value>>,
}

impl Version {
    /// The columns that the write changed, with both values.
    pub fn changes(&self) -> Vec<(String, Value, Value)> {
        let empty = Map::new();
        let (before, after) = (self.before.as_ref().unwrap_or(&empty), self.after.as_ref().unwrap_or(&empty));
        let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
        names
            .filter_map(|name| {
                let old = before.get(name).cloned().unwrap_or(Value::Null);
                let new = after.get(name).cloned().unwrap_or(Value::Null);
                (old != new).then(|| (name.clone(), old, new))
            })
            .collect()
    }
}

/// A page of a key's history, newest first: entries below `before_revision`, at most `limit`.
pub async fn versions(
    connection: &mut PgConnection,
    key: &Key,
    before_revision: i64,
    limit: i64,
) -> Result<Vec<Version>> {
    let records = sqlx::query!(
        "select version, revision, at, actor, action, before, after from directory_history
         where key = $1 and revision < $2 and action <> 'recommend' order by revision desc limit $3",
        key.as_str(),
        before_revision,
        limit
    )
    .fetch_all(connection)
    .await
    .map_err(fault)?;
    let object = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(records
        .into_iter()
        .map(|record| Version {
            version: record.version,
            revision: record.revision,
            at: record.at,
            actor: record.actor,
            action: record.action,
            before: object(record.before),
            after: object(record.after),
        })
        .collect())
}
