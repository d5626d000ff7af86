//! A JSON Schema 2020-12 that stands on its own: of a row's arguments, or of its output.

mod budget;
mod locate;
mod refusal;
#[cfg(test)]
mod tests;

use std::collections::HashMap;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

use crate::fault::Result;
use crate::json::{self, JsonKind};

/// The largest schema, in bytes.
pub const MAX_BYTES: usize = crate::row::MAX_SCHEMA;
/// The deepest schema.
pub const MAX_DEPTH: usize = 64;
/// Steps back that a pattern with look-around may take before it counts as not matching.
const MAX_BACKTRACKS: usize = 100_000;
/// The largest compiled pattern, in bytes.
const MAX_PATTERN: usize = 1024 * 1024;
/// The most patterns of one schema.
const MAX_PATTERNS: usize = 128;

/// A compiled schema. Built once a row version and shared.
#[derive(Debug)]
pub struct Schema {
    document: Value,
    validator: Validator,
    properties: Vec<String>,
    described: HashMap<String, Described>,
    required: Vec<String>,
    order: Option<Vec<String>>,
    has_references: bool,
}

/// What a call needs to know of one property.
#[derive(Debug)]
struct Described {
    types: Vec<PropertyType>,
    list_style: ListStyle,
}

/// How a list argument is written into a query or a form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ListStyle {
    /// `a=1&a=2`
    #[default]
    Repeated,
    /// `a=1,2`
    Commas,
    /// `a=1%202`
    Spaces,
    /// `a=1%7C2`
    Pipes,
}

impl Schema {
    /// Compiles a schema, or says why it is none: too large, not valid by its meta-schema, of another dialect, or with
    /// a reference outside itself.
    ///
    /// # Errors
    /// The sentence for the refusal `bad_schema`.
    pub fn parse(text: &str) -> Result<Schema, String> {
        if text.len() > MAX_BYTES {
            return Err(format!("the schema is {} bytes, more than {MAX_BYTES}", text.len()));
        }
        json::check_depth(text, MAX_DEPTH).map_err(|problem| format!("the schema cannot be read: {problem}"))?;
        let document = json::value(text).map_err(|problem| format!("the schema cannot be read: {problem}"))?;
        locate::refuse_foreign(&document)?;
        if locate::patterns(&document) > MAX_PATTERNS {
            return Err(format!("the schema has more than {MAX_PATTERNS} patterns"));
        }
        let patterns = PatternOptions::fancy_regex().backtrack_limit(MAX_BACKTRACKS).size_limit(MAX_PATTERN);
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .offline()
            .with_pattern_options(patterns)
            .build(&document)
            .map_err(|error| refusal::of_schema(&error))?;
        let found = locate::properties(&document);
        let properties: Vec<String> = found.iter().map(|(name, _)| (*name).to_owned()).collect();
        let order = arg_order(&document, &properties)?;
        let describe = |schema| Described { types: locate::types(&document, schema), list_style: list_style(schema) };
        Ok(Schema {
            described: found.into_iter().map(|(name, schema)| (name.to_owned(), describe(schema))).collect(),
            required: strings(&document["required"]),
            has_references: locate::has_references(&document),
            properties,
            order,
            validator,
            document,
        })
    }

    /// Whether the value is one that the schema takes.
    ///
    /// # Errors
    /// `args_invalid:<json-pointer>:<keyword>` for the first rule that is broken, in an order that is the same every
    /// time, with `pointer`, `keyword` and `expected`. The value itself is never repeated.
    pub fn check(&self, value: &Value) -> Result<()> {
        if self.has_references {
            budget::check(&self.document, value)?;
        }
        self.validator.validate(value).map_err(|error| refusal::of_value(&error))
    }

    /// The schema as it was written.
    pub fn value(&self) -> &Value {
        &self.document
    }

    /// The names of the properties, in the order of the schema; those of `$ref`, `allOf`, `anyOf`, … at its root too.
    pub fn properties(&self) -> &[String] {
        &self.properties
    }

    /// The names that the root requires.
    pub fn required(&self) -> &[String] {
        &self.required
    }

    /// Whether the root requires the property.
    pub fn is_required(&self, name: &str) -> bool {
        self.required.iter().any(|required| required == name)
    }

