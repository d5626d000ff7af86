//! Reading slots: the marks in the text, and whether anything can fill them.

use super::slot::{Piece, Slot};
use super::{BadTemplate, PublicVariables};
use crate::arguments::Argument;

/// The highest position that a slot may name.
pub(crate) const MAX_POSITION: usize = 256;

/// What the slots of a template may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    /// The names of the positions.
    pub(crate) names: &'a [String],
    /// Whether `names` is all there is; without names any position can be filled.
    pub(crate) is_closed: bool,
    /// Public configuration.
    pub(crate) variables: &'a PublicVariables,
    /// How many positions stand in front of `$1`: one in an operation of a map.
    pub(crate) shift: usize,
}

/// A mark in a text, not yet looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark<'t> {
    /// Text as it goes out.
    Text(&'t str),
    /// `$N` or `$N+`; the last tells whether `.` and a digit follow, as in a price.
    Number { digits: &'t str, rest: bool, like_price: bool },
    /// `${name}` or `${+name}`.
    Braced { name: &'t str, spread: bool },
    /// `$NAME`.
    Word(&'t str),
}

impl<'a> Scope<'a> {
    /// The scope of a row's template.
    pub(crate) fn new(names: &'a [String], variables: &'a PublicVariables) -> Self {
        Scope { names, is_closed: !names.is_empty(), variables, shift: 0 }
    }

    /// The text's pieces. `place` is where the text stands, for refusals.
    pub(crate) fn pieces(&self, text: &str, place: &str) -> Result<Vec<Piece>, BadTemplate> {
        let mut pieces = Vec::new();
        for mark in marks(text, place)? {
            match self.slot(&mark, place)? {
                None => push_text(&mut pieces, mark.text()),
                Some(slot) => pieces.push(Piece::Slot(slot)),
            }
        }
        Ok(pieces)
    }

    /// The slot of a mark, or nothing where it is text.
    pub(crate) fn slot(&self, mark: &Mark<'_>, place: &str) -> Result<Option<Slot>, BadTemplate> {
        match mark {
            Mark::Text(_) => Ok(None),
            Mark::Number { digits, rest, like_price } => self.position(digits, *rest, *like_price, place).map(Some),
            Mark::Braced { name, spread } if self.names.iter().any(|known| known == name) => {
                let name = (*name).to_owned();
                Ok(Some(if *spread { Slot::Spread(name) } else { Slot::Name(name) }))
            }
            Mark::Braced { name, .. } => {
                Err(BadTemplate::new(place, format!("no argument is named `{}`", shown(name))).fix(match self.names {
                    [] => "name the arguments in ARGS or in the input schema".to_owned(),
                    names => format!("use one of: {}", names.join(", ")),
                }))
            }
            Mark::Word(name) => match self.variables.get(*name) {
                Some(value) => Ok(Some(Slot::Variable((*name).to_owned(), Argument::untyped(value.clone())))),
                None => Err(BadTemplate::new(place, format!("nothing can fill `${}`", shown(name))).fix(format!(
                    "write `$${}` for the text; a template reads arguments (`$1`, `${{name}}`) and public variables, \
                     never a secret",
                    shown(name)
                ))),
            },
        }
    }

    fn position(&self, digits: &str, rest: bool, like_price: bool, place: &str) -> Result<Slot, BadTemplate> {
        let n = digits.parse::<usize>().ok().filter(|n| (1..=MAX_POSITION).contains(n));
        match n {
            Some(n) if n <= self.names.len() || !(self.is_closed || like_price) => {
                let n = n + self.shift;
                return Ok(if rest { Slot::Rest(n) } else { Slot::Position(n) });
            }
            Some(_) | None => {}
        }
        let digits = shown(digits);
        let why = match n {
            None => format!("`${digits}` is no position; they are counted from 1 to {MAX_POSITION}"),
            Some(_) if self.is_closed => {
                format!("nothing can fill `${digits}`: the row names {} arguments", self.names.len())
            }
            Some(_) => format!("`${digits}` before `.` and a digit reads like a price, and no argument is named"),
        };
        let fix = if like_price {
            format!("write `$${digits}.00` for the text `${digits}.00`, or name the arguments in ARGS")
        } else {
            format!("name the argument in ARGS or in the input schema, or write `$${digits}` for the text")
        };
        Err(BadTemplate::new(place, why).fix(fix))
    }
}

impl Mark<'_> {
    fn text(&self) -> &str {
        match self {
            Mark::Text(text) => text,
            Mark::Number { .. } | Mark::Braced { .. } | Mark::Word(_) => "",
        }
    }
}

/// Cuts a text at its marks. `$$` and a `$` that begins no mark are text.
pub(crate) fn marks<'t>(text: &'t str, place: &str) -> Result<Vec<Mark<'t>>, BadTemplate> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            found.push(Mark::Text(&rest[..at]));
        }
        let (mark, length) = mark(&rest[at..], place)?;
        found.push(mark);
        rest = &rest[at + length..];
    }
    if !rest.is_empty() {
        found.push(Mark::Text(rest));
    }
    Ok(found)
}

/// The mark at the `$` that the text begins with, and its length.
pub(crate) fn mark<'t>(text: &'t str, place: &str) -> Result<(Mark<'t>, usize), BadTemplate> {
    let after = &text[1..];
    match after.bytes().next() {
        Some(b'$') => Ok((Mark::Text(&text[..1]), 2)),
        Some(b'0'..=b'9') => {
            let length = after.bytes().take_while(u8::is_ascii_digit).count();
            let digits = &after[..length];
            let rest = after[length..].starts_with('+');
            let mut next = after[length..].bytes();
            let like_price = next.next() == Some(b'.') && next.next().is_some_and(|byte| byte.is_ascii_digit());
            Ok((Mark::Number { digits, rest, like_price }, 1 + length + usize::from(rest)))
        }
        Some(b'A'..=b'Z' | b'a'..=b'z' | b'_') => {
            let length = after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
            Ok((Mark::Word(&after[..length]), 1 + length))
        }
        Some(b'{') => {
            let end = after.find('}').ok_or_else(|| {
                BadTemplate::new(place, "`${` is not closed").fix("write `${name}`, or `$${` for the text")
            })?;
            let (spread, name) = match after[1..end].strip_prefix('+') {
                Some(name) => (true, name),
                None => (false, &after[1..end]),
            };
            Ok((Mark::Braced { name, spread }, 1 + end + 1))
        }
        Some(_) | None => Ok((Mark::Text(&text[..1]), 1)),
    }
}

/// Appends text, to the last piece where that is text too.
pub(crate) fn push_text(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        Some(Piece::Literal(last)) => last.push_str(text),
        Some(Piece::Slot(_)) | None if !text.is_empty() => pieces.push(Piece::Literal(text.to_owned())),
        Some(Piece::Slot(_)) | None => {}
    }
}

/// A template's word cut to what an answer may repeat.
pub(crate) fn shown(text: &str) -> String {
    text.chars().take(64).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}
