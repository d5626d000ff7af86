//! The contract for models: compact JSON, key order as written.

use serde_json::{Map, Value, json};

use super::argument::{ArgumentDoc, arguments};
use super::example::{skeleton, worked};
use super::moves::{may_invoke, moves, waits_for_a_person};
use super::{Rendered, clean, schema};
use crate::auth::Auth;
use crate::compile::Plan;
use crate::schema::Schema;

/// The largest contract of a row without a schema, in bytes; only a WHAT that is longer by itself passes it.
pub const MAX_COMPACT: usize = 1_200;

/// What is left out of a contract that is too large, first what a caller misses least.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Left {
    Nothing,
    Output,
    Meanings,
    WhenToUse,
    Example,
    Types,
}

/// The contract as a JSON object.
///
/// A row without a schema whose words do not fit [`MAX_COMPACT`] is told without the longest of them, and `more` says
/// where they are.
pub fn compact(rendered: &Rendered<'_>) -> Value {
    let whole = at(rendered, Left::Nothing);
    if has_schema(rendered) || size(&whole) <= MAX_COMPACT {
        return whole;
    }
    let mut last = whole;
    for left in [Left::Output, Left::Meanings, Left::WhenToUse, Left::Example, Left::Types] {
        last = at(rendered, left);
        if size(&last) <= MAX_COMPACT {
            break;
        }
    }
    last
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

fn has_schema(rendered: &Rendered<'_>) -> bool {
    rendered.compiled.signature.schema.is_some() || rendered.compiled.output_schema.is_some()
}

fn at(rendered: &Rendered<'_>, left: Left) -> Value {
    let row = rendered.row;
    let words = Words::of(rendered, left);
    let mut map = Map::new();
    let mut set = |name: &str, value: Value| drop(map.insert(name.to_owned(), value));
    set("key", json!(rendered.key()));
    for (name, text) in words.own() {
        set(name, json!(text));
    }
    set("type", json!(rendered.definition().row_type.as_str()));
    set("effect", json!(row.effect.as_str()));
    set("risk", json!(row.risk.as_str()));
    let inputs = Inputs::of(rendered, left);
    for (name, value) in inputs.members {
        set(name, value);
    }
    if left < Left::Example {
        set_example(rendered, &mut set);
    }
    if let Some(output) = words.own_output() {
        set("output", json!(output));
    }
    if let Some(schema) = inputs.output_schema {
        set("output_schema", schema);
    }
    set("needs", needs(rendered));
    set("contract_hash", json!(row.contract_hash));
    if !matches!(rendered.compiled.plan, Plan::Block) {
        let body = skeleton(rendered.definition(), rendered.compiled);
        set("invoke", json!({"method": "POST", "path": "/api/dispatch", "body": body}));
    }
    set("can", moves(rendered).iter().map(|each| each.as_str()).collect());
    if let Some(untrusted) = words.untrusted(inputs.words) {
        set("untrusted_text", untrusted);
    }
    if left > Left::Nothing {
        set("more", json!(format!("/api/dispatch?key={}&format=markdown", rendered.key())));
    }
    Value::Object(map)
}

fn set_example(rendered: &Rendered<'_>, set: &mut impl FnMut(&str, Value)) {
    let Some(example) = worked(rendered.definition(), rendered.compiled) else { return };
    let mut shown = Map::new();
    shown.insert("body".into(), json!(example.body));
    if let Some(args) = example.args {
        shown.insert("args".into(), args);
    }
    set("example", Value::Object(shown));
}

/// Whether the row itself shows a credential upstream (the executor's, never the caller's), whether a person must
/// approve a call of this caller, and the grant that it lacks.
fn needs(rendered: &Rendered<'_>) -> Value {
    let credential = rendered.compiled.auth != Auth::None;
    let mut needs = json!({"credential": credential, "approval": waits_for_a_person(rendered)});
    if !may_invoke(rendered) && !matches!(rendered.compiled.plan, Plan::Block) {
        needs["grant"] = json!(format!("invoke:{}", rendered.key()));
    }
    needs
}

/// The words of the docstring, in the place where they may stand.
struct Words<'a> {
    what: Option<&'a str>,
    when_to_use: Option<&'a str>,
    output: Option<&'a str>,
    /// By argument name.
    meanings: Vec<(String, String)>,
    is_untrusted: bool,
}

