//! Many rows as one write: looked at and hashed beside the book, merged under the lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callbook_domain::caller::May;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::hygiene::{self, Checked};
use callbook_domain::invocation::uuid_at;
use callbook_domain::json;
use callbook_domain::key::Key;
use callbook_domain::lookalike::skeleton;
use callbook_domain::row::{Definition, Provenance, Row};
use serde_json::{Map, Value};
use sqlx::PgConnection;
use tracing::Instrument as _;
use uuid::Uuid;

use super::Writer;
use super::batch::{self, Edit, Prepared};
use super::row::stamp;
use super::turn::Turn;
use crate::fault::fault;
use crate::{feed, stage};

/// The largest import, in bytes.
const MAX_IMPORT: usize = 64 * 1024 * 1024;
/// How many warnings an answer repeats.
const MAX_WARNINGS: usize = 100;
/// After how long a batch that was staged and not merged belongs to nobody.
const STALE_BATCH: time::Duration = time::Duration::hours(1);
/// How often an import that another write overtook is prepared anew before it holds the lock meanwhile.
const OPTIMISTIC_TRIES: usize = 3;

/// What happens to the rest when a line is refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImportMode {
    /// Nothing is written.
    #[default]
    Atomic,
    /// The others are written.
    Each,
}

/// What happens to a line whose key exists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnConflict {
    /// It is refused, unless it says what is stored.
    #[default]
    Refuse,
    /// It takes the row's place.
    Replace,
    /// The stored row stays.
    Skip,
}

/// How to import.
#[derive(Clone, Copy, Debug, Default)]
pub struct Import {
    /// What a refusal does to the rest.
    pub mode: ImportMode,
    /// What a known key does.
    pub on_conflict: OnConflict,
    /// Lets keys through that read like others.
    pub allow_lookalike: bool,
    /// Who wrote the words of rows that do not say so themselves.
    pub provenance: Option<Provenance>,
}

/// A line that was refused.
#[derive(Clone, Debug)]
pub struct RefusedLine {
    /// 1-based line of NDJSON, or place in the list.
    pub line: usize,
    /// Its key, as far as it could be read.
    pub key: String,
    /// Why.
    pub fault: Fault,
}

/// What an import gave.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// Nothing was refused, or the mode lets the rest through.
    pub ok: bool,
    /// New rows.
    pub created: usize,
    /// Rows that took another's place.
    pub replaced: usize,
    /// Rows that stand as they stood.
    pub unchanged: usize,
    /// Lines that were not taken.
    pub refused: Vec<RefusedLine>,
    /// The first hundred oddities, each with its key in front.
    pub warnings: Vec<String>,
    /// The directory's revision after it.
    pub revision: i64,
}

struct Line {
    number: usize,
    definition: Definition,
    checked: Checked,
}

/// Reads NDJSON or one JSON list and writes its rows.
///
/// # Errors
/// `request_too_large`, `invalid_request` where the text is neither form. Refused lines are no error: they are in the
/// answer, and in [`ImportMode::Atomic`] nothing was written then.
pub async fn import(writer: &Writer, bytes: Vec<u8>, options: Import) -> Result<Imported> {
    writer.caller.require_credential()?;
    if bytes.len() > MAX_IMPORT {
        return Err(Fault::new(Reason::RequestTooLarge, "an import is at most 64 MiB"));
    }
    let reader = writer.clone();
    let (lines, refused) = tokio::task::spawn_blocking(move || read(&reader, &bytes, options))
        .await
        .map_err(|_| Fault::new(Reason::Internal, "the reader of the import stopped"))??;
    let mut tries = 0;
    loop {
        tries += 1;
        let locked = tries > OPTIMISTIC_TRIES;
        if let Some(imported) = attempt(writer, &lines, refused.clone(), options, locked).await? {
            return Ok(imported);
        }
    }
}

