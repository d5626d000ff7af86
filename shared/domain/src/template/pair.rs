//! `name=value&…` with slots in the values: the query of a URL and a form body.

use std::borrow::Cow;

use super::scope::{Mark, Scope, push_text};
use super::slot::{Piece, Slot, slots};
use super::{BadTemplate, refused};
use crate::arguments::{Argument, Bound};
use crate::fault::{Fault, Result};
use crate::json::{self, JsonKind};
use crate::schema::ListStyle;

/// One pair. A pair without a slot stands in `name` whole, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    name: String,
    value: Vec<Piece>,
}

impl Pair {
    /// The slots of the value.
    pub(super) fn slots(&self) -> impl Iterator<Item = &Slot> {
        slots(&self.value)
    }
}

/// How a value is written where the pairs stand.
pub(super) type Encode = fn(&str) -> String;

/// Reads pairs from marks. `what` is `query` or `form`, for refusals.
pub(super) fn compile<'t>(
    marks: impl IntoIterator<Item = Mark<'t>>,
    scope: &Scope<'_>,
    what: &str,
) -> Result<Vec<Pair>, BadTemplate> {
    let mut pairs = vec![Reading::default()];
    for mark in marks {
        if let Mark::Text(text) = mark {
            for (i, part) in text.split('&').enumerate() {
                if i > 0 {
                    pairs.push(Reading::default());
                }
                pairs.last_mut().expect("it begins with one").text(part);
            }
            continue;
        }
        let pair = pairs.last_mut().expect("it begins with one");
        if !pair.in_value {
            return Err(BadTemplate::new(format!("{what} name"), "no slot may stand in a name")
                .fix("write the name itself and the slot as its value, as in `name=$1`"));
        }
        pair.value.extend(scope.slot(&mark, &format!("{what} value"))?.map(Piece::Slot));
    }
    pairs.into_iter().map(|pair| pair.finish(what)).collect()
}

#[derive(Default)]
struct Reading {
    name: String,
    value: Vec<Piece>,
    in_value: bool,
}

impl Reading {
    fn text(&mut self, part: &str) {
        if self.in_value {
            push_text(&mut self.value, part);
        } else if let Some((name, value)) = part.split_once('=') {
            self.name.push_str(name);
            self.in_value = true;
            push_text(&mut self.value, value);
        } else {
            self.name.push_str(part);
        }
    }

    fn finish(self, what: &str) -> Result<Pair, BadTemplate> {
        let mut name = self.name;
        if self.in_value {
            name.push('=');
        }
        let has_slot = slots(&self.value).next().is_some();
        for piece in &self.value {
            match piece {
                Piece::Literal(text) if !has_slot => name.push_str(text),
                Piece::Literal(text) if is_broken(text) => {
                    return Err(BadTemplate::new(format!("{what} value"), "`%` without two hexadecimal digits")
                        .fix("write `%25` for a percent sign"));
                }
                Piece::Literal(_) | Piece::Slot(_) => {}
            }
        }
        Ok(Pair { name, value: if has_slot { self.value } else { Vec::new() } })
    }
}

/// Whether a text has a `%` that begins no escape.
pub(super) fn is_broken(text: &str) -> bool {
    text.match_indices('%').any(|(at, _)| {
        let digits = text.as_bytes().get(at + 1..at + 3);
        digits.is_none_or(|digits| !digits.iter().all(u8::is_ascii_hexdigit))
    })
}

/// The pairs as text. A pair whose argument is absent or `null` is left out.
pub(super) fn fill(pairs: &[Pair], bound: &Bound, encode: Encode) -> Result<String> {
    let mut written = Vec::new();
    for pair in pairs {
        match pair.value.as_slice() {
            [] => written.push(pair.name.clone()),
            [Piece::Slot(slot)] => {
                if let Some(argument) = slot.argument(bound) {
                    let values = whole(slot, &argument, encode)?;
                    written.extend(values.iter().map(|value| format!("{}{value}", pair.name)));
                }
            }
            pieces => {
                if let Some(value) = mixed(pieces, bound, encode)? {
                    written.push(format!("{}{value}", pair.name));
                }
            }
        }
    }
    Ok(written.join("&"))
}

/// An argument that is the whole value: a list gives none, one or several.
fn whole(slot: &Slot, argument: &Argument, encode: Encode) -> Result<Vec<String>> {
    if argument.is_null() {
        return Ok(Vec::new());
    }
    let Some(items) = argument.items() else {
        return Ok(vec![encode(text(slot, argument)?)]);
    };
    let mut values = Vec::new();
    for item in &items {
        values.push(encode(text(slot, item)?));
    }
    let separator = match argument.list_style() {
        ListStyle::Repeated => return Ok(values),
        ListStyle::Commas => ",",
        ListStyle::Spaces => "%20",
        ListStyle::Pipes => "%7C",
    };
    Ok(if values.is_empty() { Vec::new() } else { vec![values.join(separator)] })
}

fn mixed(pieces: &[Piece], bound: &Bound, encode: Encode) -> Result<Option<String>> {
    let mut value = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => value.push_str(literal),
            Piece::Slot(slot) => match slot.argument(bound) {
                Some(argument) if !argument.is_null() => value.push_str(&encode(&flat(slot, &argument)?)),
                Some(_) | None => return Ok(None),
            },
        }
    }
    Ok(Some(value))
}

/// An argument in the middle of URL text: the items of a list with commas between them.
pub(super) fn flat<'a>(slot: &Slot, argument: &'a Argument) -> Result<Cow<'a, str>> {
    match argument.items() {
        None => text(slot, argument).map(Cow::Borrowed),
        Some(items) => {
            let texts: Result<Vec<&str>, Fault> = items.iter().map(|item| text(slot, item)).collect();
            Ok(Cow::Owned(texts?.join(",")))
        }
    }
}

/// The text of an argument or item; a list below a list has no spelling in a URL.
fn text<'a>(slot: &Slot, argument: &'a Argument) -> Result<&'a str> {
    let text = argument.as_text();
    if !argument.is_string() && json::kind(text) == JsonKind::Array {
        return Err(refused(slot, "nested_list", "a list inside a list cannot be written here"));
    }
    Ok(text)
}
