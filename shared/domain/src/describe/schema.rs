//! JSON Schema as TypeScript types. What TypeScript cannot say (bounds, patterns, conditions) is left out; what a
//! schema does not say is `unknown`.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::types::{Binding, Type};
use super::{MAX_DESCRIPTION, comment, indented, name};

/// The alias `base` of the schema and those of the schemas that it refers to, in the order in which they are met. Ends
/// where they are longer than a description may be.
pub(super) fn aliases(root: &Value, base: &str, with_comments: bool) -> Vec<(String, String)> {
    let mut reader = Reader {
        root,
        with_comments,
        names: vec![(String::new(), base.to_owned())],
        current: 0,
        come_back: HashMap::new(),
    };
    let mut made = Vec::new();
    let mut bytes = 0;
    while let Some((pointer, name)) = reader.names.get(reader.current).cloned().filter(|_| bytes <= MAX_DESCRIPTION) {
        let schema = root.pointer(&pointer).unwrap_or(&Value::Null);
        let text = reader.schema(schema, Guard::Bare).text;
        bytes += text.len();
        made.push((name, text));
        reader.current += 1;
        reader.come_back.clear();
    }
    made
}

/// Whether a call may leave the argument object out: it is an object of which nothing is required.
pub(super) fn may_be_absent(root: &Value) -> bool {
    let Value::Object(schema) = root else { return false };
    let required = schema.get("required").and_then(Value::as_array).is_some_and(|names| !names.is_empty());
    let composed = ["$ref", "allOf", "anyOf", "oneOf", "const", "enum"].iter().any(|word| schema.contains_key(*word));
    schema.get("type").and_then(Value::as_str) == Some("object") && !required && !composed
}

/// Whether the place is inside an object or a list. An alias may stand in itself only there.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Guard {
    Bare,
    Inside,
}

struct Reader<'a> {
    root: &'a Value,
    with_comments: bool,
    /// Pointer and alias of every schema that has one.
    names: Vec<(String, String)>,
    /// The alias whose type is being written.
    current: usize,
    /// What [`Reader::comes_back`] has found for that alias.
    come_back: HashMap<String, bool>,
}

impl<'a> Reader<'a> {
    fn schema(&mut self, schema: &'a Value, guard: Guard) -> Type {
        let fields = match schema {
            Value::Object(fields) => fields,
            Value::Bool(false) => return Type::atom("never"),
            _ => return Type::atom("unknown"),
        };
        // A schema with its own `$id` has its own root for references.
        if !std::ptr::eq(schema, self.root)
            && fields.get("$id").and_then(Value::as_str).is_some_and(|id| !id.starts_with('#'))
        {
            return Type::atom("unknown");
        }
        let mut parts = Vec::new();
        if let Some(reference) = reference_of(fields) {
            parts.push(self.reference(reference, guard));
        }
        for member in members(fields, "allOf") {
            parts.push(self.schema(member, guard));
        }
        for word in ["anyOf", "oneOf"] {
            let members = members(fields, word);
            if !members.is_empty() {
                parts.push(Type::union(members.iter().map(|member| self.schema(member, guard)).collect()));
            }
        }
        // `type: object` beside a composition says nothing that the composition does not.
        if parts.is_empty() || !is_bare_object(fields) {
            parts.insert(0, self.own(fields));
        }
        match fields.get("nullable") {
            Some(Value::Bool(true)) => Type::union(vec![Type::intersection(parts), Type::atom("null")]),
            Some(_) | None => Type::intersection(parts),
        }
    }

    /// What the schema says itself, composition and references aside.
    fn own(&mut self, fields: &'a Map<String, Value>) -> Type {
        if let Some(value) = fields.get("const") {
            return Type::literal(value);
        }
        if let Some(Value::Array(values)) = fields.get("enum") {
            return Type::union(values.iter().map(Type::literal).collect());
        }
        match fields.get("type") {
            Some(Value::String(word)) => self.typed(word, fields),
            Some(Value::Array(words)) => {
                let words = words.iter().filter_map(Value::as_str);
                Type::union(words.map(|word| self.typed(word, fields)).collect())
            }
            _ if OBJECT_WORDS.iter().any(|word| fields.contains_key(*word)) => self.object(fields),
            _ if fields.contains_key("prefixItems") || fields.contains_key("items") => self.list(fields),
            _ => Type::atom("unknown"),
        }
    }