fn read(writer: &Writer, bytes: &[u8], options: Import) -> Result<(Vec<Line>, Vec<RefusedLine>)> {
    let (mut lines, mut refused) = (Vec::new(), Vec::new());
    let mut seen: HashMap<Key, usize> = HashMap::new();
    for (number, fields) in parse(bytes)? {
        let name =
            fields.as_ref().ok().and_then(|f| f.get("key")).and_then(Value::as_str).unwrap_or_default().to_owned();
        let line = fields.and_then(|fields| read_line(writer, number, fields, options)).and_then(|line| {
            match seen.insert(line.definition.key.clone(), number) {
                None => Ok(line),
                Some(first) => Err(Fault::new(Reason::AlreadyExists, format!("line {first} has the same key"))),
            }
        });
        match line {
            Ok(line) => lines.push(line),
            Err(fault) => refused.push(RefusedLine { line: number, key: name, fault }),
        }
    }
    Ok((lines, refused))
}

fn read_line(writer: &Writer, number: usize, mut fields: Map<String, Value>, options: Import) -> Result<Line> {
    if let Some(provenance) = options.provenance {
        fields.entry("provenance").or_insert(provenance.as_str().into());
    }
    let (definition, _) = Definition::from_json(&fields)?;
    writer.caller.require(May::Edit, Some(&definition.key))?;
    let mut checked = hygiene::check(&definition, writer.directory.rules());
    checked.forgive("keyless_missing_examples");
    match checked.violations.first() {
        Some(violation) => Err(violation.fault(&definition.key)),
        None => Ok(Line { number, definition, checked }),
    }
}

type Parsed = Vec<(usize, Result<Map<String, Value>>)>;

fn parse(bytes: &[u8]) -> Result<Parsed> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| Fault::new(Reason::InvalidRequest, format!("byte {} is not UTF-8", error.valid_up_to())))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('[') {
        let items = json::list(text).map_err(|problem| not_json("the list", &problem))?;
        let rows = items.iter().map(|item| json::value(item.get()).map_err(|problem| not_json("the row", &problem)));
        return Ok(rows.enumerate().map(|(at, value)| (at + 1, value.and_then(object))).collect());
    }
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let rows = lines.map(|(at, line)| (at + 1, json::value(line).map_err(|problem| not_json("the line", &problem))));
    Ok(rows.map(|(number, value)| (number, value.and_then(object))).collect())
}

fn not_json(what: &str, problem: &json::Problem) -> Fault {
    Fault::new(Reason::InvalidRequest, format!("{what} is refused: {problem}"))
}

fn object(value: Value) -> Result<Map<String, Value>> {
    match value {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(Fault::new(Reason::InvalidRequest, "a row is a JSON object"))
        }
    }
}

/// One try at the whole import: nothing where another write came between the look and the lock.
async fn attempt(
    writer: &Writer,
    lines: &[Line],
    refused: Vec<RefusedLine>,
    options: Import,
    locked: bool,
) -> Result<Option<Imported>> {
    if locked {
        let (mut turn, revision) = Turn::begin(writer).await?;
        let (imported, prepared) = decide(writer, &mut turn, lines, refused, options, revision - 1).await?;
        let Some(prepared) = prepared else { return Ok(Some(imported)) };
        super::row::finish(writer, turn, &prepared.staged, &stamp(writer, revision)).await?;
        return Ok(Some(imported));
    }
    let mut connection = writer.directory.pool().acquire().await.map_err(fault)?;
    let base = feed::revision(&mut connection).await.map_err(fault)?;
    let (imported, prepared) = decide(writer, &mut connection, lines, refused, options, base).await?;
    let Some(prepared) = prepared else { return Ok(Some(imported)) };
    drop(connection);
    let writer = writer.clone();
    // whoever hangs up meanwhile leaves nothing half done
    let landed = tokio::spawn(async move { land(&writer, &prepared, base).await }.in_current_span()).await;
    let landed = landed.map_err(|_| Fault::new(Reason::Internal, "the import stopped"))??;
    Ok(landed.then_some(imported))
}

