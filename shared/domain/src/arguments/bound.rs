//! Arguments in their places.

use serde_json::value::RawValue;

use super::argument::Argument;
use super::pipe;
use crate::json;

/// The arguments of one call, by position and by name, checked against the row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bound {
    /// By position, `$1` first; an optional argument that was not given is absent.
    pub positional: Vec<Option<Argument>>,
    /// By name: the named positions in order, then what else the schema took.
    pub named: Vec<(String, Argument)>,
    /// `unknown_argument:<name>` for each property that the schema takes and nobody described.
    pub warnings: Vec<String>,
    /// Whether a schema decided what may be absent; without one every slot needs its argument.
    pub checked: bool,
}

impl Bound {
    /// The argument at `$N`.
    pub fn position(&self, n: usize) -> Option<&Argument> {
        self.positional.get(n.checked_sub(1)?)?.as_ref()
    }

    /// The argument of a name.
    pub fn name(&self, name: &str) -> Option<&Argument> {
        self.named.iter().find(|(known, _)| known == name).map(|(_, argument)| argument)
    }

    /// What `$N+` stands for: the argument at N where it is the last, else the texts from N on, joined with `|`.
    pub fn rest(&self, n: usize) -> Option<Argument> {
        let mut from_n = self.positional.iter().skip(n.max(1) - 1).flatten();
        let first = from_n.next()?;
        let mut others = from_n.peekable();
        if others.peek().is_none() {
            return Some(first.clone());
        }
        let texts = std::iter::once(first).chain(others).map(Argument::as_text);
        Some(Argument::untyped(pipe::join(texts)))
    }

    /// The arguments as one stable JSON text: an object where they have names, else a list. Equal sets of one row have
    /// equal texts, however they were sent; numbers and nested JSON keep theirs.
    ///
    /// It is what the idempotency hash covers and what is stored as the request.
    pub fn canonical_text(&self) -> String {
        let given = self.positional.iter().flatten().count();
        if given > self.named.len() {
            let items: Vec<_> = self.positional.iter().flatten().map(|argument| argument.exact()).collect();
            return format!("[{}]", items.join(","));
        }
        let (placed, others) = self.named.split_at(given);
        let mut others: Vec<&(String, Argument)> = others.iter().collect();
        others.sort_by(|a, b| a.0.cmp(&b.0));
        let members: Vec<String> = placed
            .iter()
            .chain(others)
            .map(|(name, argument)| format!("{}:{}", json::quote(name), argument.exact()))
            .collect();
        format!("{{{}}}", members.join(","))
    }

    /// [`Bound::canonical_text`] as JSON that keeps its text.
    pub fn canonical(&self) -> Box<RawValue> {
        RawValue::from_string(self.canonical_text()).expect("made of checked JSON texts and quoted names")
    }
}