    fn typed(&mut self, word: &str, fields: &'a Map<String, Value>) -> Type {
        match word {
            "string" | "boolean" | "null" | "number" => Type::atom(word),
            "integer" => Type::atom("number"),
            "object" => self.object(fields),
            "array" => self.list(fields),
            _ => Type::atom("unknown"),
        }
    }

    fn object(&mut self, fields: &'a Map<String, Value>) -> Type {
        let empty = Map::new();
        let properties = fields.get("properties").and_then(Value::as_object);
        let required: Vec<&str> = members(fields, "required").iter().filter_map(Value::as_str).collect();
        let mut lines = Vec::new();
        for (name, schema) in properties.into_iter().flatten() {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            let of_property = self.schema(schema, Guard::Inside).text;
            lines.push(format!("{}{}{mark}: {of_property}", self.comment(schema), name::property(name)));
        }
        for (at, name) in required.iter().enumerate() {
            if !properties.unwrap_or(&empty).contains_key(*name) && !required[..at].contains(name) {
                lines.push(format!("{}: unknown", name::property(name)));
            }
        }
        if let Some(of_others) = self.others(fields, lines.is_empty()) {
            lines.push(format!("[key: string]: {of_others}"));
        }
        let inline = lines.join("; ");
        if inline.len() <= 90 && !inline.contains('\n') {
            return Type::atom(format!("{{ {inline} }}"));
        }
        let lines: String = lines.iter().map(|line| format!("{line};\n")).collect();
        Type::atom(format!("{{\n{}}}", indented(&lines)))
    }

    /// The type of the properties that the schema does not name. Beside named ones only `unknown` fits all of them.
    fn others(&mut self, fields: &'a Map<String, Value>, alone: bool) -> Option<String> {
        let closed = fields.get("unevaluatedProperties") == Some(&Value::Bool(false));
        let patterns = fields.get("patternProperties").and_then(Value::as_object);
        let mut types: Vec<&Value> = patterns.into_iter().flat_map(Map::values).collect();
        match fields.get("additionalProperties") {
            Some(Value::Bool(false)) => {}
            Some(schema) => types.push(schema),
            None if closed || !alone || !types.is_empty() => {}
            None => return Some("unknown".to_owned()),
        }
        match (types.is_empty(), alone) {
            (true, true) => Some("never".to_owned()),
            (true, false) => None,
            (false, false) => Some("unknown".to_owned()),
            (false, true) => Some(Type::union(types.into_iter().map(|s| self.schema(s, Guard::Inside)).collect()).text),
        }
    }

    fn comment(&self, schema: &Value) -> String {
        let description = schema.get("description").and_then(Value::as_str).filter(|_| self.with_comments);
        description.map(comment::of_property).unwrap_or_default()
    }

    fn list(&mut self, fields: &'a Map<String, Value>) -> Type {
        // Before 2020-12 a list under `items` was what `prefixItems` is now.
        let (first, rest) = match fields.get("items") {
            Some(Value::Array(first)) => (first.as_slice(), fields.get("additionalItems")),
            rest => (members(fields, "prefixItems"), rest),
        };
        let rest = match rest {
            Some(Value::Bool(false)) => None,
            Some(schema) => Some(self.schema(schema, Guard::Inside).at_least(Binding::Atom)),
            None => Some("unknown".to_owned()),
        };
        if first.is_empty() {
            return Type::atom(rest.map_or_else(|| "[]".to_owned(), |rest| format!("{rest}[]")));
        }
        let least = fields.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        let mut items = Vec::with_capacity(first.len() + 1);
        for (at, schema) in (0u64..).zip(first) {
            let mark = if at < least { "" } else { "?" };
            items.push(self.schema(schema, Guard::Inside).at_least(Binding::Atom) + mark);
        }
        items.extend(rest.map(|rest| format!("...{rest}[]")));
        Type::atom(format!("[{}]", items.join(", ")))
    }

