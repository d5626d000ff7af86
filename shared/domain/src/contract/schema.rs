//! A schema with the words for readers taken out of it.

use serde_json::{Map, Value, json};

use super::clean;

/// Keywords whose members are named by the author and are no keywords.
const NAMED: &[&str] = &["properties", "patternProperties", "$defs", "definitions", "dependentSchemas"];
/// Keywords that only a reader sees.
const WORDS: &[&str] = &["description", "title", "$comment"];

/// Takes titles, descriptions and comments out of the schema; gives them by their JSON pointers, cleaned.
pub(super) fn without_words(schema: &Value) -> (Value, Map<String, Value>) {
    let (mut bare, mut words) = (schema.clone(), Map::new());
    take(&mut bare, "", &mut words);
    (bare, words)
}

fn take(value: &mut Value, path: &str, words: &mut Map<String, Value>) {
    match value {
        Value::Object(map) => {
            for word in WORDS {
                if map.get(*word).is_some_and(Value::is_string)
                    && let Some(Value::String(text)) = map.shift_remove(*word)
                {
                    words.insert(format!("{path}/{word}"), json!(clean(&text)));
                }
            }
            for (name, child) in map.iter_mut() {
                let path = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                match child {
                    Value::Object(named) if NAMED.contains(&name.as_str()) => {
                        for (name, child) in named.iter_mut() {
                            take(child, &format!("{path}/{}", name.replace('~', "~0").replace('/', "~1")), words);
                        }
                    }
                    child => take(child, &path, words),
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter_mut().enumerate() {
                take(item, &format!("{path}/{at}"), words);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The word that stands for a value of the property: `<number>`, `<string>`.
pub(super) fn placeholder(property: Option<&Value>) -> Value {
    let word = property.and_then(|property| property.get("type")).and_then(|word| match word {
        Value::String(word) => Some(word.as_str()),
        Value::Array(words) => words.first().and_then(Value::as_str),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    });
    json!(format!("<{}>", word.unwrap_or("value")))
}
