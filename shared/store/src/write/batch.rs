//! Edits as one revision: closed over what reaches them, staged, merged.

use std::collections::BTreeMap;

use callbook_domain::caller::{Caller, May};
use callbook_domain::compile::{Compiled, Plan, ReachKind, Rules};
use callbook_domain::docstring::Docstring;
use callbook_domain::event::{Body, EventKind};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::hygiene::Violation;
use callbook_domain::key::Key;
use callbook_domain::lookalike::skeleton;
use callbook_domain::row::{Definition, Effect, Row, RowType, timestamp};
use serde_json::{Value, json};
use sqlx::PgConnection;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::close::{self, Closure, Facts, Node};
use crate::fault::fault;
use crate::stage::{self, Staged};
use crate::stored::Stored;

/// One row's edit, decided.
pub(crate) struct Edit {
    pub key: Key,
    pub action: &'static str,
    pub before: Option<Row>,
    /// Absent for a tombstone.
    pub after: Option<(Definition, Compiled)>,
    /// The last version that the key ever had, so that a key that comes back does not repeat one.
    pub last_version: i64,
}

/// When, by whom, under which rules and as which revision.
pub(crate) struct Stamp<'a> {
    pub revision: i64,
    pub at: OffsetDateTime,
    pub caller: &'a Caller,
    pub rules: &'a Rules,
}

/// Edits with everything that their merge needs.
pub(crate) struct Prepared {
    pub staged: Vec<Staged>,
    pub warnings: BTreeMap<String, Vec<String>>,
    /// Rows that the closure refuses.
    pub violations: BTreeMap<String, Violation>,
}

/// The stored row, under the lock or for a look.
pub(crate) async fn load(connection: &mut PgConnection, key: &str) -> sqlx::Result<Option<Row>> {
    let stored =
        sqlx::query_as!(Stored, "select * from directory where key = $1", key).fetch_optional(connection).await?;
    stored.map(Stored::into_row).transpose()
}

/// The stored rows of these keys.
pub(crate) async fn load_all(connection: &mut PgConnection, keys: &[String]) -> sqlx::Result<BTreeMap<String, Row>> {
    let stored =
        sqlx::query_as!(Stored, "select * from directory where key = any($1)", keys).fetch_all(connection).await?;
    stored.into_iter().map(|stored| stored.into_row().map(|row| (row.definition.key.to_string(), row))).collect()
}

/// The last version that each of these keys ever had; keys that never were are absent.
pub(crate) async fn last_versions(
    connection: &mut PgConnection,
    keys: &[String],
) -> sqlx::Result<BTreeMap<String, i64>> {
    let records = sqlx::query!(
        r#"select key, max(version) as "version!" from directory_history where key = any($1) group by key"#,
        keys
    )
    .fetch_all(connection)
    .await?;
    Ok(records.into_iter().map(|record| (record.key, record.version)).collect())
}

/// Computes hashes, effect and risk of the edited rows and of all that reach them.
pub(crate) async fn prepare(
    connection: &mut PgConnection,
    edits: Vec<Edit>,
    stamp: &Stamp<'_>,
) -> sqlx::Result<Prepared> {
    let mut nodes = BTreeMap::new();
    let mut removed = Vec::new();
    let mut edits_by_key = BTreeMap::new();
    for edit in edits {
        let key = edit.key.to_string();
        match &edit.after {
            None => removed.push(key.clone()),
            Some((definition, compiled)) => {
                let (definition, compiled) = (definition.clone(), compiled.clone());
                nodes.insert(key.clone(), Node { definition, compiled, stored: edit.before.clone(), edited: true });
            }
        }
        edits_by_key.insert(key, edit);
    }
    let closure = close::close(connection, &mut nodes, &removed, stamp.rules).await?;
    let mut staged: Vec<Staged> = edits_by_key
        .values()
        .filter_map(|edit| staged_edit(edit, nodes.get(edit.key.as_str()), &closure, stamp))
        .collect();
    staged.extend(nodes.values().filter(|node| !node.edited).filter_map(|node| staged_reach(node, &closure, stamp)));
    let violations = violations(&closure);
    Ok(Prepared { staged, warnings: closure.warnings, violations })
}

