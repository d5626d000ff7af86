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
    /// The columns that the write changed, with both values.
    pub changes: Vec<(String, Value, Value)>,
}

impl Version {
    /// The version for somebody who may not edit the row: which columns changed and when, and neither who did it nor what
    /// stood there. What was taken out of a row was taken out for a reason.
    pub fn veiled(self) -> Version {
        let changes = self.changes.into_iter().map(|(name, _, _)| (name, Value::Null, Value::Null)).collect();
        Version { actor: String::new(), before: None, after: None, changes, ..self }
    }
}

fn changes(before: Option<&Map<String, Value>>, after: Option<&Map<String, Value>>) -> Vec<(String, Value, Value)> {
    let empty = Map::new();
    let (before, after) = (before.unwrap_or(&empty), after.unwrap_or(&empty));
    let names = before.keys().chain(after.keys().filter(|name| !before.contains_key(*name)));
    names
        .filter_map(|name| {
            let old = before.get(name).cloned().unwrap_or(Value::Null);
            let new = after.get(name).cloned().unwrap_or(Value::Null);
            (old != new).then(|| (name.clone(), old, new))
        })
        .collect()
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
    let object = |text: Option<String>| -> Option<Map<String, Value>> { serde_json::from_str(&text?).ok() };
    Ok(records
        .into_iter()
        .map(|record| {
            let (before, after) = (object(record.before), object(record.after));
            Version {
                version: record.version,
                revision: record.revision,
                at: record.at,
                actor: record.actor,
                action: record.action,
                changes: changes(before.as_ref(), after.as_ref()),
                before,
                after,
            }
        })
        .collect())
}
