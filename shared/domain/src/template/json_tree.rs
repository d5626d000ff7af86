//! JSON with slots in strings and as values, as a tree. Filling writes each argument where it belongs, so the result
//! has the template's shape whatever the arguments are.

use std::collections::HashSet;

use super::scope::{Mark, Scope, mark, marks, shown};
use super::slot::{Piece, Slot, slots};
use super::{BadTemplate, refused};
use crate::arguments::{Bound, missing};
use crate::fault::Result;
use crate::json;

/// The deepest template.
const MAX_DEPTH: usize = 64;

/// A part of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Node {
    /// JSON text without a slot.
    Literal(String),
    /// A string; its literals are JSON-escaped already.
    Text(Vec<Piece>),
    /// An argument as a value.
    Value(Slot),
    /// Members: the name as JSON text, and the value.
    Object(Vec<(String, Node)>),
    /// Items.
    Array(Vec<Node>),
}

/// Reads a whole text as one JSON document with slots.
pub(super) fn compile(text: &str, scope: &Scope<'_>) -> Result<Node, BadTemplate> {
    let mut reader = Reader { text, at: 0, depth: 0, scope };
    let node = reader.value()?;
    reader.space();
    if reader.at < text.len() { Err(reader.wrong("the end")) } else { Ok(node) }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    scope: &'t Scope<'t>,
}

impl<'t> Reader<'t> {
    fn value(&mut self) -> Result<Node, BadTemplate> {
        match self.peek() {
            Some(b'{') => self.nested(Reader::object),
            Some(b'[') => self.nested(Reader::array),
            Some(b'"') => self.string(),
            Some(b'$') => {
                let (mark, length) = mark(&self.text[self.at..], "JSON value")?;
                let slot = self.scope.slot(&mark, "JSON value")?.ok_or_else(|| self.wrong("a value"))?;
                self.at += length;
                Ok(Node::Value(slot))
            }
            Some(_) | None => self.literal(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Node, BadTemplate>) -> Result<Node, BadTemplate> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(BadTemplate::new("body", format!("it nests deeper than {MAX_DEPTH}")));
        }
        self.at += 1;
        let node = read(self)?;
        self.depth -= 1;
        Ok(node)
    }

    fn object(&mut self) -> Result<Node, BadTemplate> {
        let mut members = Vec::new();
        let mut names = HashSet::new();
        if self.take(b'}') {
            return Ok(Node::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return Err(match self.peek() {
                    Some(b'$') => no_slot_in_name(),
                    Some(_) | None => self.wrong("a name in quotes"),
                });
            }
            let raw = self.raw_string()?;
            let name = plain_name(raw)?;
            let text = json::unescape(&name).map_err(|_| self.wrong("a name"))?;
            if !names.insert(text) {
                return Err(BadTemplate::new("JSON key", format!("the name {} stands twice", shown(&name))));
            }
            if !self.take(b':') {
                return Err(self.wrong("`:`"));
            }
            members.push((name, self.value()?));
            if self.take(b'}') {
                return Ok(Node::Object(members));
            }
            if !self.take(b',') {
                return Err(self.wrong("`,` or `}`"));
            }
        }
    }

    fn array(&mut self) -> Result<Node, BadTemplate> {
        let mut items = Vec::new();
        if self.take(b']') {
            return Ok(Node::Array(items));
        }
        loop {
            items.push(self.value()?);
            if self.take(b']') {
                return Ok(Node::Array(items));
            }
            if !self.take(b',') {
                return Err(self.wrong("`,` or `]`"));
            }
        }
    }

    fn string(&mut self) -> Result<Node, BadTemplate> {
        let raw = self.raw_string()?;
        let pieces = self.scope.pieces(raw, "JSON string")?;
        for piece in &pieces {
            match piece {
                // Each by itself, so that no escape is half in the template and half in an argument.
                Piece::Literal(text) if json::unescape(&format!("\"{text}\"")).is_err() => {
                    return Err(self.wrong("a string without broken escapes"));
                }
                Piece::Literal(_) | Piece::Slot(_) => {}
            }
        }
        Ok(Node::Text(pieces))
    }

