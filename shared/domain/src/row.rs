//! One record of the book: what a writer may say about a capability, and what the book adds.

use serde_json::{Map, Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::fault::{Fault, Reason, Result};
use crate::json;
use crate::key::Key;

/// The largest `content`, in bytes.
pub const MAX_CONTENT: usize = 64 * 1024;
/// The largest schema, in bytes.
pub const MAX_SCHEMA: usize = 64 * 1024;
/// The largest total of a row's other text columns and examples, in bytes.
pub const MAX_COLUMN: usize = 64 * 1024;

/// The longest name of a pool, in bytes.
const MAX_POOL: usize = 64;
/// The pool of rows that name none.
pub const DEFAULT_POOL: &str = "default";

macro_rules! word_enum {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $name { $($(#[$vdoc])* $variant,)* }

        impl $name {
            /// Every value, lowest first.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The word in rows, answers and SQL.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text,)* }
            }

            /// Reads the word, compared exactly.
            pub fn parse(text: &str) -> Option<Self> {
                match text { $($text => Some($name::$variant),)* _ => None }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use word_enum;

word_enum! {
    /// What decides how `target` and `content` are read.
    RowType {
        /// A built-in function.
        Fn = "fn",
        /// Somebody else's API.
        Http = "http",
        /// A model with a prompt.
        Agent = "agent",
        /// A sequence of other rows.
        Flow = "flow",
    }
}

word_enum! {
    /// What a call may change, mildest first.
    Effect {
        /// Nothing.
        Read = "read",
        /// Something.
        Write = "write",
        /// Something that cannot be brought back.
        Destructive = "destructive",
    }
}

word_enum! {
    /// How carefully a call is gated.
    Risk {
        /// An ordinary row.
        Low = "low",
        /// A sensitive row, or one that reaches a sensitive row.
        High = "high",
    }
}

word_enum! {
    /// Who wrote the words of the row.
    Provenance {
        /// The people who run this book.
        Owner = "owner",
        /// Somebody else; its text is data and is marked so.
        ThirdParty = "third_party",
        /// A program, such as an import of an API description.
        Generated = "generated",
    }
}

/// Everything about a row that a writer may set. `key` and `type` alone are required.
#[derive(Clone, Debug, PartialEq)]
pub struct Definition {
    /// The unique invocation name.
    pub key: Key,
    /// How `target` and `content` are read.
    pub row_type: RowType,
    /// A function's name, `METHOD url`, a model id, or nothing.
    pub target: String,
    /// The form of the credential and the name of its secret, never a value.
    pub auth: String,
    /// The docstring, then the template.
    pub content: String,
    /// Grouping label.
    pub category: Option<String>,
    /// On agents: the categories that its calls are limited to; `*` is all.
    pub allowed_categories: Vec<String>,
    /// Manual position, before all rows without one.
    pub seq: Option<i32>,
    /// Off: in no projection and not callable.
    pub enabled: bool,
    /// Off: in no listing for planners, still callable by key.
    pub planner_visible: bool,
    /// Lower wins between equal scores.
    pub planner_rank: i32,
    /// JSON Schema of the arguments, as text.
    pub input_schema: Option<String>,
    /// JSON Schema of the output, as text.
    pub output_schema: Option<String>,
    /// Worked arguments: pipe strings or argument objects.
    pub examples: Vec<Value>,
    /// Risk high: calls pass the watcher.
    pub sensitive: bool,
    /// The pool of executors that runs it; empty or a type's name is `default`.
    pub runner: Option<String>,
    /// On agents: keys of the prompt blocks in front of the template.
    pub includes: Vec<String>,
    /// Who wrote the words.
    pub provenance: Provenance,
    /// Longest run, in milliseconds; absent is the runner's default.
    pub timeout_ms: Option<i32>,
    /// Largest response after decoding, in bytes; absent is the runner's default.
    pub max_response_bytes: Option<i32>,
}

/// The columns that a writer may set, in the order in which rows are shown.
pub const COLUMNS: &[&str] = &[
    "key",
    "type",
    "target",
    "auth",
    "content",
    "category",
    "allowed_categories",
    "seq",
    "enabled",
    "planner_visible",
    "planner_rank",
    "input_schema",
    "output_schema",
    "examples",
    "sensitive",
    "runner",
    "includes",
    "provenance",
    "timeout_ms",
    "max_response_bytes",
];

/// Columns that the book keeps itself. A write that names one is told so in `ignored_fields`.
pub const COMPUTED: &[&str] =
    &["row_num", "revision", "version", "contract_hash", "text_hash", "created_at", "updated_at", "effect", "risk"];

impl Definition {
    /// A row with every column at its default.
    pub fn new(key: Key, row_type: RowType) -> Self {
        Definition {
            key,
            row_type,
            target: String::new(),
            auth: String::new(),
            content: String::new(),
            category: None,
            allowed_categories: Vec::new(),
            seq: None,
            enabled: true,
            planner_visible: true,
            planner_rank: 100,
            input_schema: None,
            output_schema: None,
            examples: Vec::new(),
            sensitive: false,
            runner: None,
            includes: Vec::new(),
            provenance: Provenance::Owner,
            timeout_ms: None,
            max_response_bytes: None,
        }
    }

    /// Reads a row in the seed's shape. Gives the fields that no column has beside it.
    ///
    /// # Errors
    /// `invalid_request` with the field: `key` or `type` missing, a value of the wrong type, a bound passed.
    pub fn from_json(fields: &Map<String, Value>) -> Result<(Definition, Vec<String>)> {
        let key = Key::parse(text(fields, "key")?.ok_or_else(|| missing("key"))?.as_str())?;
        let word = text(fields, "type")?.ok_or_else(|| missing("type"))?;
        let row_type = RowType::parse(&word).ok_or_else(|| wrong("type", "`fn`, `http`, `agent` or `flow`"))?;
        let defaults = Definition::new(key.clone(), row_type);
        let definition = Definition {
            key,
            row_type,
            target: text(fields, "target")?.unwrap_or_default(),
            auth: text(fields, "auth")?.unwrap_or_default(),
            content: bounded("content", text(fields, "content")?.unwrap_or_default(), MAX_CONTENT)?,
            category: text(fields, "category")?.filter(|c| !c.trim().is_empty()),
            allowed_categories: list(fields, "allowed_categories")?,
            seq: small(fields, "seq", i32::MIN)?,
            enabled: boolean(fields, "enabled")?.unwrap_or(defaults.enabled),
            planner_visible: boolean(fields, "planner_visible")?.unwrap_or(defaults.planner_visible),
            planner_rank: small(fields, "planner_rank", i32::MIN)?.unwrap_or(defaults.planner_rank),
            input_schema: embedded(fields, "input_schema")?,
            output_schema: embedded(fields, "output_schema")?,
            examples: examples(fields)?,
            sensitive: boolean(fields, "sensitive")?.unwrap_or(defaults.sensitive),
            runner: pool(fields)?,
            includes: list(fields, "includes")?,
            provenance: provenance(fields)?.unwrap_or(defaults.provenance),
            timeout_ms: small(fields, "timeout_ms", 1)?,
            max_response_bytes: small(fields, "max_response_bytes", 1)?,
        };
        Ok((definition, unknown(fields)))
    }

    /// The writable columns in the seed's shape; lists as the seed's comma-separated text, schemas as JSON.
    pub fn to_json(&self) -> Map<String, Value> {
        let schema =
            |s: &Option<String>| s.as_deref().map_or(Value::Null, |s| serde_json::from_str(s).unwrap_or(json!(s)));
        let Value::Object(map) = json!({
            "key": self.key, "type": self.row_type.as_str(), "target": self.target, "auth": self.auth,
            "content": self.content, "category": self.category, "allowed_categories": joined(&self.allowed_categories),
            "seq": self.seq, "enabled": self.enabled, "planner_visible": self.planner_visible,
            "planner_rank": self.planner_rank, "input_schema": schema(&self.input_schema),
            "output_schema": schema(&self.output_schema), "examples": self.examples, "sensitive": self.sensitive,
            "runner": self.runner, "includes": joined(&self.includes), "provenance": self.provenance.as_str(),
            "timeout_ms": self.timeout_ms, "max_response_bytes": self.max_response_bytes,
        }) else {
            unreachable!("an object literal is an object")
        };
        map
    }

    /// The row with the named columns replaced; `null` brings a column's default back.
    ///
    /// # Errors
    /// `no recognized fields` where no column is named, else as [`Definition::from_json`].
    pub fn merge(&self, patch: &Map<String, Value>) -> Result<Merged> {
        let mut fields = self.to_json();
        let mut touched = Vec::new();
        for (name, value) in patch.iter().filter(|(name, _)| is_patchable(name)) {
            fields.insert(name.clone(), value.clone());
            touched.push(name.clone());
        }
        if touched.is_empty() {
            return Err(Fault::new(Reason::NoRecognizedFields, "the body names no column that can be written")
                .fix(format!("name one of: {}", COLUMNS[1..].join(", "))));
        }
        let (definition, _) = Definition::from_json(&fields)?;
        let ignored = patch.keys().filter(|name| !is_patchable(name)).cloned().collect();
        Ok(Merged { definition, touched, ignored })
    }

    /// The pool that runs the row: [`DEFAULT_POOL`] where `runner` is empty or a type's name.
    pub fn pool(&self) -> &str {
        match self.runner.as_deref() {
            Some(name) if RowType::parse(name).is_none() => name,
            Some(_) | None => DEFAULT_POOL,
        }
    }

    /// Whether the row is a prompt block and not a call.
    pub fn is_prompt_block(&self) -> bool {
        self.row_type == RowType::Fn && self.target == "prompt_block"
    }

    /// The risk of the row by itself; a flow's is the highest of its steps.
    pub fn risk(&self) -> Risk {
        if self.sensitive { Risk::High } else { Risk::Low }
    }
}

/// What a merge gave.
#[derive(Clone, Debug)]
pub struct Merged {
    /// The row after it.
    pub definition: Definition,
    /// The columns that the patch named.
    pub touched: Vec<String>,
    /// The fields that no writable column has.
    pub ignored: Vec<String>,
}

/// A stored row: its definition and what the book adds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What its writers said.
    pub definition: Definition,
    /// The directory-wide number of the write that last touched it or something that it reaches.
    pub revision: i64,
    /// Counts the row's own edits from 1; the `ETag`.
    pub version: i64,
    /// `sha256:<hex>` over all that a call depends on.
    pub contract_hash: String,
    /// `sha256:<hex>` over all that a model reads.
    pub text_hash: String,
    /// The highest effect of the row and the steps that it reaches.
    pub effect: Effect,
    /// The highest risk of the row and the steps that it reaches.
    pub risk: Risk,
    /// When the key was created.
    pub created_at: OffsetDateTime,
    /// When the row's own columns last changed.
    pub updated_at: OffsetDateTime,
}

impl Row {
    /// Every column, the computed ones too (`row_num` is the reader's).
    pub fn to_json(&self) -> Map<String, Value> {
        let mut map = self.definition.to_json();
        map.insert("revision".into(), self.revision.into());
        map.insert("version".into(), self.version.into());
        map.insert("contract_hash".into(), self.contract_hash.clone().into());
        map.insert("text_hash".into(), self.text_hash.clone().into());
        map.insert("effect".into(), self.effect.as_str().into());
        map.insert("risk".into(), self.risk.as_str().into());
        map.insert("created_at".into(), timestamp(self.created_at).into());
        map.insert("updated_at".into(), timestamp(self.updated_at).into());
        map
    }
}

/// A time as answers write it: RFC 3339, UTC, milliseconds.
pub fn timestamp(at: OffsetDateTime) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    let millis = at.replace_nanosecond(u32::from(at.millisecond()) * 1_000_000).unwrap_or(at);
    let text = millis.format(&Rfc3339).unwrap_or_default();
    match text.split_once('.') {
        None => text.replace('Z', ".000Z"),
        Some((head, fraction)) => format!("{head}.{:0<3}Z", fraction.trim_end_matches('Z')),
    }
}

fn is_patchable(name: &str) -> bool {
    name != "key" && COLUMNS.contains(&name)
}

fn unknown(fields: &Map<String, Value>) -> Vec<String> {
    fields.keys().filter(|name| !COLUMNS.contains(&name.as_str())).cloned().collect()
}

fn missing(field: &'static str) -> Fault {
    Fault::new(Reason::InvalidRequest, "key and type required").with("field", field)
}

fn wrong(field: &str, expected: &str) -> Fault {
    Fault::new(Reason::InvalidRequest, format!("`{field}` must be {expected}")).with("field", field)
}

fn bounded(field: &str, value: String, max: usize) -> Result<String> {
    if value.len() <= max {
        return Ok(value);
    }
    Err(Fault::new(Reason::InvalidRequest, format!("`{field}` is {} bytes, more than {max}", value.len()))
        .with("field", field))
}

/// Postgres text has no NUL, so it is refused here by name instead of there by surprise.
fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(s)) if s.contains('\0') => Err(wrong(name, "text without U+0000")),
        Some(Value::String(s)) => bounded(name, s.clone(), MAX_COLUMN).map(Some),
        Some(_) => Err(wrong(name, "a string")),
    }
}

fn boolean(fields: &Map<String, Value>, name: &str) -> Result<Option<bool>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(b)) => Ok(Some(*b)),
        Some(Value::Number(n)) if n.as_u64() == Some(0) => Ok(Some(false)),
        Some(Value::Number(n)) if n.as_u64() == Some(1) => Ok(Some(true)),
        Some(_) => Err(wrong(name, "true or false (0 and 1 are taken too)")),
    }
}