/// Stages the rows and merges them, unless another write came since. What was staged is merged or thrown away.
async fn land(writer: &Writer, prepared: &Prepared, base: i64) -> Result<bool> {
    let batch = uuid_at(writer.clock.now());
    let mut connection = writer.directory.pool().acquire().await.map_err(fault)?;
    stage::stage(&mut connection, batch, &writer.caller.actor(), &prepared.staged).await.map_err(fault)?;
    // a connection that waits for another one could wait for ever
    drop(connection);
    let merged = merge(writer, batch, base, prepared.staged.len()).await;
    if !matches!(merged, Ok(true)) {
        let mut connection = writer.directory.pool().acquire().await.map_err(fault)?;
        stage::discard(&mut connection, batch).await.map_err(fault)?;
    }
    merged
}

async fn merge(writer: &Writer, batch: Uuid, base: i64, expected: usize) -> Result<bool> {
    let (mut turn, revision) = Turn::begin(writer).await?;
    if revision != base + 1 {
        return Ok(false);
    }
    let now = writer.clock.now();
    let written = stage::merge(&mut turn, batch, revision, now).await.map_err(fault)?;
    if written != expected as u64 {
        return Ok(false); // the server crashed in between, and what was staged went with it
    }
    stage::sweep(&mut turn, uuid_at(now - STALE_BATCH)).await.map_err(fault)?;
    turn.commit().await?;
    let _ = writer.directory.at_least(revision).await;
    Ok(true)
}

/// Sorts the lines into edits, rows that stand and refusals, and prepares the edits. Gives no edits where there is
/// nothing to write or an atomic import was refused.
async fn decide(
    writer: &Writer,
    connection: &mut PgConnection,
    lines: &[Line],
    refused: Vec<RefusedLine>,
    options: Import,
    base: i64,
) -> Result<(Imported, Option<Prepared>)> {
    let mut imported = Imported { refused, revision: base, ..Imported::default() };
    let stored = Stored::load(connection, lines).await.map_err(fault)?;
    let mut taken = Vec::new();
    for line in lines {
        match stored.judge(writer, line, options) {
            Ok(true) => taken.push(line),
            Ok(false) => imported.unchanged += 1,
            Err(fault) => imported.refuse(line, fault),
        }
    }
    let prepared = loop {
        let edits = taken.iter().map(|line| stored.edit(line)).collect();
        let prepared = batch::prepare(connection, edits, &stamp(writer, base + 1)).await.map_err(fault)?;
        if prepared.violations.is_empty() {
            break prepared;
        }
        taken.retain(|line| match prepared.violations.get(line.definition.key.as_str()) {
            None => true,
            Some(violation) => {
                imported.refuse(line, violation.fault(&line.definition.key));
                false
            }
        });
    };
    imported.refused.sort_by_key(|refused| refused.line);
    imported.ok = imported.refused.is_empty() || options.mode == ImportMode::Each;
    if !imported.ok {
        return Ok((Imported { unchanged: 0, ..imported }, None));
    }
    imported.created = taken.iter().filter(|line| !stored.rows.contains_key(line.definition.key.as_str())).count();
    imported.replaced = taken.len() - imported.created;
    imported.warnings = warnings(lines, &prepared);
    if taken.is_empty() {
        return Ok((imported, None));
    }
    imported.revision = base + 1;
    Ok((imported, Some(prepared)))
}

impl Imported {
    fn refuse(&mut self, line: &Line, fault: Fault) {
        self.refused.push(RefusedLine { line: line.number, key: line.definition.key.to_string(), fault });
    }
}

fn warnings(lines: &[Line], prepared: &Prepared) -> Vec<String> {
    let own = lines.iter().flat_map(|line| {
        let key = line.definition.key.as_str();
        line.checked
            .warnings
            .iter()
            .chain(prepared.warnings.get(key).into_iter().flatten())
            .map(move |w| format!("{key}: {w}"))
    });
    own.take(MAX_WARNINGS).collect()
}