impl<'a> Words<'a> {
    fn of(rendered: &Rendered<'a>, left: Left) -> Words<'a> {
        let doc = &rendered.compiled.docstring;
        let is_untrusted = rendered.is_third_party();
        let meanings = if is_untrusted && left < Left::Meanings && rendered.compiled.signature.schema.is_none() {
            let each = arguments(rendered.compiled).into_iter();
            each.filter_map(|ArgumentDoc { name, meaning, .. }| Some((name, meaning?))).collect()
        } else {
            Vec::new()
        };
        Words {
            what: doc.summary(),
            when_to_use: doc.when_to_use.as_deref().filter(|_| left < Left::WhenToUse),
            output: doc.output.as_deref().filter(|_| left < Left::Output),
            meanings,
            is_untrusted,
        }
    }

    fn own(&self) -> impl Iterator<Item = (&'static str, &'a str)> {
        let own = [("what", self.what), ("when_to_use", self.when_to_use)];
        let is_own = !self.is_untrusted;
        own.into_iter().filter_map(move |(name, text)| Some((name, text.filter(|_| is_own)?)))
    }

    fn own_output(&self) -> Option<&'a str> {
        self.output.filter(|_| !self.is_untrusted)
    }

    fn untrusted(&self, schema_words: Map<String, Value>) -> Option<Value> {
        if !self.is_untrusted {
            return None;
        }
        let mut map = Map::new();
        for (name, text) in [("what", self.what), ("when_to_use", self.when_to_use), ("output", self.output)] {
            if let Some(text) = text {
                map.insert(name.to_owned(), json!(clean(text)));
            }
        }
        if !self.meanings.is_empty() {
            let each = self.meanings.iter().map(|(name, text)| (clean(name), json!(clean(text))));
            map.insert("arguments".into(), Value::Object(each.collect()));
        }
        if !schema_words.is_empty() {
            map.insert("schema".into(), Value::Object(schema_words));
        }
        (!map.is_empty()).then_some(Value::Object(map))
    }
}

/// What the row takes and what it is known to give, as schemas or as a list.
pub(super) struct Inputs {
    /// `arguments`, or `schema` and, for several, `order`.
    pub(super) members: Vec<(&'static str, Value)>,
    /// The output's schema.
    pub(super) output_schema: Option<Value>,
    /// The words that were taken out of a third party's schemas.
    words: Map<String, Value>,
}

impl Inputs {
    /// All of it, without a third party's words.
    pub(super) fn whole(rendered: &Rendered<'_>) -> Inputs {
        Inputs::of(rendered, Left::Nothing)
    }

    fn of(rendered: &Rendered<'_>, left: Left) -> Inputs {
        let mut words = Map::new();
        let signature = &rendered.compiled.signature;
        let input = signature.schema.as_deref().map(|schema| shown(rendered, schema, "input", &mut words));
        let output_schema =
            rendered.compiled.output_schema.as_deref().map(|schema| shown(rendered, schema, "output", &mut words));
        let members = match input {
            Some(schema) if signature.names.len() > 1 => {
                vec![("schema", schema), ("order", json!(signature.names))]
            }
            Some(schema) => vec![("schema", schema)],
            None => {
                let with_meaning = left < Left::Meanings && !rendered.is_third_party();
                let with_type = left < Left::Types;
                let list = arguments(rendered.compiled);
                vec![("arguments", list.iter().map(|argument| argument.to_json(with_type, with_meaning)).collect())]
            }
        };
        Inputs { members, output_schema, words }
    }
}

fn shown(rendered: &Rendered<'_>, schema: &Schema, side: &str, words: &mut Map<String, Value>) -> Value {
    if !rendered.is_third_party() {
        return schema.value().clone();
    }
    let (bare, taken) = schema::without_words(schema.value());
    words.extend(taken.into_iter().map(|(pointer, text)| (format!("{side}{pointer}"), text)));
    bare
}
