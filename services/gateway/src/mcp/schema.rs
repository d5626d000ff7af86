//! Schemas as hosts take them: an object at the root, names of properties in their letters, and the way back.

use std::collections::BTreeMap;

use callbook_domain::fault::{Fault, Reason};
use serde_json::{Map, Value, json};

use super::tool::{is_taken, shortened};

/// The property that holds the whole argument set of a row whose schema is no object.
const ARGS: &str = "args";
/// Keywords whose members are schemas under names of the author.
const NAMED: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords whose values are data and no schemas.
const DATA: &[&str] = &["const", "enum", "default", "examples"];

/// The arguments of a row as a host sees them.
#[derive(Debug)]
pub(super) struct Arguments {
    /// The schema, an object at its root.
    pub(super) schema: Value,
    /// The names that were changed, each with the row's own.
    renamed: BTreeMap<String, String>,
    /// The row takes the value of [`ARGS`] and not the object.
    is_wrapped: bool,
}

impl Arguments {
    /// Reads the schema of a row.
    pub(super) fn of(schema: Value) -> Self {
        let (mut schema, is_wrapped) = rooted(schema);
        let mut renamed = BTreeMap::new();
        rename(&mut schema, &mut renamed);
        without_bad_headers(&mut schema);
        Arguments { schema, renamed, is_wrapped }
    }

    /// The argument set as the row takes it, from the object that a host sends.
    pub(super) fn given_back(&self, mut sent: Map<String, Value>) -> Value {
        if self.is_wrapped && sent.keys().all(|name| name == ARGS) {
            return sent.shift_remove(ARGS).unwrap_or_else(|| json!([]));
        }
        let mut sent = Value::Object(sent);
        if !self.renamed.is_empty() {
            self.name_back(&mut sent);
        }
        sent
    }

    /// Whether an object can go to the row as it was sent.
    pub(super) fn is_plain(&self) -> bool {
        self.renamed.is_empty() && !self.is_wrapped
    }

    /// Why an argument that the listing calls a text is none. A row without a schema of its own takes any value as its
    /// text; a model that was given a schema is held to it.
    pub(super) fn misfit(&self, sent: &Map<String, Value>) -> Option<Fault> {
        let properties = self.schema.get("properties").and_then(Value::as_object)?;
        let odd = |(name, value): &(&String, &Value)| properties.get(*name).is_some_and(|told| !is_text(told, value));
        let (name, _) = sent.iter().find(odd)?;
        let fault = Fault::new(Reason::ArgsInvalid, format!("`/{name}` must be of type string"));
        Some(fault.detail(format!("/{name}:type")).fix("send what the tool's inputSchema describes"))
    }

    /// Arguments that are repeated in headers: the path to each, and the end of the header's name.
    pub(super) fn headers(&self) -> Vec<(Vec<String>, String)> {
        let mut found = Vec::new();
        annotated(&self.schema, &mut Vec::new(), &mut found);
        found
    }