fn violations(closure: &Closure) -> BTreeMap<String, Violation> {
    let mut violations = BTreeMap::new();
    for (row, step, pool) in &closure.pool_mismatches {
        violations.insert(row.clone(), Violation::pool_mismatch(step, pool));
    }
    for key in &closure.cycles {
        violations.insert(key.clone(), Violation::cycle());
    }
    violations
}

fn staged_edit(edit: &Edit, node: Option<&Node>, closure: &Closure, stamp: &Stamp<'_>) -> Option<Staged> {
    let before = edit.before.as_ref();
    let row = match (&edit.after, node) {
        (Some((definition, _)), Some(_)) => {
            let facts = closure.facts.get(edit.key.as_str())?;
            row_of(definition.clone(), facts, edit, stamp)
        }
        (_, _) => before?.clone(),
    };
    let after = edit.after.as_ref().map(|_| &row);
    let version = if after.is_some() { row.version } else { row.version + 1 };
    let event = mutate_event(edit, before, after, stamp);
    let (reaches, kinds) = reaches(edit.after.as_ref().map(|(_, compiled)| compiled));
    Some(Staged {
        skeleton: skeleton(edit.key.as_str()),
        action: edit.action,
        before: before.map(|row| Value::Object(row.definition.to_json()).to_string()),
        after: after.map(|row| Value::Object(row.definition.to_json()).to_string()),
        event: Some(event),
        reaches,
        kinds,
        row: Row { version, ..row },
    })
}

fn staged_reach(node: &Node, closure: &Closure, stamp: &Stamp<'_>) -> Option<Staged> {
    let stored = node.stored.as_ref()?;
    let facts = closure.facts.get(node.definition.key.as_str())?;
    let same = Facts {
        contract_hash: stored.contract_hash.clone(),
        text_hash: stored.text_hash.clone(),
        effect: stored.effect,
        risk: stored.risk,
    };
    if *facts == same {
        return None;
    }
    let (reaches, kinds) = reaches(Some(&node.compiled));
    let text = Value::Object(stored.definition.to_json()).to_string();
    Some(Staged {
        row: Row {
            revision: stamp.revision,
            contract_hash: facts.contract_hash.clone(),
            text_hash: facts.text_hash.clone(),
            effect: facts.effect,
            risk: facts.risk,
            ..stored.clone()
        },
        skeleton: skeleton(node.definition.key.as_str()),
        action: "reach",
        before: Some(text.clone()),
        after: Some(text),
        event: None,
        reaches,
        kinds,
    })
}

fn row_of(definition: Definition, facts: &Facts, edit: &Edit, stamp: &Stamp<'_>) -> Row {
    let before = edit.before.as_ref();
    Row {
        definition,
        revision: stamp.revision,
        version: before.map_or(edit.last_version, |row| row.version) + 1,
        contract_hash: facts.contract_hash.clone(),
        text_hash: facts.text_hash.clone(),
        effect: facts.effect,
        risk: facts.risk,
        created_at: before.map_or(stamp.at, |row| row.created_at),
        updated_at: stamp.at,
    }
}

fn reaches(compiled: Option<&Compiled>) -> (Vec<String>, Vec<String>) {
    let reaches = compiled.map_or(&[][..], |compiled| &compiled.reaches[..]);
    reaches
        .iter()
        .map(|reach| {
            let kind = match reach.kind {
                ReachKind::Step => "step",
                ReachKind::Include => "include",
            };
            (reach.key.to_string(), kind.to_owned())
        })
        .unzip()
}

