//! Cutting text at separators that stand outside brackets and quotes.

use super::{FlowError, MAX_NESTING};

/// A piece of the flow's text that knows where it stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
}

/// What ends a piece.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Cut {
    /// `>`, but not that of `=>`.
    Part,
    /// `|`, but not `\|`.
    Pipe,
    /// `=>`.
    Bind,
    /// `,`.
    Comma,
}

impl Cut {
    fn width(self) -> usize {
        if self == Cut::Bind { 2 } else { 1 }
    }

    fn is_at(self, bytes: &[u8], at: usize) -> bool {
        let before = at.checked_sub(1).map(|before| bytes[before]);
        match self {
            Cut::Part => bytes[at] == b'>' && before != Some(b'='),
            Cut::Pipe => bytes[at] == b'|' && before != Some(b'\\'),
            Cut::Bind => bytes[at] == b'=' && bytes.get(at + 1) == Some(&b'>'),
            Cut::Comma => bytes[at] == b',',
        }
    }
}

impl<'a> Span<'a> {
    pub(super) fn range(self, from: usize, to: usize) -> Span<'a> {
        Span { text: &self.text[from..to], at: self.at + from }
    }

    pub(super) fn from(self, from: usize) -> Span<'a> {
        self.range(from, self.text.len())
    }

    pub(super) fn trim(self) -> Span<'a> {
        let start = self.text.len() - self.text.trim_start().len();
        Span { text: self.text.trim(), at: self.at + start }
    }

    pub(super) fn is_empty(self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn fail<T>(self, message: impl Into<String>) -> Result<T, FlowError> {
        Err(FlowError { at: self.at, message: message.into() })
    }

    /// The words that a message may repeat.
    pub(super) fn shown(self) -> String {
        let mut words: String = self.text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect();
        if words.len() < self.text.len() {
            words.push('…');
        }
        words
    }

    /// The pieces between the cuts at the top level.
    pub(super) fn split(self, cut: Cut) -> Result<Vec<Span<'a>>, FlowError> {
        let mut pieces = Vec::new();
        let mut start = 0;
        self.top_level(|at| {
            if cut.is_at(self.text.as_bytes(), at) {
                pieces.push(self.range(start, at));
                start = at + cut.width();
            }
            true
        })?;
        pieces.push(self.from(start));
        Ok(pieces)
    }

    /// The length of the bracketed text that the span begins with, brackets included.
    pub(super) fn bracketed(self) -> Result<usize, FlowError> {
        let mut end = self.text.len();
        self.top_level(|at| {
            if at > 0 {
                end = at;
            }
            at == 0
        })?;
        Ok(end)
    }

    /// Visits each byte that stands outside brackets and quotes, opening ones included and closing ones not, until
    /// the visitor says stop. Quotes know `\"`; brackets must match. Without recursion, so that depth costs no stack.
    fn top_level(self, mut visit: impl FnMut(usize) -> bool) -> Result<(), FlowError> {
        let bytes = self.text.as_bytes();
        let mut open: Vec<(u8, usize)> = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let closes = open.last().is_some_and(|(closer, _)| *closer == bytes[at]);
            if open.is_empty() && !visit(at) {
                return Ok(());
            }
            match bytes[at] {
                b'"' => at = self.string_end(at)?,
                b'[' => open.push((b']', at)),
                b'{' => open.push((b'}', at)),
                b']' | b'}' if closes => drop(open.pop()),
                b']' | b'}' => {
                    return self.from(at).fail(format!("`{}` closes nothing", char::from(bytes[at])));
                }
                _ => {}
            }
            if open.len() > MAX_NESTING {
                return self.from(at).fail(format!("brackets nest deeper than {MAX_NESTING}"));
            }
            at += 1;
        }
        match open.pop() {
            Some((_, at)) => self.from(at).fail(format!("`{}` is never closed", char::from(bytes[at]))),
            None => Ok(()),
        }
    }

    /// Where the string that opens at `start` has its closing quote.
    fn string_end(self, start: usize) -> Result<usize, FlowError> {
        let bytes = self.text.as_bytes();
        let mut at = start + 1;
        while at < bytes.len() {
            match bytes[at] {
                b'"' => return Ok(at),
                b'\\' => at += 2,
                _ => at += 1,
            }
        }
        self.from(start).fail("`\"` is never closed")
    }
}