    fn reference(&mut self, reference: &str, guard: Guard) -> Type {
        let Some(pointer) = self.pointer(reference) else { return Type::atom("unknown") };
        if guard == Guard::Bare {
            let known = self.come_back.get(&pointer).copied();
            let comes_back = known.unwrap_or_else(|| self.comes_back(&pointer));
            self.come_back.insert(pointer.clone(), comes_back);
            if comes_back {
                return Type::atom("unknown");
            }
        }
        if let Some((_, name)) = self.names.iter().find(|(known, _)| *known == pointer) {
            return Type::atom(name.clone());
        }
        // `$$` before a letter or a number is in no key's own alias.
        let last = name::word(pointer.rsplit('/').next().unwrap_or_default());
        let wanted = format!("{}$${}", self.names[0].1, last.trim_start_matches('_'));
        let is_taken = self.names.iter().any(|(_, other)| *other == wanted);
        let name = if is_taken { format!("{wanted}${}", self.names.len()) } else { wanted };
        self.names.push((pointer, name.clone()));
        Type::atom(name)
    }

    /// The JSON pointer of a reference into this document; nothing where it leads elsewhere.
    fn pointer(&self, reference: &str) -> Option<String> {
        let id = self.root.get("$id").and_then(Value::as_str).unwrap_or_default().trim_end_matches('#');
        let fragment = reference.strip_prefix(id).unwrap_or(reference).strip_prefix('#')?;
        let fragment = percent_encoding::percent_decode_str(fragment).decode_utf8().ok()?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return self.root.pointer(&fragment).map(|_| fragment.into_owned());
        }
        ["$defs", "definitions"].iter().find_map(|shelf| {
            let (name, _) = self.root.get(shelf)?.as_object()?.iter().find(|(_, schema)| {
                ["$anchor", "$dynamicAnchor"]
                    .iter()
                    .any(|word| schema.get(word).and_then(Value::as_str) == Some(&*fragment))
            })?;
            Some(format!("/{shelf}/{}", name.replace('~', "~0").replace('/', "~1")))
        })
    }

    /// Whether the schema at the pointer is, without an object or a list between, the alias that is being written:
    /// TypeScript refuses such an alias. What takes too long to find out counts as one.
    fn comes_back(&self, pointer: &str) -> bool {
        let goal = &self.names[self.current].0;
        let mut seen = HashSet::from([pointer.to_owned()]);
        let mut open: Vec<&Value> = self.root.pointer(pointer).into_iter().collect();
        let mut steps = 0;
        while let Some(schema) = open.pop() {
            steps += 1;
            if steps > MAX_STEPS || seen.contains(goal) {
                return true;
            }
            let Some(fields) = schema.as_object() else { continue };
            open.extend(COMPOSITIONS.iter().flat_map(|word| members(fields, word)));
            if let Some(next) = reference_of(fields).and_then(|reference| self.pointer(reference)) {
                open.extend(self.root.pointer(&next).filter(|_| !seen.contains(&next)));
                seen.insert(next);
            }
        }
        seen.contains(goal)
    }
}

/// How many schemas are looked at to find out whether an alias stands bare in itself.
const MAX_STEPS: usize = 1000;

const COMPOSITIONS: &[&str] = &["allOf", "anyOf", "oneOf"];

const OBJECT_WORDS: &[&str] = &["properties", "required", "additionalProperties", "patternProperties"];

fn reference_of(fields: &Map<String, Value>) -> Option<&str> {
    fields.get("$ref").or_else(|| fields.get("$dynamicRef"))?.as_str()
}

/// Whether the schema itself says no more than that it is an object.
fn is_bare_object(fields: &Map<String, Value>) -> bool {
    let closes = fields.get("additionalProperties") == Some(&Value::Bool(false));
    let says = |word: &str| fields.contains_key(word) && !(closes && word == "additionalProperties");
    let says = ["const", "enum"].iter().chain(OBJECT_WORDS).any(|word| says(word));
    !says && fields.get("type").is_none_or(|word| word.as_str() == Some("object"))
}

fn members<'a>(fields: &'a Map<String, Value>, word: &str) -> &'a [Value] {
    fields.get(word).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
