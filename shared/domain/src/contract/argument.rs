//! The positional arguments of a row as a reader is told of them.

use serde_json::{Map, Value, json};

use crate::compile::{Compiled, Plan};
use crate::docstring::ArgsDoc;

/// One positional argument.
pub(super) struct ArgumentDoc {
    /// Its name; `$N` where the row names none.
    pub(super) name: String,
    /// What it is, in the writer's words.
    pub(super) meaning: Option<String>,
    /// Whether a call without it is refused.
    pub(super) required: bool,
    /// Whether it takes all that follows.
    pub(super) rest: bool,
}

/// The arguments in order. A row with an input schema is described by that instead.
pub(super) fn arguments(compiled: &Compiled) -> Vec<ArgumentDoc> {
    let signature = &compiled.signature;
    let uses = &signature.uses;
    let places = match signature.schema {
        Some(_) => signature.names.len(),
        // passes on what it is given, and its writer says that it is given nothing
        None if uses.optional && compiled.docstring.args == ArgsDoc::None => 0,
        None => signature.names.len().max(uses.highest),
    };
    (1..=places)
        .map(|n| {
            let named = signature.names.get(n - 1);
            let read = n <= uses.highest || named.is_some_and(|name| uses.named.contains(name));
            let operations = operations(compiled).filter(|_| n == 1);
            let required = match &signature.schema {
                Some(schema) => named.is_some_and(|name| schema.is_required(name)),
                None => operations.is_some() || (read && !uses.optional),
            };
            ArgumentDoc {
                name: named.cloned().unwrap_or_else(|| format!("${n}")),
                meaning: meaning(compiled, n).or(operations),
                required,
                rest: n == places && uses.rest_from.is_some(),
            }
        })
        .collect()
}

impl ArgumentDoc {
    /// The argument in a contract; without its type, which is always text, where there is no room, and without its
    /// meaning where that stands elsewhere.
    pub(super) fn to_json(&self, with_type: bool, with_meaning: bool) -> Value {
        let mut map = Map::new();
        map.insert("name".into(), json!(self.name));
        if with_type {
            map.insert("type".into(), json!("string"));
        }
        map.insert("required".into(), json!(self.required));
        if self.rest {
            map.insert("rest".into(), json!(true));
        }
        if let Some(meaning) = self.meaning.as_ref().filter(|_| with_meaning) {
            map.insert("meaning".into(), json!(meaning));
        }
        Value::Object(map)
    }
}

fn meaning(compiled: &Compiled, n: usize) -> Option<String> {
    match &compiled.docstring.args {
        ArgsDoc::List(list) => list.get(n - 1)?.meaning.clone(),
        ArgsDoc::Absent | ArgsDoc::None | ArgsDoc::SeeContent => None,
    }
}

/// What the first argument of a map of operations may be.
fn operations(compiled: &Compiled) -> Option<String> {
    let Plan::Http(plan) = &compiled.plan else { return None };
    let names = plan.operations();
    (!names.is_empty()).then(|| format!("one of {}", names.join(", ")))
}
