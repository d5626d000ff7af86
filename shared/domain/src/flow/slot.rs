//! The places of an argument that a run fills.

use std::fmt;

use super::scan::Span;
use super::{FlowError, Name};

/// One argument: literal text and slots, in order. What a slot inserts is never read again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgTemplate {
    /// No two literals are neighbours, and none is empty.
    pub pieces: Vec<Piece>,
}

/// A piece of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text as it is passed on.
    Literal(String),
    /// A place to fill.
    Slot(Slot),
}

/// A place to fill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// `$N`: the flow's own argument, from 1.
    Argument(usize),
    /// `$N+`: the arguments from `N` to the last, joined with `|`.
    Rest(usize),
    /// `${name}`: the flow's own argument by name.
    Named(String),
    /// `$PREV`: what the part before gave.
    Prev,
    /// `$NAME`: what an earlier step gave.
    Binding(Name),
    /// `$NAME`, where the operator declared it as public configuration.
    Variable(Name),
}

impl Slot {
    /// Whether a step of the flow fills it, and not the call.
    pub fn is_of_a_step(&self) -> bool {
        match self {
            Slot::Prev | Slot::Binding(_) => true,
            Slot::Argument(_) | Slot::Rest(_) | Slot::Named(_) | Slot::Variable(_) => false,
        }
    }
}

/// As it is written.
impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Slot::Argument(n) => write!(f, "${n}"),
            Slot::Rest(n) => write!(f, "${n}+"),
            Slot::Named(name) => write!(f, "${{{name}}}"),
            Slot::Prev => f.write_str("$PREV"),
            Slot::Binding(name) | Slot::Variable(name) => write!(f, "${}", name.as_str()),
        }
    }
}

/// As it is written; `$` of the text itself stands doubled.
impl fmt::Display for ArgTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => f.write_str(&text.replace('$', "$$"))?,
                Piece::Slot(slot) => write!(f, "{slot}")?,
            }
        }
        Ok(())
    }
}

impl ArgTemplate {
    /// The slots, in order.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Slot(slot) => Some(slot),
            Piece::Literal(_) => None,
        })
    }

    /// Reads an argument. `unescape` takes the backslash off `\|` outside brackets, where a bare `|` would have cut.
    pub(super) fn read(span: Span<'_>, unescape: bool, scope: &Scope<'_>) -> Result<ArgTemplate, FlowError> {
        let mut template = ArgTemplate::default();
        let mut at = 0;
        while let Some(found) = span.text[at..].find('$') {
            template.literal(&span.text[at..at + found]);
            at += found;
            match dollar(span.from(at))? {
                Dollar::Literal(width) => {
                    template.literal("$");
                    at += width;
                }
                Dollar::Slot(slot, width) => {
                    template.pieces.push(Piece::Slot(scope.resolve(slot, span.range(at, at + width))?));
                    at += width;
                }
            }
        }
        template.literal(&span.text[at..]);
        if unescape {
            template.unescape();
        }
        Ok(template)
    }

    fn literal(&mut self, text: &str) {
        match self.pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(Piece::Literal(last)) => last.push_str(text),
            Some(Piece::Slot(_)) | None => self.pieces.push(Piece::Literal(text.to_owned())),
        }
    }

    fn unescape(&mut self) {
        let (mut depth, mut in_string) = (0usize, false);
        for piece in &mut self.pieces {
            let Piece::Literal(text) = piece else { continue };
            let mut plain = String::with_capacity(text.len());
            let mut chars = text.chars().peekable();
            while let Some(c) = chars.next() {
                match c {
                    '\\' if !in_string && depth == 0 && chars.peek() == Some(&'|') => continue,
                    '\\' if in_string => {
                        plain.push(c);
                        plain.extend(chars.next());
                        continue;
                    }
                    '"' => in_string = !in_string,
                    '[' | '{' if !in_string => depth += 1,
                    ']' | '}' if !in_string => depth = depth.saturating_sub(1),
                    _ => {}
                }
                plain.push(c);
            }
            *text = plain;
        }
    }
}

