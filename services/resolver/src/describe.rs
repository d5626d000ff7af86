//! Describe: rows as TypeScript, for a model that writes code.

use std::collections::BTreeSet;
use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::compile::{Compiled, Plan};
use callbook_domain::contract::{clean, described};
use callbook_domain::describe::{self, Described, MAX_DESCRIPTION};
use callbook_domain::docstring::ArgsDoc;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_store::snapshot::{Entry, Snapshot};
use serde_json::{Map, Value, json};

use crate::App;
use crate::follow::answers;
use crate::summary::is_untrusted;

/// The most keys in one request.
const MAX_KEYS: usize = 20;

/// The description, or why there is none.
pub(crate) enum Answer {
    /// The description.
    Description(Description),
    /// It would be longer than [`MAX_DESCRIPTION`].
    TooLarge {
        /// How many rows were asked for.
        rows: usize,
    },
}

/// Rows as TypeScript.
pub(crate) struct Description {
    /// The declarations.
    pub(crate) typescript: String,
    /// JSON Schema of the arguments, where one key was asked for.
    pub(crate) input_schema: Option<Value>,
    /// The rows' keys, in byte order.
    pub(crate) keys: Vec<Key>,
    /// Third parties wrote some of the words.
    pub(crate) is_untrusted: bool,
}

/// What is to be described.
#[derive(Debug, PartialEq, Eq)]
enum Subject {
    Keys(BTreeSet<String>),
    Namespace(String),
}

/// Describes rows by key, those that planners do not see too, or the rows that planners see of a namespace.
///
/// # Errors
/// `invalid_request` where not exactly one of keys and namespace is given, for more than 20 keys, and for a prompt
/// block; `unknown_key`; for a row that cannot be called, the reason.
pub(crate) async fn describe(app: &App, caller: &Caller, keys: Vec<String>, namespace: String) -> Result<Answer> {
    let subject = Subject::read(keys, namespace)?;
    let held = app.directory.snapshot();
    let rows = match subject.rows(&held, caller) {
        // Before anybody is told that there is no such row, the database is looked at; without one, what is held counts.
        Err(fault) if fault.reason() == Reason::UnknownKey => match app.directory.fresh().await {
            Ok(fresh) => subject.rows(&fresh, caller)?,
            Err(_) => return Err(fault),
        },
        rows => rows?,
    };
    subject.answer(&rows)
}

impl Subject {
    fn read(keys: Vec<String>, namespace: String) -> Result<Subject> {
        match (keys.is_empty(), namespace.is_empty()) {
            (true, true) | (false, false) => {
                Err(Fault::new(Reason::InvalidRequest, "give keys or a namespace, one of the two").with("field", "key"))
            }
            (true, false) => Ok(Subject::Namespace(namespace)),
            (false, true) if keys.len() <= MAX_KEYS => Ok(Subject::Keys(keys.into_iter().collect())),
            (false, true) => {
                Err(Fault::new(Reason::InvalidRequest, format!("{} keys are more than {MAX_KEYS}", keys.len()))
                    .fix("describe a selection, or a namespace")
                    .with("field", "key"))
            }
        }
    }

    fn rows(&self, snapshot: &Snapshot, caller: &Caller) -> Result<Vec<Arc<Entry>>> {
        match self {
            Subject::Keys(keys) => keys.iter().map(|key| row(snapshot, caller, key)).collect(),
            Subject::Namespace(namespace) => {
                let is_in = |entry: &Entry| entry.key().is_under(namespace) && caller.sees(entry.key());
                let rows = snapshot.rows().iter().filter(|entry| answers(entry) && is_in(entry));
                let rows: Vec<Arc<Entry>> = rows.cloned().collect();
                if rows.is_empty() { Err(snapshot.unknown_key(caller, namespace)) } else { Ok(rows) }
            }
        }
    }

