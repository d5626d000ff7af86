//! Finding one's way in a schema: references inside it, the subschemas that judge the same value, what a property is.

use std::collections::HashSet;

use serde_json::Value;

use super::PropertyType;
use crate::json::JsonKind;

/// The only dialect; a schema that names another is refused, because its keywords mean something else.
const DIALECT: &str = "https://json-schema.org/draft/2020-12/schema";
/// Keywords that hold a schema by name.
pub(super) const MAPS: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords that hold data, where `$ref` is only a name.
const DATA: &[&str] = &["const", "enum", "default", "examples", "example"];
/// How far a chain of references is followed.
const MAX_HOPS: usize = 64;

/// Refuses what reaches outside the document: a foreign dialect, a reference that does not begin with `#`, an embedded
/// `$id` (below which `#` would mean something else).
pub(super) fn refuse_foreign(document: &Value) -> Result<(), String> {
    match document.get("$schema") {
        None => {}
        Some(Value::String(s)) if s.trim_end_matches('#') == DIALECT => {}
        Some(other) => return Err(format!("`$schema` is {other}; write `{DIALECT}` or leave it out")),
    }
    let mut refusal = Ok(());
    each_schema(document, false, &mut |schema, is_root| {
        let foreign = |name: &str| schema.get(name).and_then(Value::as_str).filter(|s| !s.starts_with('#'));
        if let Some(target) = foreign("$ref").or_else(|| foreign("$dynamicRef")).or_else(|| foreign("$recursiveRef")) {
            refusal = Err(format!("the reference `{}` leads outside the schema", target.escape_debug()));
        } else if !is_root && schema.get("$id").is_some_and(Value::is_string) {
            refusal = Err("an embedded `$id` is not taken; name subschemas in `$defs`".into());
        }
    });
    refusal
}

/// Whether any subschema refers to another.
pub(super) fn has_references(document: &Value) -> bool {
    let mut found = false;
    each_schema(document, false, &mut |schema, _| {
        found |= schema.get("$ref").is_some() || schema.get("$dynamicRef").is_some();
    });
    found
}

/// How many patterns there are to compile.
pub(super) fn patterns(document: &Value) -> usize {
    let mut count = 0;
    each_schema(document, false, &mut |schema, _| {
        count += usize::from(schema.get("pattern").is_some());
        count += schema.get("patternProperties").and_then(Value::as_object).map_or(0, |patterns| patterns.len());
    });
    count
}

fn each_schema(value: &Value, is_map: bool, seen: &mut dyn FnMut(&Value, bool)) {
    fn walk(value: &Value, is_map: bool, is_root: bool, seen: &mut dyn FnMut(&Value, bool)) {
        match value {
            Value::Object(members) => {
                if !is_map {
                    seen(value, is_root);
                }
                for (name, member) in members {
                    if is_map || !DATA.contains(&name.as_str()) {
                        walk(member, !is_map && MAPS.contains(&name.as_str()), false, seen);
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, false, false, seen)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    walk(value, is_map, true, seen);
}

/// The target of a reference into the document.
pub(super) fn resolve<'a>(document: &'a Value, reference: &str) -> Option<&'a Value> {
    let fragment = reference.strip_prefix('#')?;
    let fragment = percent_encoding::percent_decode_str(fragment).decode_utf8().ok()?;
    if fragment.is_empty() || fragment.starts_with('/') {
        return document.pointer(&fragment);
    }
    let mut found = None;
    anchor(document, &fragment, &mut found);
    found
}

fn anchor<'a>(value: &'a Value, name: &str, found: &mut Option<&'a Value>) {
    match value {
        Value::Object(members) => {
            let is_it = |keyword: &str| members.get(keyword).and_then(Value::as_str) == Some(name);
            if is_it("$anchor") || is_it("$dynamicAnchor") {
                *found = Some(value);
            }
            members.values().for_each(|member| anchor(member, name, found));
        }
        Value::Array(items) => items.iter().for_each(|item| anchor(item, name, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The subschemas that judge the same value as `schema`, direct ones only.
pub(super) fn in_place<'a>(document: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let Value::Object(members) = schema else { return Vec::new() };
    let mut found = Vec::new();
    for (name, member) in members {
        match (name.as_str(), member) {
            ("$ref" | "$dynamicRef", Value::String(reference)) => found.extend(resolve(document, reference)),
            ("allOf" | "anyOf" | "oneOf", Value::Array(items)) => found.extend(items),
            ("not" | "if" | "then" | "else", _) => found.push(member),
            ("dependentSchemas", Value::Object(schemas)) => found.extend(schemas.values()),
            (_, _) => {}
        }
    }
    found
}

/// A schema and all subschemas that judge the same value, each once, nearest first.
fn judges<'a>(document: &'a Value, schema: &'a Value) -> Vec<&'a Value> {
    let mut seen: HashSet<*const Value> = HashSet::from([std::ptr::from_ref(schema)]);
    let mut all: Vec<&Value> = vec![schema];
    let mut next = 0;
    while next < all.len() {
        let further = in_place(document, all[next]).into_iter().filter(|judge| seen.insert(std::ptr::from_ref(*judge)));
        all.extend(further.collect::<Vec<_>>());
        next += 1;
    }
    all
}

/// The root's properties by name, each with the schema nearest to the root, a chain of bare references followed.
pub(super) fn properties(document: &Value) -> Vec<(&str, &Value)> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for judge in judges(document, document) {
        for (name, schema) in judge.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if seen.insert(name.as_str()) {
                found.push((name.as_str(), referred(document, schema)));
            }
        }
    }
    found
}

fn referred<'a>(document: &'a Value, mut schema: &'a Value) -> &'a Value {
    for _ in 0..MAX_HOPS {
        let is_bare = schema.get("type").is_none();
        match schema.get("$ref").and_then(Value::as_str).and_then(|reference| resolve(document, reference)) {
            Some(target) if is_bare => schema = target,
            Some(_) | None => break,
        }
    }
    schema
}

/// The types that a schema names, by `type`, by the values of `enum` and `const`, or by its alternatives.
pub(super) fn types(document: &Value, schema: &Value) -> Vec<PropertyType> {
    let mut found: Vec<PropertyType> = match (schema.get("type"), schema.get("enum"), schema.get("const")) {
        (Some(Value::String(word)), _, _) => PropertyType::parse(word).into_iter().collect(),
        (Some(Value::Array(words)), _, _) => {
            words.iter().filter_map(|word| PropertyType::parse(word.as_str()?)).collect()
        }
        (_, Some(Value::Array(values)), _) => values.iter().map(type_of).collect(),
        (_, _, Some(value)) => vec![type_of(value)],
        (_, _, _) => Vec::new(),
    };
    if found.is_empty() {
        for judge in judges(document, schema).into_iter().skip(1) {
            if let Some(Value::String(word)) = judge.get("type") {
                found.extend(PropertyType::parse(word));
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn type_of(value: &Value) -> PropertyType {
    match crate::json::kind(&value.to_string()) {
        JsonKind::Object => PropertyType::Object,
        JsonKind::Array => PropertyType::Array,
        JsonKind::String => PropertyType::String,
        JsonKind::Number => PropertyType::Number,
        JsonKind::Boolean => PropertyType::Boolean,
        JsonKind::Null => PropertyType::Null,
    }
}