/// What the book holds that the lines may clash with.
struct Stored {
    rows: BTreeMap<String, Row>,
    last_versions: BTreeMap<String, i64>,
    /// Skeleton → key, of stored rows and of the lines themselves.
    skeletons: HashMap<String, BTreeSet<String>>,
    /// Every key, stored or coming, that a line's key could have as its namespace.
    above: BTreeSet<String>,
    /// Every namespace of stored and coming dotted keys, with one key below it.
    namespaces: HashMap<String, String>,
}

impl Stored {
    async fn load(connection: &mut PgConnection, lines: &[Line]) -> sqlx::Result<Stored> {
        let keys: Vec<String> = lines.iter().map(|line| line.definition.key.to_string()).collect();
        let mut skeletons: HashMap<String, BTreeSet<String>> = HashMap::new();
        for key in &keys {
            skeletons.entry(skeleton(key)).or_default().insert(key.clone());
        }
        let wanted: Vec<String> = skeletons.keys().cloned().collect();
        let twins = sqlx::query!("select key, skeleton from directory where skeleton = any($1)", &wanted)
            .fetch_all(&mut *connection)
            .await?;
        for twin in twins {
            skeletons.entry(twin.skeleton).or_default().insert(twin.key);
        }
        let mut above: BTreeSet<String> = keys.iter().cloned().collect();
        let spaces: Vec<String> = lines
            .iter()
            .flat_map(|line| line.definition.key.namespaces().map(str::to_owned).collect::<Vec<_>>())
            .collect();
        above.extend(
            sqlx::query_scalar!("select key from directory where key = any($1)", &spaces)
                .fetch_all(&mut *connection)
                .await?,
        );
        let dotted = sqlx::query_scalar!("select key from directory where strpos(key, '.') > 0")
            .fetch_all(&mut *connection)
            .await?;
        let mut namespaces = HashMap::new();
        for key in dotted.iter().chain(&keys) {
            for (at, _) in key.match_indices('.') {
                namespaces.entry(key[..at].to_owned()).or_insert_with(|| key.clone());
            }
        }
        let rows = batch::load_all(connection, &keys).await?;
        let last_versions = batch::last_versions(connection, &keys).await?;
        Ok(Stored { rows, last_versions, skeletons, above, namespaces })
    }

    /// Whether the line is to be written; an unchanged or skipped row is not.
    fn judge(&self, writer: &Writer, line: &Line, options: Import) -> Result<bool> {
        let (key, before) = (&line.definition.key, self.rows.get(line.definition.key.as_str()));
        let compiled = line.checked.compiled.as_ref().expect("a line without violations is compiled");
        let check_gates = || batch::check_gates(&writer.caller, before, &line.definition, compiled);
        if let Some(row) = before {
            if row.definition == line.definition {
                return Ok(false);
            }
            return match options.on_conflict {
                OnConflict::Skip => Ok(false),
                OnConflict::Replace => check_gates().map(|()| true),
                OnConflict::Refuse => Err(Fault::new(Reason::AlreadyExists, format!("a row `{key}` exists"))),
            };
        }
        check_gates()?;
        if let Some(other) =
            self.namespaces.get(key.as_str()).or_else(|| key.namespaces().find_map(|n| self.above.get(n)))
        {
            return Err(batch::namespace_conflict(&writer.caller, other));
        }
        let twin = self
            .skeletons
            .get(&skeleton(key.as_str()))
            .and_then(|twins| twins.iter().find(|twin| *twin != key.as_str()));
        match twin {
            Some(other) if !options.allow_lookalike => Err(batch::lookalike(&writer.caller, key, other)),
            Some(_) | None => Ok(true),
        }
    }

    fn edit(&self, line: &Line) -> Edit {
        let key = line.definition.key.clone();
        let compiled = line.checked.compiled.clone().expect("a line without violations is compiled");
        Edit {
            action: "import",
            before: self.rows.get(key.as_str()).cloned(),
            after: Some((line.definition.clone(), compiled)),
            last_version: self.last_versions.get(key.as_str()).copied().unwrap_or(0),
            key,
        }
    }
}
