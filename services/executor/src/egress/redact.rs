//! Takes secrets out of texts by their values, before anything is stored, logged or returned.

use std::borrow::Cow;
use std::fmt;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use secrecy::{ExposeSecret, SecretString};

use super::disguise::{Escape, Pattern, View, is_base64, patterns};

/// A shorter value would take ordinary words out of every text.
const MIN_SECRET: usize = 4;
/// How many layers of escapes are looked through.
const MAX_LAYERS: usize = 3;

/// Finds a set of secrets. Making one costs milliseconds and a few kilobytes for each secret; it is worth keeping until
/// a value changes. Sharing and cloning are cheap.
#[derive(Clone)]
pub struct Redactor {
    search: AhoCorasick,
    patterns: Vec<(usize, Pattern)>,
    names: Vec<String>,
    /// Whether a secret holds a space, which a form writes as `+`.
    spaces: bool,
}

/// A part of a text that goes away, and the pattern that says whose name takes its place.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    name: usize,
}

impl Redactor {
    /// A redactor of these values, each with its name. A value below 4 bytes is not looked for.
    pub fn new(values: &[(String, SecretString)]) -> Self {
        let mut all = Redactor {
            search: build(&[]),
            patterns: Vec::new(),
            names: values.iter().map(|(name, _)| name.clone()).collect(),
            spaces: false,
        };
        for (index, (_, value)) in values.iter().enumerate() {
            let secret = value.expose_secret().as_bytes();
            if secret.len() >= MIN_SECRET {
                all.patterns.extend(patterns(secret).into_iter().map(|pattern| (index, pattern)));
                all.spaces |= secret.contains(&b' ');
            }
        }
        all.search = build(&all.patterns);
        all
    }

    /// The text with every secret replaced by `[redacted:NAME]`; borrowed when it holds none.
    pub fn redact<'a>(&self, text: &'a [u8]) -> Cow<'a, [u8]> {
        self.replaced(text, self.spans(text))
    }

    /// Whether a text that lost its case, such as a media type, holds a secret.
    pub fn finds_in_any_case(&self, text: &str) -> bool {
        let text = text.as_bytes();
        let holds = |wanted: &[u8]| text.windows(wanted.len()).any(|part| part.eq_ignore_ascii_case(wanted));
        self.patterns.iter().any(|(_, pattern)| holds(&pattern.bytes))
    }

    fn spans(&self, text: &[u8]) -> Vec<Span> {
        let mut spans = Vec::new();
        if !self.patterns.is_empty() {
            self.find(text, &mut spans);
            self.look_through(text, MAX_LAYERS, &mut spans);
        }
        spans
    }

    fn replaced<'a>(&self, text: &'a [u8], spans: Vec<Span>) -> Cow<'a, [u8]> {
        if spans.is_empty() {
            return Cow::Borrowed(text);
        }
        let mut out = Vec::with_capacity(text.len());
        let mut copied = 0;
        for span in merged(spans) {
            out.extend_from_slice(&text[copied..span.start]);
            out.extend_from_slice(format!("[redacted:{}]", self.names[span.name]).as_bytes());
            copied = span.end;
        }
        out.extend_from_slice(&text[copied..]);
        Cow::Owned(out)
    }

    /// The same for a string.
    pub fn redact_str<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(match String::from_utf8(bytes) {
                Ok(text) => text,
                Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
            }),
        }
    }

    /// Adds what is found in a text as it stands.
    fn find(&self, text: &[u8], spans: &mut Vec<Span>) {
        for found in self.search.find_overlapping_iter(text) {
            let (name, pattern) = &self.patterns[found.pattern().as_usize()];
            let (mut start, mut end) = (found.start(), found.end());
            if pattern.left && start > 0 && is_base64(text[start - 1]) {
                start -= 1;
            }
            if pattern.right && text.get(end).copied().is_some_and(is_base64) {
                end += 1;
            }
            push(spans, Span { start, end, name: *name });
        }
    }

    /// Adds what is found under one layer of escapes or several, in places of the text itself.
    fn look_through(&self, text: &[u8], layers: usize, spans: &mut Vec<Span>) {
        if layers == 0 {
            return;
        }
        for escape in [Escape::Percent, Escape::Form, Escape::Backslash] {
            if escape == Escape::Form && !self.spaces {
                continue;
            }
            let Some(view) = View::of(text, escape) else { continue };
            let mut found = Vec::new();
            self.find(&view.bytes, &mut found);
            self.look_through(&view.bytes, layers - 1, &mut found);
            for span in found {
                let (start, end) = view.source(span.start, span.end);
                push(spans, Span { start, end, ..span });
            }
        }
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Redactor").field("names", &self.names).finish_non_exhaustive()
    }
}

fn build(patterns: &[(usize, Pattern)]) -> AhoCorasick {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .build(patterns.iter().map(|(_, pattern)| &pattern.bytes))
        .expect("secrets are too small to exhaust the 2^31 states of an automaton")
}

/// Adds a span; grows the last one instead when they meet and have one name, so that a text made of nothing but hits
/// costs no memory.
fn push(spans: &mut Vec<Span>, span: Span) {
    match spans.last_mut() {
        Some(last) if last.name == span.name && span.start <= last.end && last.start <= span.end => {
            (last.start, last.end) = (last.start.min(span.start), last.end.max(span.end));
        }
        _ => spans.push(span),
    }
}

/// Spans in order, none overlapping another. Of several that overlap the longest gives its name.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, span.end));
    let mut out: Vec<(Span, usize)> = Vec::new();
    for span in spans {
        let length = span.end - span.start;
        match out.last_mut() {
            Some((last, longest)) if span.start < last.end => {
                last.end = last.end.max(span.end);
                if length > *longest {
                    (last.name, *longest) = (span.name, length);
                }
            }
            _ => out.push((span, length)),
        }
    }
    out.into_iter().map(|(span, _)| span).collect()
}