fn integer(fields: &Map<String, Value>, name: &str, min: i64, max: i64) -> Result<Option<i64>> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Number(n)) => match n.as_i64() {
            Some(value) if (min..=max).contains(&value) => Ok(Some(value)),
            Some(_) | None => Err(wrong(name, &format!("a whole number from {min} to {max}"))),
        },
        Some(_) => Err(wrong(name, "a whole number")),
    }
}

fn small(fields: &Map<String, Value>, name: &str, min: i32) -> Result<Option<i32>> {
    let value = integer(fields, name, min.into(), i32::MAX.into())?;
    Ok(value.map(|v| i32::try_from(v).expect("within the bounds just checked")))
}

fn list(fields: &Map<String, Value>, name: &str) -> Result<Vec<String>> {
    let words = match fields.get(name) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| wrong(name, "a list of strings")))
            .collect::<Result<Vec<_>>>()?,
        Some(_) => text(fields, name)?.unwrap_or_default().split(',').map(str::to_owned).collect(),
    };
    let words: Vec<String> = words.iter().map(|w| w.trim().to_owned()).filter(|w| !w.is_empty()).collect();
    if words.iter().any(|w| w.contains([',', '\0'])) {
        return Err(wrong(name, "a list of words without `,` and U+0000"));
    }
    bounded(name, words.join(","), MAX_COLUMN)?;
    Ok(words)
}

