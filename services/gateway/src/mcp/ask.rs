//! Arguments that a person gives and no model: the row's schema marks them with `x-ask`, the question that is put.
//!
//! A listing of the modern era does not show them. Where the client can put a form before a person, they are asked for,
//! all at once or, with `x-ask-after`, once another one is known.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::message::{Params, RpcError};

const ASK: &str = "x-ask";
const AFTER: &str = "x-ask-after";

/// One argument that is asked for.
#[derive(Debug, PartialEq)]
pub(super) struct Question {
    name: String,
    words: String,
    schema: Value,
    after: Option<String>,
    is_required: bool,
}

/// What a client brings of what it was asked.
#[derive(Debug, Default)]
pub(super) struct Responses(Map<String, Value>);

/// What a person did with a form.
#[derive(Debug, PartialEq)]
pub(super) enum Response {
    /// It was filled in.
    Accepted(Map<String, Value>),
    /// It was turned down, or put away.
    Declined,
}

impl Responses {
    /// Reads `inputResponses`; absent is empty.
    pub(super) fn take(params: &mut Params) -> Result<Self, RpcError> {
        let Some(raw) = params.raw_or_null("inputResponses") else { return Ok(Responses::default()) };
        match serde_json::from_str(raw.get()) {
            Ok(responses) => Ok(Responses(responses)),
            Err(_) => Err(RpcError::params("`inputResponses` must be an object")),
        }
    }

    /// The response under a key. Keys that nobody asked about are nobody's.
    pub(super) fn get(&self, key: &str) -> Result<Option<Response>, RpcError> {
        #[derive(Deserialize)]
        struct Told {
            action: String,
            #[serde(default)]
            content: Option<Map<String, Value>>,
        }
        let Some(value) = self.0.get(key) else { return Ok(None) };
        let told: Told = serde_json::from_value(value.clone())
            .map_err(|_| RpcError::params(format!("`inputResponses.{key}` is no answer to an elicitation")))?;
        match told.action.as_str() {
            "accept" => Ok(Some(Response::Accepted(told.content.unwrap_or_default()))),
            "decline" | "cancel" => Ok(Some(Response::Declined)),
            _ => Err(RpcError::params(format!("`inputResponses.{key}.action` is accept, decline or cancel"))),
        }
    }
}

/// The questions of a row.
pub(super) fn questions(schema: &Value) -> Vec<Question> {
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let marked = properties.into_iter().flatten().filter_map(|(name, told)| {
        let words = told.get(ASK)?.as_str()?.to_owned();
        let after = told.get(AFTER).and_then(Value::as_str).map(str::to_owned);
        let is_required = required.is_some_and(|required| required.contains(&json!(name)));
        Some(Question { name: name.clone(), words, schema: bare(told), after, is_required })
    });
    marked.collect()
}

/// The schema without what is asked of a person.
pub(super) fn without_questions(mut schema: Value) -> Value {
    let asked: Vec<String> = questions(&schema).into_iter().map(|question| question.name).collect();
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !asked.contains(name));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !asked.iter().any(|asked| name == asked));
    }
    schema
}

impl Question {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_required(&self) -> bool {
        self.is_required
    }

    /// Whether it can be put now.
    pub(super) fn is_due(&self, known: &Map<String, Value>) -> bool {
        !known.contains_key(&self.name) && self.after.as_ref().is_none_or(|after| known.contains_key(after))
    }

    /// The request that a client puts before a person.
    pub(super) fn request(&self) -> Value {
        let form = if self.is_form() {
            self.schema.clone()
        } else {
            json!({"type": "object", "properties": {&self.name: self.schema}, "required": [self.name]})
        };
        json!({"method": "elicitation/create", "params": {"mode": "form", "message": self.words, "requestedSchema": form}})
    }

    /// The argument, from a form that was filled in.
    pub(super) fn value(&self, mut content: Map<String, Value>) -> Option<Value> {
        if self.is_form() { Some(Value::Object(content)) } else { content.shift_remove(&self.name) }
    }

    /// Whether the argument is an object: its properties are the form's fields.
    fn is_form(&self) -> bool {
        self.schema.get("type") == Some(&json!("object"))
    }
}

fn bare(told: &Value) -> Value {
    let mut schema = told.clone();
    if let Some(map) = schema.as_object_mut() {
        map.retain(|keyword, _| keyword != ASK && keyword != AFTER);
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({
            "type": "object", "required": ["city", "name", "who"], "additionalProperties": false,
            "properties": {
                "city": {"type": "string"},
                "name": {"type": "string", "x-ask": "What is your name?"},
                "who": {"type": "object", "x-ask": "Who else?", "x-ask-after": "name", "properties": {"a": {"type": "string"}}},
            },
        })
    }

    #[test]
    fn a_listing_shows_what_a_model_gives_and_no_more() {
        let shown = without_questions(schema());
        assert_eq!(shown["required"], json!(["city"]));
        assert_eq!(shown["properties"], json!({"city": {"type": "string"}}));
    }

    #[test]
    fn a_question_becomes_a_form_and_its_answer_an_argument() {
        let questions = questions(&schema());
        let [name, who] = &questions[..] else { panic!("two questions") };
        let request = name.request();
        assert_eq!(request["params"]["message"], "What is your name?");
        assert_eq!(request["params"]["requestedSchema"]["properties"], json!({"name": {"type": "string"}}));
        assert_eq!(
            who.request()["params"]["requestedSchema"],
            json!({"type": "object", "properties": {"a": {"type": "string"}}})
        );
        let content = |text: &str| serde_json::from_str::<Map<String, Value>>(text).unwrap();
        assert_eq!(name.value(content(r#"{"name":"Ada","x":1}"#)), Some(json!("Ada")));
        assert_eq!(name.value(content("{}")), None);
        assert_eq!(who.value(content(r#"{"a":"b"}"#)), Some(json!({"a": "b"})));
        assert!(name.is_due(&Map::new()) && !who.is_due(&Map::new()));
        assert!(who.is_due(&content(r#"{"name":"Ada"}"#)));
    }

    #[test]
    fn responses_that_are_none_are_refused_and_others_are_read() {
        let responses = |text: &str| Responses(serde_json::from_str(text).unwrap());
        assert_eq!(responses(r#"{"a":{"action":"decline"}}"#).get("a").unwrap(), Some(Response::Declined));
        assert_eq!(responses(r#"{"a":1}"#).get("b").unwrap(), None);
        assert!(responses(r#"{"a":12345}"#).get("a").is_err());
        assert!(responses(r#"{"a":{"action":"yes"}}"#).get("a").is_err());
    }
}
