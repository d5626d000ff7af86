//! Asks the watcher's rules about a call.

use std::sync::{Arc, Mutex, PoisonError};

use callbook_domain::arguments::{Argument, Bound, Sent};
use callbook_domain::canonical;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_store::fault::fault;
use serde_json::Value;

use super::rule::{Action, Rule, Rules, Verdict};
use crate::App;
use crate::store::watch::{self, Record};

/// The most bytes of arguments that patterns are asked about.
const MAX_INPUT: usize = 1024 * 1024;

/// The rules that were asked last, compiled. Which rules stand is asked of the database for each call: a rule holds on
/// every executor once it is acknowledged.
#[derive(Debug, Default)]
pub struct Watcher(Mutex<Option<(Vec<Record>, Arc<Rules>)>>);

impl Watcher {
    /// What the rules say to these arguments of this row, as they were sent and as the row takes them.
    ///
    /// # Errors
    /// Whatever keeps them from saying anything: no database, a rule that does not compile, arguments over 1 MiB.
    pub async fn verdict(&self, app: &App, key: &Key, sent: &Sent, bound: &Bound) -> Result<Verdict> {
        let stored = watch::rules(app.directory.pool()).await.map_err(fault)?;
        let rules = self.compiled(stored)?;
        if sent.bytes() > MAX_INPUT {
            return Err(broken("the arguments are larger than patterns are asked about"));
        }
        let (key, forms) = (key.to_string(), forms(sent, bound));
        // a pattern may take its time, and others' calls do not wait for it
        let asked = tokio::task::spawn_blocking(move || rules.verdict(&key, &forms)).await;
        asked.map_err(|error| broken(error.to_string()))
    }

    fn compiled(&self, stored: Vec<Record>) -> Result<Arc<Rules>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rules)) = &*held
            && *known == stored
        {
            return Ok(rules.clone());
        }
        let parsed: Vec<Rule> = stored.iter().cloned().map(rule).collect::<Result<_>>()?;
        let rules = Arc::new(Rules::compile(parsed).map_err(broken)?);
        *held = Some((stored, rules.clone()));
        Ok(rules)
    }
}

/// A stored rule.
///
/// # Errors
/// `internal` for an action that this build does not know.
pub(super) fn rule(record: Record) -> Result<Rule> {
    let Some(action) = Action::parse(&record.action) else {
        return Err(broken(format!("rule `{}`: unknown action `{}`", record.name, record.action)));
    };
    Ok(Rule {
        name: record.name,
        position: record.position,
        pattern_key: record.pattern_key,
        pattern_body: record.pattern_body,
        action,
        reason: record.reason,
    })
}

fn broken(why: impl Into<String>) -> Fault {
    Fault::new(Reason::Internal, why)
}

/// The ways in which the arguments can be read: as they were sent, and as the row takes them, without the escapes that
/// hide a word in JSON, in a piece of text that is JSON, or in JSON within a string.
fn forms(sent: &Sent, bound: &Bound) -> Vec<String> {
    let text = match sent {
        Sent::Nothing => String::new(),
        Sent::Body(body) => body.clone(),
        Sent::Args(raw) => raw.get().to_owned(),
        Sent::List(arguments) => Sent::list_text(arguments),
    };
    let plain = match sent {
        Sent::Nothing => String::new(),
        Sent::Body(_) => {
            let pieces = bound.positional.iter().flatten().map(Argument::as_text);
            pieces.map(without_escapes).collect::<Vec<_>>().join("|")
        }
        Sent::Args(_) | Sent::List(_) => without_escapes(&text),
    };
    let second = Some(plain).filter(|plain| *plain != text);
    [text].into_iter().chain(second).collect()
}

/// JSON in canonical form, also where it stands in a string of JSON; any other text as it is.
fn without_escapes(text: &str) -> String {
    let is_json = text.trim_start().starts_with(['{', '[', '"']);
    let value = is_json.then(|| serde_json::from_str(text).ok()).flatten();
    value.map_or_else(|| text.to_owned(), |value: Value| canonical::to_string(&opened(value)))
}

/// The value with every string that is an object or a list in its place.
fn opened(value: Value) -> Value {
    match value {
        Value::String(text) if text.trim_start().starts_with(['{', '[']) => match serde_json::from_str(&text) {
            Ok(inner) => opened(inner),
            Err(_) => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(opened).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, opened(value))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> Sent {
        Sent::Args(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn arguments_are_looked_at_as_sent_and_without_escapes() {
        let of = |sent| forms(&sent, &Bound::default());
        assert_eq!(of(Sent::Nothing), [""]);
        assert_eq!(of(raw(r#"{"a":1}"#)), [r#"{"a":1}"#]);
        assert_eq!(of(raw(r#"{ "a":"\u0064" }"#)), [r#"{ "a":"\u0064" }"#, r#"{"a":"d"}"#]);
        let nested = r#"{"a":"{\"op\":[\"\\u0064\"]}"}"#;
        assert_eq!(of(raw(nested)), [nested, r#"{"a":{"op":["d"]}}"#]);
    }

    #[test]
    fn pieces_of_text_are_looked_at_as_the_row_takes_them() {
        let of = |body: &str, pieces: &[&str]| {
            let positional = pieces.iter().map(|piece| Some(Argument::untyped(*piece))).collect();
            forms(&Sent::Body(body.into()), &Bound { positional, ..Bound::default() })
        };
        assert_eq!(of("a|b", &["a", "b"]), ["a|b"]);
        assert_eq!(of(r"a\|b", &["a|b"]), [r"a\|b", "a|b"]);
        let hidden = r#"{"op":"\u0064elete"}"#;
        let body = format!("7|{hidden}");
        assert_eq!(of(&body, &["7", hidden]), [&*body, r#"7|{"op":"delete"}"#]);
        assert_eq!(of(r#""\u0064""#, &[r#""\u0064""#]), [r#""\u0064""#, r#""d""#]);
    }
}