/// What a step may read at its place.
pub(super) struct Scope<'a> {
    /// The names that earlier parts have bound.
    pub(super) bound: &'a [Name],
    /// Whether a part stands before, so that `$PREV` is something.
    pub(super) has_prev: bool,
    /// The operator's public configuration.
    pub(super) is_variable: &'a dyn Fn(&str) -> bool,
}

impl Scope<'_> {
    fn resolve(&self, slot: Slot, span: Span<'_>) -> Result<Slot, FlowError> {
        match slot {
            Slot::Prev if !self.has_prev => span.fail("`$PREV` has no step before it"),
            Slot::Binding(name) | Slot::Variable(name) => {
                if self.bound.contains(&name) {
                    Ok(Slot::Binding(name))
                } else if (self.is_variable)(name.as_str()) {
                    Ok(Slot::Variable(name))
                } else {
                    let name = name.as_str();
                    span.fail(format!("`${name}` is bound by no earlier step; write `$${name}` for the text itself"))
                }
            }
            Slot::Prev | Slot::Argument(_) | Slot::Rest(_) | Slot::Named(_) => Ok(slot),
        }
    }

    /// Reads a span that is one slot and nothing else.
    pub(super) fn slot(&self, span: Span<'_>) -> Result<Slot, FlowError> {
        match span.text.starts_with('$').then(|| dollar(span)).transpose()? {
            Some(Dollar::Slot(slot, width)) if width == span.text.len() => self.resolve(slot, span),
            Some(_) | None => span.fail(format!("`{}` is no slot such as `$1`, `$PREV` or `$NAME`", span.shown())),
        }
    }
}

/// What a `$` begins, and how many bytes belong to it.
pub(super) enum Dollar {
    Literal(usize),
    Slot(Slot, usize),
}

/// Reads the `$` that the span begins with. Names reach as far as they can: `$PREVIEW` is not `$PREV`.
pub(super) fn dollar(span: Span<'_>) -> Result<Dollar, FlowError> {
    let rest = &span.text[1..];
    match rest.bytes().next() {
        Some(b'$') => Ok(Dollar::Literal(2)),
        Some(b'{') => named(span, rest),
        Some(b) if b.is_ascii_digit() => numbered(span, rest),
        Some(b) if b.is_ascii_alphabetic() || b == b'_' => {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
            match (&rest[..end], Name::parse(&rest[..end])) {
                ("PREV", _) => Ok(Dollar::Slot(Slot::Prev, 1 + end)),
                (_, Some(name)) => Ok(Dollar::Slot(Slot::Binding(name), 1 + end)),
                (_, None) => span.fail(format!("`{}` is too long a name", span.range(0, 1 + end).shown())),
            }
        }
        Some(_) | None => Ok(Dollar::Literal(1)),
    }
}

fn numbered(span: Span<'_>, rest: &str) -> Result<Dollar, FlowError> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let digits = &rest[..end];
    match digits.parse::<usize>() {
        Ok(n @ 1..=999) if !digits.starts_with('0') => match rest[end..].starts_with('+') {
            true => Ok(Dollar::Slot(Slot::Rest(n), 2 + end)),
            false => Ok(Dollar::Slot(Slot::Argument(n), 1 + end)),
        },
        Ok(_) | Err(_) => {
            let shown = span.range(1, 1 + end).shown();
            span.fail(format!(
                "`${shown}` is no argument, they are `$1` to `$999`; write `$${shown}` for the text itself"
            ))
        }
    }
}

fn named(span: Span<'_>, rest: &str) -> Result<Dollar, FlowError> {
    let Some(end) = rest.find('}') else { return span.fail("`${` is never closed") };
    let name = &rest[1..end];
    let is_plain = name.len() <= 128 && !name.contains(['$', '{', '"', '[', ']', '|', '>']) && name.trim() == name;
    if name.is_empty() || name.starts_with('+') || !is_plain {
        return span.fail(format!("`{}` names no argument", span.range(0, end + 2).shown()));
    }
    Ok(Dollar::Slot(Slot::Named(name.to_owned()), end + 2))
}
