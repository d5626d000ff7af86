//! Reading a JSON object member by member. A member that nobody asked for is refused at the end.

use serde_json::{Map, Value};

use super::invalid;
use crate::fault::{Fault, Reason, Result};

/// The largest whole number that every reader of JSON holds exactly.
pub(super) const MAX_WHOLE: u64 = (1 << 53) - 1;
/// The longest name, in bytes.
const MAX_NAME: usize = 256;

/// An object that is being read; `path` is in front of its members' names, such as `cap.`.
pub(super) struct Fields {
    path: &'static str,
    members: Map<String, Value>,
}

impl Fields {
    /// The members of an object.
    pub(super) fn new(path: &'static str, value: Value) -> Result<Fields> {
        match value {
            Value::Object(members) => Ok(Fields { path, members }),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Err(invalid(path.trim_end_matches('.'), "must be an object"))
            }
        }
    }

    /// A member that may be absent. `null` is not absence.
    pub(super) fn optional(&mut self, name: &str) -> Option<Value> {
        self.members.remove(name)
    }

    /// A member that must be there.
    pub(super) fn required(&mut self, name: &str) -> Result<Value> {
        self.optional(name).ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// A string that must be there, not empty, of at most 256 bytes and without control characters.
    pub(super) fn name(&mut self, name: &str) -> Result<String> {
        match self.required(name)? {
            Value::String(text) if is_name(&text) => Ok(text),
            _ => Err(self.wrong(name, "must be a short text")),
        }
    }

    /// A value that must be there, read from its text.
    pub(super) fn text<T>(&mut self, name: &str, parse: fn(&str) -> Option<T>) -> Result<T> {
        self.optional_text(name, parse)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// A whole number that must be there, written as one: no fraction, no exponent, no sign.
    pub(super) fn whole(&mut self, name: &str) -> Result<u64> {
        self.optional_whole(name)?.ok_or_else(|| self.wrong(name, "is missing"))
    }

    /// A whole number that may be absent.
    pub(super) fn optional_whole(&mut self, name: &str) -> Result<Option<u64>> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        match value.as_u64().filter(|number| *number <= MAX_WHOLE) {
            Some(number) => Ok(Some(number)),
            None => Err(self.wrong(name, "must be a whole number")),
        }
    }

    /// `true` or `false`; absent is `false`.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool> {
        match self.optional(name) {
            None => Ok(false),
            Some(value) => value.as_bool().ok_or_else(|| self.wrong(name, "must be true or false")),
        }
    }

    /// A value that may be absent, read from its text.
    pub(super) fn optional_text<T>(&mut self, name: &str, parse: fn(&str) -> Option<T>) -> Result<Option<T>> {
        let Some(value) = self.optional(name) else { return Ok(None) };
        value.as_str().and_then(parse).map(Some).ok_or_else(|| self.wrong(name, "is not of its form"))
    }

    /// Refuses what is left.
    pub(super) fn finish(self) -> Result<()> {
        let Some((name, _)) = self.members.into_iter().next() else { return Ok(()) };
        let name: String = name.chars().filter(|c| !c.is_control()).take(64).collect();
        let name = format!("{}{name}", self.path);
        Err(Fault::new(Reason::ClaimsUnknown, format!("the claim `{name}` is not known here")).with("claim", name))
    }

    /// The fault of a member.
    pub(super) fn wrong(&self, name: &str, rule: &str) -> Fault {
        invalid(&format!("{}{name}", self.path), rule)
    }
}

/// Whether a text can name an issuer, a subject or an audience.
pub(super) fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && !text.chars().any(char::is_control)
}