    fn answer(&self, rows: &[Arc<Entry>]) -> Result<Answer> {
        let pairs: Vec<(&Entry, &Compiled)> =
            rows.iter().filter_map(|entry| Some((entry.as_ref(), entry.compiled.as_ref().ok()?))).collect();
        let all: Vec<Described<'_>> = pairs.iter().map(|(entry, c)| described(&entry.row.definition, c)).collect();
        let Ok(typescript) = describe::describe(&all) else { return Ok(Answer::TooLarge { rows: rows.len() }) };
        let input_schema = match (self, pairs.as_slice()) {
            (Subject::Keys(_), [(entry, compiled)]) => Some(input_schema(entry, compiled)),
            (Subject::Keys(_) | Subject::Namespace(_), _) => None,
        };
        let mut keys: Vec<Key> = rows.iter().map(|entry| entry.key().clone()).collect();
        keys.sort_unstable();
        let is_untrusted = rows.iter().any(|entry| is_untrusted(entry));
        Ok(Answer::Description(Description { typescript, input_schema, keys, is_untrusted }))
    }
}

/// What to do where a description does not fit.
pub(crate) fn too_large_hint(rows: usize) -> String {
    match rows {
        0 | 1 => format!("the row is longer than {MAX_DESCRIPTION} bytes as TypeScript; read its contract as JSON"),
        _ => format!(
            "the description of {rows} rows is longer than {MAX_DESCRIPTION} bytes; list the namespace, then describe \
             one row or a selection"
        ),
    }
}

/// The row of this key, if it can be called.
fn row(snapshot: &Snapshot, caller: &Caller, key: &str) -> Result<Arc<Entry>> {
    let entry = snapshot
        .get(key)
        .filter(|entry| entry.row.definition.enabled && caller.sees(entry.key()))
        .ok_or_else(|| snapshot.unknown_key(caller, key))?;
    let compiled = entry.compiled.as_ref().map_err(Clone::clone)?;
    match &compiled.plan {
        Plan::Http(_) | Plan::Fn(_) | Plan::Flow(_) | Plan::Agent(_) => Ok(entry.clone()),
        Plan::Block => {
            let message = format!("`{key}` is a prompt block and cannot be called");
            Err(Fault::new(Reason::InvalidRequest, message).with("field", "key"))
        }
    }
}

/// The row's schema, or that of the strings which stand for its positions. A third party's words in it hold nothing
/// that a reader would not see.
pub(crate) fn input_schema(entry: &Entry, compiled: &Compiled) -> Value {
    let signature = &compiled.signature;
    match &signature.schema {
        Some(schema) => {
            let mut shown = schema.value().clone();
            if is_untrusted(entry) {
                clean_words(&mut shown);
            }
            shown
        }
        // As in the TypeScript: without names, any number of strings.
        None if signature.names.is_empty() && compiled.docstring.args != ArgsDoc::None => {
            json!({"type": "array", "items": {"type": "string"}})
        }
        None => {
            let properties: Map<String, Value> =
                signature.names.iter().map(|name| (name.clone(), json!({"type": "string"}))).collect();
            json!({
                "type": "object", "properties": properties, "required": signature.names,
                "additionalProperties": false, "x-arg-order": signature.names,
            })
        }
    }
}

