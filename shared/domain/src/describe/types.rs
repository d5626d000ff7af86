//! TypeScript's types as text.

use std::collections::HashSet;

use serde_json::Value;

use super::name;
use crate::canonical;

/// A type's text, and how tightly it holds together.
#[derive(Clone, Debug)]
pub(super) struct Type {
    pub(super) text: String,
    binding: Binding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Binding {
    Union,
    Intersection,
    Atom,
}

impl Type {
    pub(super) fn atom(text: impl Into<String>) -> Type {
        Type { text: text.into(), binding: Binding::Atom }
    }

    /// The type that has this one value.
    pub(super) fn literal(value: &Value) -> Type {
        match value {
            Value::Null => Type::atom("null"),
            Value::Bool(flag) => Type::atom(flag.to_string()),
            Value::String(text) => Type::atom(name::quoted(text)),
            // A number that TypeScript would round is no literal of it.
            Value::Number(_) if canonical::is_exact(value) => Type::atom(canonical::to_string(value)),
            Value::Number(_) => Type::atom("number"),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| Type::literal(item).text).collect();
                Type::atom(format!("[{}]", items.join(", ")))
            }
            Value::Object(fields) => {
                let fields: Vec<String> = fields
                    .iter()
                    .map(|(key, item)| format!("{}: {}", name::property(key), Type::literal(item).text))
                    .collect();
                Type::atom(format!("{{ {} }}", fields.join("; ")))
            }
        }
    }

    pub(super) fn union(types: Vec<Type>) -> Type {
        if types.iter().any(|one| one.text == "unknown") {
            return Type::atom("unknown");
        }
        Type::joined(types, "never", " | ", Binding::Union)
    }

    pub(super) fn intersection(types: Vec<Type>) -> Type {
        Type::joined(types, "unknown", " & ", Binding::Intersection)
    }

    /// The types once each, `neutral` left out.
    fn joined(types: Vec<Type>, neutral: &str, sign: &str, binding: Binding) -> Type {
        let mut seen = HashSet::new();
        let mut kept = types;
        kept.retain(|one| one.text != neutral && seen.insert(one.text.clone()));
        match kept.len() {
            0 => Type::atom(neutral),
            1 => kept.remove(0),
            _ => {
                let texts: Vec<String> = kept.into_iter().map(|one| one.at_least(binding)).collect();
                Type { text: texts.join(sign), binding }
            }
        }
    }

    /// The text, in parentheses where it holds together less than the place needs.
    pub(super) fn at_least(self, binding: Binding) -> String {
        if self.binding < binding { format!("({})", self.text) } else { self.text }
    }
}
