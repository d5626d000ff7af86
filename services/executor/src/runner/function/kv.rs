//! Functions of key-value pairs. Each caller has pairs of its own; keys under `shared/` are common to all.

use callbook_domain::arguments::Argument;
use callbook_domain::json;
use callbook_domain::outcome::{Failure, Output};
use callbook_domain::row::Effect;
use callbook_store::fault::fault;
use serde_json::json;

use super::{Given, World, failed, refused, text_of};
use crate::store::kv;

/// The longest key, in bytes.
const MAX_KEY: usize = 512;
/// The largest value, in bytes.
const MAX_VALUE: usize = 256 * 1024;
/// What the keys of all callers begin with, and the namespace that holds them. No caller's identity is this word.
const SHARED: (&str, &str) = ("shared/", "shared");

/// The value of a key: JSON where it is JSON, else text.
pub(super) async fn get(world: &World<'_>, arguments: &[Argument]) -> Given {
    let key = key(arguments)?;
    let value =
        kv::get(world.app.directory.pool(), &namespace(world, key), key).await.map_err(|e| lost(e, Effect::Read))?;
    let value = value.ok_or_else(|| Failure::new("fn:no_key", "nothing is stored under this key"))?;
    Ok(match String::from_utf8(value) {
        Ok(text) if json::check(&text).is_ok() => Output::json(text),
        Ok(text) => Output::text(text),
        Err(error) => {
            let bytes = error.into_bytes();
            Output { bytes, media_type: "application/octet-stream".into(), truncated: false }
        }
    })
}

/// Sets the value of a key.
pub(super) async fn put(world: &World<'_>, arguments: &[Argument]) -> Given {
    let (key, value) = (key(arguments)?, value(arguments)?);
    let (pool, now) = (world.app.directory.pool(), world.app.clock.now());
    let put = kv::put(pool, &namespace(world, key), key, value.as_bytes(), now).await;
    put.map_err(|error| lost(error, Effect::Write))?;
    Ok(Output::json(json!({"ok": true, "key": key, "bytes": value.len()}).to_string()))
}

/// Adds to the end of a value; a key without one gets it as its value.
pub(super) async fn append(world: &World<'_>, arguments: &[Argument]) -> Given {
    let (key, value) = (key(arguments)?, value(arguments)?);
    let (pool, now) = (world.app.directory.pool(), world.app.clock.now());
    let max = i32::try_from(MAX_VALUE).unwrap_or(i32::MAX);
    let bytes = kv::append(pool, &namespace(world, key), key, value.as_bytes(), max, now).await;
    let bytes = bytes.map_err(|error| lost(error, Effect::Write))?.ok_or_else(full)?;
    Ok(Output::json(json!({"ok": true, "key": key, "bytes": bytes}).to_string()))
}

/// Takes a key and its value out; a key that nothing is stored under is no failure.
pub(super) async fn delete(world: &World<'_>, arguments: &[Argument]) -> Given {
    let key = key(arguments)?;
    let deleted = kv::delete(world.app.directory.pool(), &namespace(world, key), key).await;
    let deleted = deleted.map_err(|error| lost(error, Effect::Destructive))?;
    Ok(Output::json(json!({"ok": true, "key": key, "deleted": deleted}).to_string()))
}

/// The keys that begin with a prefix, in order: the caller's own and the shared ones, the first thousand of each.
pub(super) async fn list(world: &World<'_>, arguments: &[Argument]) -> Given {
    let prefix = text_of(arguments, 0);
    check(prefix)?;
    let namespaces = match (prefix.starts_with(SHARED.0), SHARED.0.starts_with(prefix)) {
        (true, _) => vec![SHARED.1.to_owned()],
        (false, true) => vec![world.call.caller.identity(), SHARED.1.to_owned()],
        (false, false) => vec![world.call.caller.identity()],
    };
    let mut keys = Vec::new();
    for namespace in namespaces {
        let found = kv::list(world.app.directory.pool(), &namespace, prefix).await;
        keys.extend(found.map_err(|error| lost(error, Effect::Read))?);
    }
    keys.sort_unstable();
    Ok(Output::json(json!(keys).to_string()))
}

fn namespace(world: &World<'_>, key: &str) -> String {
    if key.starts_with(SHARED.0) { SHARED.1.to_owned() } else { world.call.caller.identity() }
}

fn key(arguments: &[Argument]) -> Result<&str, Failure> {
    let key = text_of(arguments, 0);
    if key.is_empty() {
        return Err(refused("the key is empty"));
    }
    check(key)?;
    Ok(key)
}

/// Postgres text has no NUL.
fn check(key: &str) -> Result<(), Failure> {
    if key.len() > MAX_KEY {
        return Err(refused(format!("a key is at most {MAX_KEY} bytes")));
    }
    if key.contains('\0') {
        return Err(refused("a key has no U+0000"));
    }
    Ok(())
}

fn value(arguments: &[Argument]) -> Result<&str, Failure> {
    let value = text_of(arguments, 1);
    if value.len() > MAX_VALUE { Err(full()) } else { Ok(value) }
}

fn full() -> Failure {
    Failure::new("fn:too_large", format!("a value is at most {MAX_VALUE} bytes"))
}

fn lost(error: sqlx::Error, effect: Effect) -> Failure {
    failed(&fault(error), effect)
}