/// Names and allowed values stay as they are: they are what a call must send.
pub(crate) fn clean_words(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for (name, child) in map.iter_mut() {
                match child {
                    Value::String(text) if matches!(name.as_str(), "description" | "title" | "$comment") => {
                        *text = clean(text);
                    }
                    child => clean_words(child),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(clean_words),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use callbook_domain::row::Provenance;

    use super::*;
    use crate::catalogue::tests::{book, entry};
    use crate::sight::narrowed;

    fn of_keys(keys: &[&str]) -> Result<Subject> {
        Subject::read(keys.iter().map(|key| (*key).to_owned()).collect(), String::new())
    }

    fn described(snapshot: &Snapshot, subject: &Subject) -> Description {
        match subject.answer(&subject.rows(snapshot, &Caller::Owner).unwrap()).unwrap() {
            Answer::Description(description) => description,
            Answer::TooLarge { rows } => panic!("{rows} rows do not fit"),
        }
    }

    #[test]
    fn keys_or_a_namespace_are_asked_for() {
        assert!(Subject::read(Vec::new(), String::new()).is_err());
        assert!(Subject::read(vec!["A".to_owned()], "a".to_owned()).is_err());
        assert!(of_keys(&["A"; 21]).is_err());
        assert!(of_keys(&["A"; 20]).is_ok());
    }

    #[test]
    fn a_single_row_comes_with_its_input_schema() {
        let schema = r#"{"type":"object","properties":{"n":{"type":"integer","maximum":5}}}"#;
        let snapshot = book(vec![entry("B", |_| ()), entry("A", |row| row.input_schema = Some(schema.to_owned()))]);
        let one = described(&snapshot, &of_keys(&["A", "A"]).unwrap());
        assert_eq!(one.input_schema.unwrap()["properties"]["n"]["maximum"], 5);
        let positional = described(&snapshot, &of_keys(&["B"]).unwrap());
        assert_eq!(positional.input_schema.unwrap()["required"], json!(["text"]));
        let two = described(&snapshot, &of_keys(&["B", "A"]).unwrap());
        assert_eq!((two.input_schema, two.keys[0].as_str(), two.keys.len()), (None, "A", 2));
        assert!(two.typescript.contains("declare const env"));
    }

    #[test]
    fn what_cannot_be_called_or_seen_is_not_described() {
        let snapshot = book(vec![
            entry("a.BLOCK", |row| row.target = "prompt_block".to_owned()),
            entry("a.OFF", |row| row.enabled = false),
            entry("a.HIDDEN", |row| row.planner_visible = false),
            entry("a.BROKEN", |row| row.target = String::new()),
            entry("a.GOOD", |_| ()),
        ]);
        let reason = |key| of_keys(&[key]).unwrap().rows(&snapshot, &Caller::Owner).unwrap_err().reason();
        assert_eq!(reason("a.BLOCK"), Reason::InvalidRequest);
        assert_eq!(reason("a.OFF"), Reason::UnknownKey);
        assert_eq!(reason("a.BROKEN"), Reason::RegistryHygieneRefused);
        assert!(of_keys(&["a.HIDDEN"]).unwrap().rows(&snapshot, &Caller::Owner).is_ok());
        let space = Subject::Namespace("a".to_owned());
        assert_eq!(described(&snapshot, &space).keys, [Key::parse("a.GOOD").unwrap()]);
        assert_eq!(space.rows(&snapshot, &narrowed("b.")).unwrap_err().reason(), Reason::UnknownKey);
        let near = of_keys(&["a.GOOF"]).unwrap().rows(&snapshot, &narrowed("b.")).unwrap_err();
        assert!(near.metadata().contains(&("did_you_mean", "[]".to_owned())), "{near:?}");
    }

    #[test]
    fn too_large_says_how_many_rows_and_what_to_do() {
        let long = format!("# WHAT: {}\n[\"$1\"]", "word ".repeat(700));
        let rows = (0..9).map(|n| entry(&format!("a.r{n}"), |row| row.content.clone_from(&long))).collect();
        let space = Subject::Namespace("a".to_owned());
        let answer = space.answer(&space.rows(&book(rows), &Caller::Owner).unwrap()).unwrap();
        assert!(matches!(answer, Answer::TooLarge { rows: 9 }));
        assert!(too_large_hint(9).contains("list the namespace"));
    }

    #[test]
    fn words_of_third_parties_hold_nothing_hidden() {
        let schema = r#"{"type":"object","properties":{"title":{"description":"a\u202eb","enum":["x\u200b"]}}}"#;
        let snapshot = book(vec![entry("A", |row| {
            row.input_schema = Some(schema.to_owned());
            row.provenance = Provenance::ThirdParty;
        })]);
        let one = described(&snapshot, &of_keys(&["A"]).unwrap());
        assert!(one.is_untrusted);
        let title = &one.input_schema.unwrap()["properties"]["title"];
        assert_eq!((&title["description"], &title["enum"][0]), (&json!("ab"), &json!("x\u{200b}")));
    }
}