    fn name_back(&self, value: &mut Value) {
        match value {
            Value::Object(map) => {
                let fields = std::mem::take(map);
                for (name, mut child) in fields {
                    self.name_back(&mut child);
                    map.insert(self.renamed.get(&name).cloned().unwrap_or(name), child);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.name_back(item)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

/// Whether a value is a text, or a list of texts, where that alone is asked for.
fn is_text(told: &Value, value: &Value) -> bool {
    let Some(told) = told.as_object() else { return true };
    match (told.get("type").and_then(Value::as_str), told.get("items")) {
        (Some("string"), None) if told.len() == 1 => value.is_string(),
        (Some("array"), Some(item)) if told.len() == 2 => {
            value.as_array().is_some_and(|values| values.iter().all(|value| is_text(item, value)))
        }
        _ => true,
    }
}

/// The schema of an output, or nothing where a client of the older era could not take it.
pub(super) fn output(schema: Value, is_modern: bool) -> Option<Value> {
    (is_modern || schema.get("type") == Some(&json!("object"))).then_some(schema)
}

/// The value at a path of properties.
pub(super) fn at<'a>(arguments: &'a Map<String, Value>, path: &[String]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    rest.iter().try_fold(arguments.get(first)?, |value, name| value.get(name))
}

/// The schema with an object at its root: where the row's is none, under one property.
fn rooted(schema: Value) -> (Value, bool) {
    let Value::Object(mut map) = schema else { return (json!({"type": "object"}), false) };
    let takes_object = match map.get("type") {
        None => true,
        Some(Value::String(word)) => word == "object",
        Some(words) => words.as_array().is_some_and(|words| words.contains(&json!("object"))),
    };
    if takes_object {
        map.insert("type".to_owned(), json!("object"));
        return (Value::Object(map), false);
    }
    let mut inner = Value::Object(map);
    move_references(&mut inner);
    (json!({"type": "object", "properties": {ARGS: inner}, "additionalProperties": false}), true)
}

/// References from the root, in a schema that now stands below it.
fn move_references(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (name, child) in map.iter_mut() {
                match child {
                    Value::String(to) if name == "$ref" && (to == "#" || to.starts_with("#/")) => {
                        *to = format!("#/properties/{ARGS}{}", &to[1..]);
                    }
                    child if !DATA.contains(&name.as_str()) => move_references(child),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(move_references),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Gives properties whose names hosts refuse others, wherever they stand.
fn rename(schema: &mut Value, renamed: &mut BTreeMap<String, String>) {
    match schema {
        Value::Object(map) => {
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                for (name, child) in std::mem::take(properties) {
                    properties.insert(listed(&name, renamed), child);
                }
            }
            for (name, child) in map.iter_mut() {
                match (name.as_str(), child) {
                    ("required" | "x-arg-order", Value::Array(names)) => rename_all(names, renamed),
                    ("dependentRequired", Value::Object(needs)) => {
                        for (name, mut names) in std::mem::take(needs) {
                            names.as_array_mut().into_iter().for_each(|names| rename_all(names, renamed));
                            needs.insert(listed(&name, renamed), names);
                        }
                    }
                    (keyword, Value::Object(named)) if NAMED.contains(&keyword) => {
                        named.values_mut().for_each(|child| rename(child, renamed));
                    }
                    (keyword, child) if !DATA.contains(&keyword) => rename(child, renamed),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, renamed)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn rename_all(names: &mut [Value], renamed: &mut BTreeMap<String, String>) {
    for name in names {
        if let Value::String(text) = name {
            *text = listed(text, renamed);
        }
    }
}

fn listed(name: &str, renamed: &mut BTreeMap<String, String>) -> String {
    if is_taken(name) {
        return name.to_owned();
    }
    let short = shortened(name);
    renamed.insert(short.clone(), name.to_owned());
    short
}

/// Takes out annotations of headers that a client would have to refuse the whole tool for.
fn without_bad_headers(schema: &mut Value) {
    let mut found = Vec::new();
    annotated(schema, &mut Vec::new(), &mut found);
    let mut seen = Vec::new();
    let good: Vec<Vec<String>> = found
        .into_iter()
        .filter(|(_, suffix)| {
            let lower = suffix.to_ascii_lowercase();
            let is_new = !seen.contains(&lower);
            seen.push(lower);
            is_new && is_token(suffix)
        })
        .map(|(path, _)| path)
        .collect();
    keep_headers(schema, &good, &mut Vec::new(), true);
}

fn keep_headers(schema: &mut Value, good: &[Vec<String>], path: &mut Vec<String>, is_on_path: bool) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("x-mcp-header") && !(is_on_path && good.contains(path)) {
                map.shift_remove("x-mcp-header");
            }
            for (keyword, child) in map.iter_mut() {
                match (keyword.as_str(), child) {
                    (keyword, Value::Object(named)) if NAMED.contains(&keyword) => {
                        for (name, child) in named.iter_mut() {
                            path.push(name.clone());
                            keep_headers(child, good, path, is_on_path && keyword == "properties");
                            path.pop();
                        }
                    }
                    (keyword, child) if !DATA.contains(&keyword) => keep_headers(child, good, path, false),
                    _ => {}
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| keep_headers(item, good, path, false)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The annotated properties of simple types that are reached through properties alone.
fn annotated(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    for (name, child) in properties {
        path.push(name.clone());
        let is_simple = matches!(child.get("type").and_then(Value::as_str), Some("string" | "integer" | "boolean"));
        if let Some(suffix) = child.get("x-mcp-header").and_then(Value::as_str).filter(|_| is_simple) {
            found.push((path.clone(), suffix.to_owned()));
        }
        annotated(child, path, found);
        path.pop();
    }
}

/// A token of RFC 9110.
fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn back(schema: Value, sent: &str) -> String {
        Arguments::of(schema).given_back(serde_json::from_str(sent).unwrap()).to_string()
    }

    #[test]
    fn an_object_goes_through_as_it_is() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
            "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
            "properties": {"list": {"$ref": "#/$defs/node"}}, "allOf": [{"if": {}, "then": {}}],
        });
        let arguments = Arguments::of(schema.clone());
        assert!(arguments.is_plain());
        assert_eq!(arguments.schema, schema);
    }

    #[test]
    fn a_schema_that_is_no_object_stands_under_one_property() {
        let list = json!({"type": "array", "items": {"$ref": "#/$defs/a"}, "$defs": {"a": {"type": "string"}}});
        let arguments = Arguments::of(list.clone());
        assert_eq!(arguments.schema["properties"]["args"]["items"]["$ref"], "#/properties/args/$defs/a");
        assert_eq!(back(list.clone(), r#"{"args":["a",1.10]}"#), r#"["a",1.10]"#);
        assert_eq!(back(list, "{}"), "[]");
        assert_eq!(Arguments::of(json!(true)).schema, json!({"type": "object"}));
        assert_eq!(Arguments::of(json!({"type": ["object", "null"]})).schema["type"], "object");
        assert_eq!(Arguments::of(json!({"anyOf": []})).schema["type"], "object");
    }

    #[test]
    fn a_text_is_no_other_value() {
        let misfit = |schema: Value, sent: &str| {
            let fault = Arguments::of(schema).misfit(&serde_json::from_str(sent).unwrap());
            fault.map(|fault| fault.error_text())
        };
        let named = json!({"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "number"}}});
        assert_eq!(misfit(named.clone(), r#"{"a":"1","n":"not ours to say"}"#), None);
        assert_eq!(misfit(named, r#"{"a":1}"#).as_deref(), Some("args_invalid:/a:type"));
        let list = json!({"type": "array", "items": {"type": "string"}});
        assert_eq!(misfit(list.clone(), r#"{"args":["a"]}"#), None);
        for odd in [r#"{"args":["a",1]}"#, r#"{"args":"a"}"#] {
            assert_eq!(misfit(list.clone(), odd).as_deref(), Some("args_invalid:/args:type"), "{odd}");
        }
    }

    #[test]
    fn names_that_hosts_refuse_are_changed_and_changed_back() {
        let long = "n".repeat(65);
        let schema = json!({
            "type": "object", "required": ["filter[name]"], "dependentRequired": {"filter[name]": [long.clone()]},
            "properties": {
                "filter[name]": {"type": "string", "enum": ["filter[name]"]},
                long.clone(): {"type": "array", "items": {"type": "object", "properties": {"é": {"type": "integer"}}}},
                "plain": {"const": {"required": ["é"]}},
            },
        });
        let arguments = Arguments::of(schema.clone());
        let listed: Vec<&String> = arguments.schema["properties"].as_object().unwrap().keys().collect();
        assert!(listed.iter().all(|name| is_taken(name)), "{listed:?}");
        assert_eq!(arguments.schema["required"][0], *listed[0]);
        assert_eq!(arguments.schema["dependentRequired"][listed[0]][0], *listed[1]);
        assert_eq!(arguments.schema["properties"]["plain"], schema["properties"]["plain"]);
        let inner = shortened("é");
        let sent = format!(r#"{{"{}":"x","{}":[{{"{inner}":9007199254740993}}],"plain":1.10}}"#, listed[0], listed[1]);
        let expected = format!(r#"{{"filter[name]":"x","{long}":[{{"é":9007199254740993}}],"plain":1.10}}"#);
        assert_eq!(back(schema, &sent), expected);
    }

    #[test]
    fn annotations_that_a_client_would_refuse_are_taken_out() {
        let header = |kind: &str, name: &str| json!({"type": kind, "x-mcp-header": name});
        let arguments = Arguments::of(json!({"type": "object", "properties": {
            "a": header("string", "Region"), "b": header("string", "region"), "c": header("number", "N"),
            "d": header("string", "no space"), "e": {"type": "object", "properties": {"f": header("integer", "Depth")}},
            "g": {"type": "array", "items": header("string", "Item")}, "h": header("string", ""),
        }}));
        let expected = [(vec!["a".to_owned()], "Region".to_owned()), (vec!["e".into(), "f".into()], "Depth".into())];
        assert_eq!(arguments.headers(), expected);
        assert_eq!(arguments.schema.to_string().matches("x-mcp-header").count(), 2);
    }
}
