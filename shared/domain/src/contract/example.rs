//! The example call of a row: what its writer gave, else placeholders in the places of its arguments.

use serde_json::{Map, Value, json};

use super::argument::{ArgumentDoc, arguments};
use super::schema::placeholder;
use crate::arguments::Sent;
use crate::compile::{Compiled, Plan};
use crate::row::Definition;

/// A call that shows how the row is called.
pub(super) struct Example {
    /// The arguments as text.
    pub(super) body: String,
    /// The same as JSON; absent where the call takes none, or where they cannot be told apart.
    pub(super) args: Option<Value>,
}

/// The text that an example call sends as `body`: the first of `examples`, else `EX`, else placeholders
/// (`<latitude>|<longitude>`). Nothing for a row that cannot be called.
pub fn example(definition: &Definition, compiled: &Compiled) -> Option<String> {
    match &compiled.plan {
        Plan::Block => None,
        Plan::Http(_) | Plan::Fn(_) | Plan::Flow(_) | Plan::Agent(_) => Some(body(definition, compiled)),
    }
}

/// The example in both forms.
pub(super) fn worked(definition: &Definition, compiled: &Compiled) -> Option<Example> {
    let body = example(definition, compiled)?;
    let args = match definition.examples.first() {
        Some(Value::Object(map)) => Some(Value::Object(map.clone())),
        Some(_) | None => typed(compiled, &body),
    };
    Some(Example { args, body })
}

/// What a caller fills in: `{"key":…,"args":{…}}` where a schema gives the arguments types, else `{"key":…,"body":…}`.
pub(super) fn skeleton(definition: &Definition, compiled: &Compiled) -> Value {
    match &compiled.signature.schema {
        None => json!({"key": definition.key, "body": placeholders(compiled)}),
        Some(schema) => {
            let required = schema.required().iter();
            let args: Map<String, Value> =
                required.map(|name| (name.clone(), placeholder(schema.property(name)))).collect();
            json!({"key": definition.key, "args": args})
        }
    }
}

fn body(definition: &Definition, compiled: &Compiled) -> String {
    match definition.examples.first() {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(map)) => of_object(map, compiled),
        Some(Value::Array(items)) if compiled.signature.schema.is_none() => piped(items),
        Some(other) => other.to_string(),
        None => compiled.docstring.example.clone().unwrap_or_else(|| placeholders(compiled)),
    }
}

/// Named arguments as text: the object itself where a schema reads it, else its values in their order.
fn of_object(map: &Map<String, Value>, compiled: &Compiled) -> String {
    let names = &compiled.signature.names;
    let in_order: Option<Vec<Value>> = names.iter().take(map.len()).map(|name| map.get(name).cloned()).collect();
    match in_order {
        Some(values) if compiled.signature.schema.is_none() && values.len() == map.len() => piped(&values),
        Some(_) | None => Value::Object(map.clone()).to_string(),
    }
}

fn piped(values: &[Value]) -> String {
    let texts = values.iter().map(|value| match value {
        Value::String(text) => text.replace('|', "\\|"),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string().replace('|', "\\|")
        }
    });
    texts.collect::<Vec<_>>().join("|")
}

/// `<name>|<name>`: every argument up to the last that is needed or, without a schema, named.
fn placeholders(compiled: &Compiled) -> String {
    let arguments = arguments(compiled);
    let is_checked = compiled.signature.schema.is_some();
    let is_shown = |argument: &ArgumentDoc| argument.required || !(is_checked || argument.name.starts_with('$'));
    let needed = arguments.iter().rposition(is_shown).map_or(0, |last| last + 1);
    let operation = match &compiled.plan {
        Plan::Http(plan) => plan.operations().first().map(|name| (*name).to_owned()),
        Plan::Fn(_) | Plan::Flow(_) | Plan::Agent(_) | Plan::Block => None,
    };
    let texts = arguments[..needed].iter().enumerate().map(|(at, argument)| match &operation {
        Some(operation) if at == 0 => operation.clone(),
        Some(_) | None => format!("<{}>", argument.name.trim_start_matches('$')),
    });
    texts.collect::<Vec<_>>().join("|")
}

/// The arguments that the text gives, by name where they have names.
fn typed(compiled: &Compiled, body: &str) -> Option<Value> {
    let sent = Sent::new(Some(body.to_owned()), None).ok()?;
    let bound = compiled.signature.bind(&sent).ok()?;
    if bound.positional.iter().all(Option::is_none) && bound.named.is_empty() {
        return None;
    }
    serde_json::from_str(&bound.canonical_text()).ok()
}
