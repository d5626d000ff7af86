//! Create, replace, merge and delete one row.

use callbook_domain::caller::May;
use callbook_domain::compile::Compiled;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::hygiene::{self, Checked};
use callbook_domain::invocation::uuid_at;
use callbook_domain::key::Key;
use callbook_domain::row::{Definition, Merged, Row};
use serde_json::{Map, Value};

use super::batch::{self, Edit, Stamp};
use super::turn::Turn;
use super::{Deleted, Options, Writer, Written};
use crate::fault::fault;

/// What the caller asked for, read and allowed.
struct Asked {
    key: Key,
    action: &'static str,
    options: Options,
    ignored: Vec<String>,
    fields: Vec<String>,
}

/// Adds a row.
///
/// # Errors
/// `unauthorized`, `forbidden`, `invalid_request`, `already_exists`, `namespace_conflict`, `lookalike_key`,
/// `registry_hygiene_refused`.
pub async fn create(writer: &Writer, fields: &Map<String, Value>, options: Options) -> Result<Written> {
    writer.caller.require_credential()?;
    let (definition, ignored) = Definition::from_json(fields)?;
    let key = definition.key.clone();
    writer.caller.require(May::Edit, Some(&key))?;
    let mut checked = hygiene::check(&definition, writer.directory.rules());
    checked.forgive("keyless_missing_examples");
    let (mut turn, revision) = Turn::begin(writer).await?;
    if batch::load(&mut turn, key.as_str()).await.map_err(fault)?.is_some() {
        return Err(Fault::new(Reason::AlreadyExists, format!("a row `{key}` exists"))
            .fix("replace it with PUT or change it with PATCH"));
    }
    let asked = Asked { key, action: "create", options, ignored, fields: Vec::new() };
    commit(writer, turn, revision, asked, None, definition, checked).await
}

/// Puts a row in the place of the one that exists. Columns that are not named take their defaults.
///
/// # Errors
/// As [`create`] but for `already_exists`, `not found` and `version_mismatch`.
pub async fn replace(writer: &Writer, key: &Key, fields: &Map<String, Value>, options: Options) -> Result<Written> {
    place(writer, Place::Replace, key, fields, options).await
}

/// Adds the row, or puts it in the place of the one that exists.
///
/// # Errors
/// As [`replace`] but for `not found`.
pub async fn put(writer: &Writer, key: &Key, fields: &Map<String, Value>, options: Options) -> Result<Written> {
    place(writer, Place::Put, key, fields, options).await
}

/// A whole row, and what it stands for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    /// It takes the place of one that is there.
    Replace,
    /// It takes the place of one, or is new.
    Put,
    /// It was there before.
    Restore,
}

impl Place {
    /// What the history calls it.
    fn action(self, before: Option<&Row>) -> Result<&'static str> {
        match (self, before) {
            (Place::Replace, None) => Err(not_found()),
            (Place::Replace | Place::Put, Some(_)) => Ok("replace"),
            (Place::Put, None) => Ok("create"),
            (Place::Restore, _) => Ok("restore"),
        }
    }
}

/// Writes a whole row at its key.
pub(super) async fn place(
    writer: &Writer,
    place: Place,
    key: &Key,
    fields: &Map<String, Value>,
    options: Options,
) -> Result<Written> {
    writer.caller.require(May::Edit, Some(key))?;
    let mut fields = fields.clone();
    match fields.insert("key".into(), key.as_str().into()) {
        Some(Value::String(other)) if other != key.as_str() => {
            return Err(
                Fault::new(Reason::InvalidRequest, "the body names another key than the address").with("field", "key")
            );
        }
        Some(_) | None => {}
    }
    let (definition, ignored) = Definition::from_json(&fields)?;
    let checked = hygiene::check(&definition, writer.directory.rules());
    let (mut turn, revision) = Turn::begin(writer).await?;
    let before = batch::load(&mut turn, key.as_str()).await.map_err(fault)?;
    check_version(before.as_ref(), options)?;
    let action = place.action(before.as_ref())?;
    let asked = Asked { key: key.clone(), action, options, ignored, fields: Vec::new() };
    commit(writer, turn, revision, asked, before, definition, checked).await
}

/// Changes the named columns of a row.
///
/// # Errors
/// `not found`, `no recognized fields`, `version_mismatch`, and `registry_hygiene_refused` only for what the row did not
/// have before.
pub async fn patch(writer: &Writer, key: &Key, fields: &Map<String, Value>, options: Options) -> Result<Written> {
    writer.caller.require(May::Edit, Some(key))?;
    // looked at before the lock is taken, and again under it only where the row changed in between
    let mut connection = writer.directory.pool().acquire().await.map_err(fault)?;
    let seen = batch::load(&mut connection, key.as_str()).await.map_err(fault)?.ok_or_else(not_found)?;
    drop(connection);
    check_version(Some(&seen), options)?;
    let (mut merged, mut checked) = merged(writer, &seen, fields)?;
    let (mut turn, revision) = Turn::begin(writer).await?;
    let before = batch::load(&mut turn, key.as_str()).await.map_err(fault)?.ok_or_else(not_found)?;
    if before.version != seen.version {
        check_version(Some(&before), options)?;
        (merged, checked) = self::merged(writer, &before, fields)?;
    }
    let asked = Asked { key: key.clone(), action: "patch", options, ignored: merged.ignored, fields: merged.touched };
    commit(writer, turn, revision, asked, Some(before), merged.definition, checked).await
}

