//! Write one row, and say what is doubtful about where it would run.

use callbook_domain::caller::Caller;
use callbook_domain::fault::Result;
use callbook_domain::key::Key;
use callbook_domain::row::{DEFAULT_POOL, Definition};
use callbook_store::snapshot::Entry;
use callbook_store::write::{self, Options, Written};
use serde_json::{Map, Value};

use crate::{App, store};

/// What is to be written.
pub(crate) enum Write {
    /// A new row.
    Create(Map<String, Value>),
    /// A row in the place of the one of this key.
    Replace(Key, Map<String, Value>),
    /// Some columns of the row of this key.
    Patch(Key, Map<String, Value>),
    /// An earlier version of the row of this key.
    Restore(Key, i64),
}

/// Writes; the answer names the row's pool where nobody serves it.
///
/// # Errors
/// As the four scripts of `callbook_store::write`.
pub(crate) async fn write(app: &App, caller: &Caller, what: Write, options: Options) -> Result<Written> {
    let writer = app.writer(caller);
    let mut written = match &what {
        Write::Create(fields) => write::create(&writer, fields, options).await?,
        Write::Replace(key, fields) => write::replace(&writer, key, fields, options).await?,
        Write::Patch(key, patch) => write::patch(&writer, key, patch, options).await?,
        Write::Restore(key, version) => write::restore(&writer, key, *version, options).await?,
    };
    if let Some(entry) = app.directory.snapshot().get(written.key.as_str()) {
        written.warnings.extend(pool_warning(app, &entry.row.definition).await);
    }
    Ok(written)
}

/// `pool_not_served:<pool>` where the row names a pool that nobody serves. That nobody serves `default` says nothing
/// about a row. It is a remark on a write that is done, so a database that does not answer now leaves it out.
pub(crate) async fn pool_warning(app: &App, definition: &Definition) -> Option<String> {
    let pool = named_pool(definition)?;
    unserved(app, &[pool]).await.pop().map(|pool| warning(&pool))
}

/// The same for many rows, each with its key in front.
pub(crate) async fn pool_warnings(app: &App, rows: &[&Entry]) -> Vec<String> {
    let named = |entry: &&Entry| Some((entry.key().clone(), named_pool(&entry.row.definition)?));
    let named: Vec<(Key, String)> = rows.iter().filter_map(named).collect();
    let mut pools: Vec<String> = named.iter().map(|(_, pool)| pool.clone()).collect();
    pools.sort_unstable();
    pools.dedup();
    let unserved = unserved(app, &pools).await;
    named
        .iter()
        .filter(|(_, pool)| unserved.contains(pool))
        .map(|(key, pool)| format!("{key}: {}", warning(pool)))
        .collect()
}

fn named_pool(definition: &Definition) -> Option<String> {
    let pool = definition.pool();
    (pool != DEFAULT_POOL && !definition.is_prompt_block()).then(|| pool.to_owned())
}

async fn unserved(app: &App, pools: &[String]) -> Vec<String> {
    if pools.is_empty() {
        return Vec::new();
    }
    let Ok(mut connection) = app.directory.pool().acquire().await else { return Vec::new() };
    store::unserved(&mut connection, pools, app.clock.now()).await.unwrap_or_default()
}

fn warning(pool: &str) -> String {
    format!("pool_not_served:{pool}")
}
