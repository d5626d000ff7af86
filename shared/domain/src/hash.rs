//! The two hashes of a row: over all that a call depends on, and over all that a model reads.
//!
//! Both are closed over what the row reaches, so an edit of a flow's step or of an included block changes the hash of
//! the flow or the agent.

use serde_json::{Map, Value, json};

use crate::canonical;
use crate::row::{Definition, Effect};

/// What a row reaches by name, as far as its hashes care.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reached {
    /// A flow's step, by its hashes; absent where no row has the key.
    Step {
        /// The step's key.
        key: String,
        /// Its contract hash and its text hash.
        hashes: Option<(String, String)>,
    },
    /// A prompt block, by its text; absent where no row has the key.
    Include {
        /// The block's key.
        key: String,
        /// Its text.
        text: Option<String>,
    },
}

/// What the compiler of a row knows and the hash needs.
#[derive(Clone, Copy, Debug)]
pub struct Callable<'a> {
    /// The content without its docstring.
    pub template: &'a str,
    /// Ordered argument names.
    pub argument_names: &'a [String],
    /// The row's own effect.
    pub effect: Effect,
}

/// `sha256:<hex>` of the canonical JSON of all that a call of the row depends on.
pub fn contract_hash(row: &Definition, callable: Callable<'_>, reached: &[Reached]) -> String {
    let reaches: Vec<Value> = reached.iter().map(contract_part).collect();
    let value = json!({
        "v": 1,
        "key": row.key,
        "type": row.row_type.as_str(),
        "target": row.target,
        "auth": row.auth,
        "template": callable.template,
        "arguments": callable.argument_names,
        "runner": row.pool(),
        "sensitive": row.sensitive,
        "effect": callable.effect.as_str(),
        "input_schema": schema(row.input_schema.as_deref()),
        "output_schema": schema(row.output_schema.as_deref()),
        "allowed_categories": row.allowed_categories,
        "timeout_ms": row.timeout_ms,
        "max_response_bytes": row.max_response_bytes,
        "reaches": reaches,
    });
    canonical::sha256_hex(canonical::to_string(&value).as_bytes())
}

/// `sha256:<hex>` over the docstring, the examples, the category and every description in the schemas.
pub fn text_hash(row: &Definition, docstring: &str, reached: &[Reached]) -> String {
    let reaches: Vec<Value> = reached.iter().map(text_part).collect();
    let value = json!({
        "v": 1,
        "docstring": docstring,
        "examples": row.examples,
        "category": row.category,
        "descriptions": [descriptions(row.input_schema.as_deref()), descriptions(row.output_schema.as_deref())],
        "reaches": reaches,
    });
    canonical::sha256_hex(canonical::to_string(&value).as_bytes())
}

fn contract_part(reached: &Reached) -> Value {
    match reached {
        Reached::Step { key, hashes } => json!([key, hashes.as_ref().map(|(contract, _)| contract)]),
        Reached::Include { key, text } => json!([key, text]),
    }
}

fn text_part(reached: &Reached) -> Value {
    match reached {
        Reached::Step { key, hashes } => json!([key, hashes.as_ref().map(|(_, text)| text)]),
        Reached::Include { key, text } => json!([key, text]),
    }
}

/// A schema as JSON without its descriptions: those are text, not contract.
fn schema(text: Option<&str>) -> Value {
    let Some(text) = text else { return Value::Null };
    let mut value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
    strip(&mut value);
    value
}

const TEXT_KEYWORDS: &[&str] = &["description", "title", "$comment", "examples"];

/// Takes out the annotations that only a reader sees. A property that happens to be called `title` stays.
fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|name, value| !is_annotation(name, value));
            for (name, child) in map.iter_mut() {
                match (holds_names(name), child) {
                    (true, Value::Object(named)) => named.values_mut().for_each(strip),
                    (_, child) => strip(child),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_annotation(name: &str, value: &Value) -> bool {
    TEXT_KEYWORDS.contains(&name) && (value.is_string() || (name == "examples" && value.is_array()))
}

/// Keywords whose members are named by the author and are no keywords.
fn holds_names(keyword: &str) -> bool {
    matches!(keyword, "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas")
}

fn descriptions(text: Option<&str>) -> Value {
    let parsed = text.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let mut found = Map::new();
    if let Some(value) = parsed {
        collect("", &value, &mut found);
    }
    Value::Object(found)
}

fn collect(path: &str, value: &Value, found: &mut Map<String, Value>) {
    match value {
        Value::Object(map) => {
            for (name, child) in map {
                let path = format!("{path}/{name}");
                if TEXT_KEYWORDS.contains(&name.as_str()) && !child.is_object() {
                    found.insert(path, child.clone());
                } else {
                    collect(&path, child, found);
                }
            }
        }
        Value::Array(items) => {
            for (at, child) in items.iter().enumerate() {
                collect(&format!("{path}/{at}"), child, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}