/// The name of a pool, as executors can be started with it.
fn pool(fields: &Map<String, Value>) -> Result<Option<String>> {
    let Some(name) = text(fields, "runner")?.map(|name| name.trim().to_owned()).filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let is_name = name.len() <= MAX_POOL && name.chars().all(fits);
    if is_name { Ok(Some(name)) } else { Err(wrong("runner", "a pool's name: letters, digits, `_`, `-` and `.`")) }
}

/// A schema: a JSON value, or a string that holds one.
fn embedded(fields: &Map<String, Value>, name: &str) -> Result<Option<String>> {
    let text = match fields.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(s)) if s.trim().is_empty() => return Ok(None),
        Some(Value::String(s)) => {
            let value: Value = json::value(s).map_err(|_| wrong(name, "JSON, or a string that holds JSON"))?;
            if value.is_null() {
                return Ok(None);
            }
            value.to_string()
        }
        Some(value) => value.to_string(),
    };
    bounded(name, text, MAX_SCHEMA).map(Some)
}

fn examples(fields: &Map<String, Value>) -> Result<Vec<Value>> {
    let expected = "a list of argument strings or argument objects";
    let value = match fields.get("examples") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(s)) if s.trim().is_empty() => return Ok(Vec::new()),
        Some(Value::String(s)) => json::value(s).map_err(|_| wrong("examples", expected))?,
        Some(value) => value.clone(),
    };
    let Value::Array(items) = value else { return Err(wrong("examples", expected)) };
    if items.iter().any(|item| !(item.is_string() || item.is_object() || item.is_array())) {
        return Err(wrong("examples", expected));
    }
    bounded("examples", Value::Array(items.clone()).to_string(), MAX_COLUMN)?;
    Ok(items)
}

fn provenance(fields: &Map<String, Value>) -> Result<Option<Provenance>> {
    match text(fields, "provenance")? {
        None => Ok(None),
        Some(word) => Provenance::parse(&word)
            .map(Some)
            .ok_or_else(|| wrong("provenance", "`owner`, `third_party` or `generated`")),
    }
}

fn joined(words: &[String]) -> Value {
    if words.is_empty() { Value::Null } else { words.join(",").into() }
}