    /// The text between the quotes.
    fn raw_string(&mut self) -> Result<&'t str, BadTemplate> {
        let text = self.text;
        let start = self.at + 1;
        let bytes = text.as_bytes();
        let mut end = start;
        while end < bytes.len() && bytes[end] != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        if end >= bytes.len() {
            return Err(self.wrong("a string that is closed"));
        }
        self.at = end + 1;
        Ok(&text[start..end])
    }

    fn literal(&mut self) -> Result<Node, BadTemplate> {
        let rest = &self.text[self.at..];
        let end =
            rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))).unwrap_or(rest.len());
        let word = &rest[..end];
        if word.is_empty() || json::check(word).is_err() {
            return Err(self.wrong("a value"));
        }
        self.at += end;
        Ok(Node::Literal(word.to_owned()))
    }

    fn space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn peek(&mut self) -> Option<u8> {
        self.space();
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is_it = self.peek() == Some(byte);
        self.at += usize::from(is_it);
        is_it
    }

    fn wrong(&self, expected: &str) -> BadTemplate {
        let near: String = self.text[self.at..].chars().take(20).collect();
        let found = if near.is_empty() { "the end".to_owned() } else { format!("`{}`", shown(&near)) };
        BadTemplate::new("body", format!("not JSON at byte {}: expected {expected}, found {found}", self.at))
    }
}

/// A member's name as JSON text. `$$` stands for `$`.
fn plain_name(raw: &str) -> Result<String, BadTemplate> {
    let mut name = String::from("\"");
    for mark in marks(raw, "JSON key")? {
        match mark {
            Mark::Text(text) => name.push_str(text),
            Mark::Number { .. } | Mark::Braced { .. } | Mark::Word(_) => return Err(no_slot_in_name()),
        }
    }
    name.push('"');
    Ok(name)
}

fn no_slot_in_name() -> BadTemplate {
    BadTemplate::new("JSON key", "no slot may stand in a name")
        .fix("write the name itself; `$$` stands for a `$` in it")
}

impl Node {
    /// The slot that is the whole node, where there is one.
    fn only_slot(&self) -> Option<&Slot> {
        match self {
            Node::Value(slot) => Some(slot),
            Node::Text(pieces) => match pieces.as_slice() {
                [Piece::Slot(slot)] => Some(slot),
                [] | [Piece::Literal(_)] | [_, _, ..] => None,
            },
            Node::Literal(_) | Node::Object(_) | Node::Array(_) => None,
        }
    }

    /// Whether the node is one slot whose argument was not given.
    pub(super) fn is_absent(&self, bound: &Bound) -> bool {
        self.only_slot().is_some_and(|slot| slot.argument(bound).is_none())
    }

    /// Appends the node as JSON text. A member whose argument was not given is left out.
    ///
    /// # Errors
    /// `missing_argument` where leaving out is not possible, `argument_refused` for text that is JSON and is not taken.
    pub(super) fn write(&self, bound: &Bound, out: &mut String) -> Result<()> {
        match self {
            Node::Literal(text) => out.push_str(text),
            Node::Text(pieces) => write_string(pieces, bound, out)?,
            Node::Value(slot) => {
                let argument = slot.argument(bound).ok_or_else(|| missing(&slot.label(), None))?;
                let text = argument.value_text().map_err(|problem| {
                    refused(slot, problem.rule(), format!("the argument is not taken as JSON: {problem}"))
                })?;
                out.push_str(&text);
            }
            Node::Object(members) => {
                out.push('{');
                let present = members.iter().filter(|(_, node)| !node.is_absent(bound));
                for (i, (name, node)) in present.enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    out.push_str(name);
                    out.push(':');
                    node.write(bound, out)?;
                }
                out.push('}');
            }
            Node::Array(items) => {
                out.push('[');
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        out.push(',');
                    }
                    item.write(bound, out)?;
                }
                out.push(']');
            }
        }
        Ok(())
    }

    /// Collects the slots below the node.
    pub(super) fn slots<'a>(&'a self, found: &mut Vec<&'a Slot>) {
        match self {
            Node::Literal(_) => {}
            Node::Text(pieces) => found.extend(slots(pieces)),
            Node::Value(slot) => found.push(slot),
            Node::Object(members) => members.iter().for_each(|(_, node)| node.slots(found)),
            Node::Array(items) => items.iter().for_each(|item| item.slots(found)),
        }
    }
}

fn write_string(pieces: &[Piece], bound: &Bound, out: &mut String) -> Result<()> {
    out.push('"');
    for piece in pieces {
        match piece {
            Piece::Literal(text) => out.push_str(text),
            Piece::Slot(slot) => {
                let argument = slot.argument(bound).ok_or_else(|| missing(&slot.label(), None))?;
                out.push_str(&json::escape(argument.as_text()));
            }
        }
    }
    out.push('"');
    Ok(())
}