/// The row with the change, and what is wrong with it that was not wrong before.
fn merged(writer: &Writer, before: &Row, fields: &Map<String, Value>) -> Result<(Merged, Checked)> {
    let merged = before.definition.merge(fields)?;
    let rules = writer.directory.rules();
    let mut checked = hygiene::check(&merged.definition, rules);
    if !checked.violations.is_empty() {
        for violation in hygiene::check(&before.definition, rules).violations {
            checked.forgive(violation.code);
        }
    }
    Ok((merged, checked))
}

/// Takes a row out. Its history and its receipts stay.
///
/// # Errors
/// `unauthorized`, `forbidden`, `version_mismatch`. A key that no row has is no error.
pub async fn delete(writer: &Writer, key: &Key, options: Options) -> Result<Deleted> {
    writer.caller.require(May::Edit, Some(key))?;
    let (mut turn, revision) = Turn::begin(writer).await?;
    let before = batch::load(&mut turn, key.as_str()).await.map_err(fault)?;
    if options.if_match.is_some() {
        check_version(before.as_ref(), options)?;
    }
    let Some(before) = before else { return Ok(Deleted { deleted: false, revision: None }) };
    if before.definition.sensitive {
        // else a deletion and a creation would take the gate down
        writer.caller.require(May::Approve, Some(key))?;
    }
    let stamp = stamp(writer, revision);
    let edit = Edit { key: key.clone(), action: "delete", before: Some(before), after: None, last_version: 0 };
    let prepared = batch::prepare(&mut turn, vec![edit], &stamp).await.map_err(fault)?;
    finish(writer, turn, &prepared.staged, &stamp).await?;
    Ok(Deleted { deleted: true, revision: Some(revision) })
}

/// Looks at a row as a write would, and writes nothing: what would refuse it and what is odd.
pub fn check(writer: &Writer, definition: &Definition) -> Checked {
    hygiene::check(definition, writer.directory.rules())
}

pub(super) fn not_found() -> Fault {
    Fault::new(Reason::NotFound, "no row of this key")
}

pub(super) fn stamp(writer: &Writer, revision: i64) -> Stamp<'_> {
    Stamp { revision, at: writer.clock.now(), caller: &writer.caller, rules: writer.directory.rules() }
}

pub(super) fn check_version(before: Option<&Row>, options: Options) -> Result<()> {
    match (options.if_match, before) {
        (None, _) => Ok(()),
        (Some(asked), Some(row)) if row.version == asked => Ok(()),
        (Some(asked), row) => {
            let stored = row.map_or_else(|| "no row".to_owned(), |row| format!("version {}", row.version));
            Err(Fault::new(Reason::VersionMismatch, format!("the write names version {asked}, stored is {stored}"))
                .fix("read the row again and repeat the change on what it is now"))
        }
    }
}

async fn commit(
    writer: &Writer,
    mut turn: Turn<'_>,
    revision: i64,
    asked: Asked,
    before: Option<Row>,
    definition: Definition,
    checked: Checked,
) -> Result<Written> {
    let key = asked.key;
    let Checked { compiled, violations, mut warnings } = checked;
    if let Some(violation) = violations.first() {
        return Err(violation.fault(&key));
    }
    let compiled: Compiled = compiled.expect("a row without violations is compiled");
    batch::check_gates(&writer.caller, before.as_ref(), &definition, &compiled)?;
    if before.is_none() {
        batch::check_neighbours(&mut turn, &writer.caller, &key, asked.options.allow_lookalike).await?;
    }
    let stamp = stamp(writer, revision);
    let keys = [key.to_string()];
    let last_version = batch::last_versions(&mut turn, &keys).await.map_err(fault)?.remove(&keys[0]).unwrap_or(0);
    let edit =
        Edit { key: key.clone(), action: asked.action, before, after: Some((definition, compiled)), last_version };
    let prepared = batch::prepare(&mut turn, vec![edit], &stamp).await.map_err(fault)?;
    if let Some(violation) = prepared.violations.get(key.as_str()) {
        return Err(violation.fault(&key));
    }
    warnings.extend(prepared.warnings.get(key.as_str()).into_iter().flatten().cloned());
    let version = prepared.staged.iter().find(|staged| staged.row.definition.key == key).map_or(1, |s| s.row.version);
    finish(writer, turn, &prepared.staged, &stamp).await?;
    Ok(Written {
        key,
        updated_at: stamp.at,
        revision,
        version,
        warnings,
        fields: asked.fields,
        ignored_fields: asked.ignored,
    })
}

/// Merges, commits, and takes the revision into this process's own snapshot.
pub(super) async fn finish(
    writer: &Writer,
    mut turn: Turn<'_>,
    staged: &[crate::stage::Staged],
    stamp: &Stamp<'_>,
) -> Result<()> {
    batch::apply(&mut turn, uuid_at(stamp.at), staged, stamp).await.map_err(fault)?;
    turn.commit().await?;
    // The write is done; if the look at it fails now, the next one brings it.
    let _ = writer.directory.at_least(stamp.revision).await;
    Ok(())
}
