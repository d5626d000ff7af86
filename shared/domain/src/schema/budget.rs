//! How much work a check is. References can make a small schema and a small value cost exponential time; the number of
//! steps can be counted beforehand in time that is not, because each pair of subschema and value is counted once.

use std::collections::HashMap;

use serde_json::Value;

use super::locate;
use crate::fault::{Fault, Reason, Result};

/// Steps that one check may take.
const MAX_STEPS: u64 = 10_000_000;
/// Pairs of subschema and value that are looked at before the check is refused unseen.
const MAX_PAIRS: usize = 1_000_000;
/// How deep subschemas may call each other, over all levels of the value: the validator's stack grows with it.
const MAX_CALLS: usize = 500;

/// Refuses a value whose check would take too long or too much stack.
pub(super) fn check(document: &Value, value: &Value) -> Result<()> {
    let mut count = Count { document, known: HashMap::new(), judges: HashMap::new(), calls: 0 };
    if count.steps(document, value) <= MAX_STEPS {
        return Ok(());
    }
    Err(Fault::new(Reason::ArgsInvalid, "the value is too large or too deeply nested for this recursive schema")
        .detail(":$ref")
        .with("pointer", "")
        .with("keyword", "$ref")
        .with("expected", "a smaller value"))
}

struct Count<'a> {
    document: &'a Value,
    known: HashMap<(*const Value, *const Value), u64>,
    judges: HashMap<*const Value, Vec<&'a Value>>,
    calls: usize,
}

impl<'a> Count<'a> {
    fn steps(&mut self, schema: &'a Value, value: &Value) -> u64 {
        // One step more than is taken stands for all that is too much.
        const TOO_MANY: u64 = MAX_STEPS + 1;
        let has_parts = value.is_object() || value.is_array();
        let part = if has_parts { std::ptr::from_ref(value) } else { std::ptr::null() };
        let pair = (std::ptr::from_ref(schema), part);
        if let Some(steps) = self.known.get(&pair) {
            return *steps;
        }
        if self.known.len() >= MAX_PAIRS || self.calls >= MAX_CALLS {
            return TOO_MANY;
        }
        // A schema that meets itself at the same value ends there, as it does in the validator.
        self.known.insert(pair, 1);
        self.calls += 1;
        let mut total: u64 = 1;
        let document = self.document;
        let judges = self.judges.entry(pair.0).or_insert_with(|| locate::in_place(document, schema)).clone();
        for judge in judges {
            total = total.saturating_add(self.steps(judge, value)).min(TOO_MANY);
        }
        for (child_schema, child) in children(schema, value) {
            total = total.saturating_add(self.steps(child_schema, child)).min(TOO_MANY);
        }
        self.calls -= 1;
        self.known.insert(pair, total);
        total
    }
}

/// Every part of the value with a subschema that judges it.
fn children<'s, 'v>(schema: &'s Value, value: &'v Value) -> Vec<(&'s Value, &'v Value)> {
    let mut found = Vec::new();
    let mut every = |keyword: &str, parts: &mut dyn Iterator<Item = &'v Value>| {
        if let Some(rule) = schema.get(keyword) {
            found.extend(parts.map(|part| (rule, part)));
        }
    };
    match value {
        Value::Object(members) => {
            every("additionalProperties", &mut members.values());
            every("unevaluatedProperties", &mut members.values());
            let by_name = schema.get("properties").and_then(Value::as_object);
            found.extend(members.iter().filter_map(|(name, part)| Some((by_name?.get(name)?, part))));
            for rule in schema.get("patternProperties").and_then(Value::as_object).into_iter().flat_map(|m| m.values())
            {
                found.extend(members.values().map(|part| (rule, part)));
            }
        }
        Value::Array(items) => {
            every("items", &mut items.iter());
            every("contains", &mut items.iter());
            every("unevaluatedItems", &mut items.iter());
            let by_place = schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten();
            found.extend(by_place.zip(items));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    found
}