fn mutate_event(edit: &Edit, before: Option<&Row>, after: Option<&Row>, stamp: &Stamp<'_>) -> String {
    let side = |row: Option<&Row>| {
        row.map_or(
            Value::Null,
            |row| json!({"version": row.version, "contract": row.contract_hash, "text": row.text_hash}),
        )
    };
    Body::new(EventKind::Mutate)
        .set("key", edit.key.as_str())
        .set("action", edit.action)
        .set("actor", stamp.caller.actor())
        .set("revision", stamp.revision)
        .set("before", side(before))
        .set("after", side(after))
        .set("ts", timestamp(stamp.at))
        .canonical()
}

/// Refuses to take a row's gates down without the right to approve: `sensitive` from true to false, an effect lowered. A
/// flow's effect is its steps' and not its writer's to lower. Whoever may call a flow may run its steps, so whoever writes
/// steps must have the right to run them.
pub(crate) fn check_gates(
    caller: &Caller,
    before: Option<&Row>,
    after: &Definition,
    compiled: &Compiled,
) -> Result<()> {
    let template = |definition: &Definition| Docstring::split(&definition.content).1.to_owned();
    let as_before = before.is_some_and(|before| {
        before.definition.row_type == RowType::Flow && template(&before.definition) == template(after)
    });
    if let Plan::Flow(flow) = &compiled.plan
        && !as_before
    {
        flow.steps_keys().iter().try_for_each(|step| caller.require(May::Invoke, Some(step)))?;
    }
    let Some(before) = before else { return Ok(()) };
    let own = match before.definition.row_type {
        RowType::Flow => Effect::Read,
        RowType::Fn | RowType::Http | RowType::Agent => before.effect,
    };
    if (before.definition.sensitive && !after.sensitive) || compiled.effect < own {
        return caller.require(May::Approve, Some(&after.key));
    }
    Ok(())
}

/// Refuses a key that stands in another's namespace or reads like another key.
pub(crate) async fn check_neighbours(
    connection: &mut PgConnection,
    caller: &Caller,
    key: &Key,
    allow_lookalike: bool,
) -> Result<()> {
    if let Some(other) = namespace_clash(connection, key).await? {
        return Err(namespace_conflict(caller, &other));
    }
    if allow_lookalike {
        return Ok(());
    }
    match twin(connection, key).await? {
        None => Ok(()),
        Some(other) => Err(lookalike(caller, key, &other)),
    }
}

/// A stored key that this one would be a namespace of, or that would be a namespace of this one.
pub async fn namespace_clash(connection: &mut PgConnection, key: &Key) -> Result<Option<String>> {
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
pub async fn twin(connection: &mut PgConnection, key: &Key) -> Result<Option<String>> {
    sqlx::query_scalar!(
        "select key from directory where skeleton = $1 and key <> $2 order by key limit 1",
        skeleton(key.as_str()),
        key.as_str()
    )
    .fetch_optional(connection)
    .await
    .map_err(fault)
}

/// The refusal of a key that is another's namespace or stands below another. A key that the writer does not see is not
/// named.
pub(crate) fn namespace_conflict(caller: &Caller, other: &str) -> Fault {
    let fault = Fault::new(Reason::NamespaceConflict, "a key cannot be the namespace of another key, and one exists");
    named(fault, caller, other).fix("choose another key")
}

/// The refusal of a key that reads like another one.
pub(crate) fn lookalike(caller: &Caller, key: &Key, other: &str) -> Fault {
    let fault = Fault::new(Reason::LookalikeKey, format!("`{key}` reads like a key that exists"));
    named(fault, caller, other).fix("choose another key, or say allow_lookalike")
}

fn named(fault: Fault, caller: &Caller, other: &str) -> Fault {
    if Key::parse(other).is_ok_and(|key| caller.sees(&key)) { fault.detail(other) } else { fault }
}

/// Stages and merges what was prepared. The caller holds the exclusive lock and commits.
pub(crate) async fn apply(
    connection: &mut PgConnection,
    batch: Uuid,
    staged: &[Staged],
    stamp: &Stamp<'_>,
) -> sqlx::Result<()> {
    stage::stage(connection, batch, &stamp.caller.actor(), staged).await?;
    stage::merge(connection, batch, stamp.revision, stamp.at).await.map(drop)
}