    /// `x-arg-order`, where the schema has it.
    pub fn arg_order(&self) -> Option<&[String]> {
        self.order.as_deref()
    }

    /// The schema of a property, references followed.
    pub fn property(&self, name: &str) -> Option<&Value> {
        locate::properties(&self.document).into_iter().find(|(known, _)| *known == name).map(|(_, schema)| schema)
    }

    /// The kinds of value that a property may have; empty where the schema leaves it open.
    pub fn property_type(&self, name: &str) -> &[PropertyType] {
        self.described.get(name).map(|property| property.types.as_slice()).unwrap_or_default()
    }

    /// Whether the root takes properties that it does not name.
    pub fn allows_additional(&self) -> bool {
        let shut = |keyword: &str| self.document.get(keyword) == Some(&Value::Bool(false));
        self.document != Value::Bool(false) && !shut("additionalProperties") && !shut("unevaluatedProperties")
    }

    /// Whether the root says something about a property: by its name, by a pattern, or by a rule for all others.
    pub fn knows(&self, name: &str) -> bool {
        let speaks = |keyword: &str| self.document.get(keyword).is_some_and(Value::is_object);
        self.described.contains_key(name)
            || ["patternProperties", "additionalProperties", "unevaluatedProperties"].into_iter().any(speaks)
    }

    /// The list style that a property declares (`x-style` or `style`, `x-explode` or `explode`, as in OpenAPI).
    pub fn list_style(&self, name: &str) -> ListStyle {
        self.described.get(name).map(|property| property.list_style).unwrap_or_default()
    }
}

/// A kind of value in the words of JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PropertyType {
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
    /// `null`
    Null,
    /// `array`
    Array,
    /// `object`
    Object,
}

impl PropertyType {
    /// Reads the word of a schema's `type`.
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "string" => PropertyType::String,
            "integer" => PropertyType::Integer,
            "number" => PropertyType::Number,
            "boolean" => PropertyType::Boolean,
            "null" => PropertyType::Null,
            "array" => PropertyType::Array,
            "object" => PropertyType::Object,
            _ => return None,
        })
    }

    /// Whether a JSON document of this kind can be a value of the type.
    pub fn admits(self, kind: JsonKind) -> bool {
        match self {
            PropertyType::String => kind == JsonKind::String,
            PropertyType::Integer | PropertyType::Number => kind == JsonKind::Number,
            PropertyType::Boolean => kind == JsonKind::Boolean,
            PropertyType::Null => kind == JsonKind::Null,
            PropertyType::Array => kind == JsonKind::Array,
            PropertyType::Object => kind == JsonKind::Object,
        }
    }
}

fn list_style(property: &Value) -> ListStyle {
    let either = |a: &str, b: &str| property.get(a).or_else(|| property.get(b));
    let explode = either("x-explode", "explode").and_then(Value::as_bool);
    match (either("x-style", "style").and_then(Value::as_str), explode) {
        (_, Some(true)) => ListStyle::Repeated,
        (Some("spaceDelimited"), _) => ListStyle::Spaces,
        (Some("pipeDelimited"), _) => ListStyle::Pipes,
        (Some(_) | None, Some(false)) => ListStyle::Commas,
        (Some(_) | None, None) => ListStyle::Repeated,
    }
}

fn arg_order(document: &Value, properties: &[String]) -> Result<Option<Vec<String>>, String> {
    let Some(value) = document.get("x-arg-order") else { return Ok(None) };
    let names = strings(value);
    if value.as_array().is_none_or(|items| items.len() != names.len()) {
        return Err("`x-arg-order` must be a list of property names".into());
    }
    if let Some(name) = names.iter().enumerate().find_map(|(i, n)| names[..i].contains(n).then_some(n)) {
        return Err(format!("`x-arg-order` names `{name}` twice"));
    }
    let is_open = document.get("additionalProperties") != Some(&Value::Bool(false));
    match names.iter().find(|name| !is_open && !properties.contains(name)) {
        Some(name) => Err(format!("`x-arg-order` names `{name}`, which is no property")),
        None => Ok(Some(names)),
    }
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
