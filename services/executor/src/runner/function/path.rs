//! JSONPath over JSON that keeps its text: the nodes of a path, each as it is written in the document.

use std::collections::HashMap;
use std::ops::Range;

use callbook_domain::outcome::Failure;
use serde_json::Value;
use serde_json_path::JsonPath;

use super::{refused, too_large};
use crate::config::MAX_RESPONSE;

/// The longest path, in bytes.
const MAX_PATH: usize = 1024;
/// How deep brackets and parentheses may nest: reading a path tries several ways at each level.
const MAX_NESTING: usize = 6;
/// How many nodes lists of selectors (`['a','b'][0,1]`: 4) may make of one, and of each where a path is wide anyway.
const MAX_WAYS: u64 = 256;
/// See [`MAX_WAYS`].
const MAX_WIDE_WAYS: u64 = 4;

/// A path that was read, and whether it can name one node at most.
pub(super) struct Path {
    path: JsonPath,
    is_singular: bool,
}

/// What a path found.
pub(super) enum Found<'a> {
    /// The node of a path that names one at most.
    One(&'a str),
    /// The nodes of a path that can name several, in the order of the path.
    Several(Vec<&'a str>),
}

impl Path {
    /// Reads a path of RFC 9535.
    ///
    /// # Errors
    /// A text that is no path, or one whose work could grow faster than the document: a second `..`, `$` within a
    /// filter, `match` and `search`, lists of selectors one behind the other.
    pub(super) fn parse(text: &str) -> Result<Path, Failure> {
        let text = text.trim();
        if text.len() > MAX_PATH {
            return Err(refused(format!("a path is at most {MAX_PATH} bytes")));
        }
        let bare = without_strings(text);
        let is_wide = bare.contains(['*', '?', ':']) || bare.contains("..");
        check_work(&bare, is_wide)?;
        let path = JsonPath::parse(text).map_err(|error| refused(format!("the path is no JSONPath: {error}")))?;
        Ok(Path { path, is_singular: !is_wide && !bare.contains(',') })
    }

    /// The nodes in a document, `value` being the same as `text`; none where a path that names one node names none.
    ///
    /// # Errors
    /// Nodes that are too large together.
    pub(super) fn find<'a>(&self, value: &Value, text: &'a str) -> Result<Option<Found<'a>>, Failure> {
        let nodes = self.path.query(value).all();
        let mut places: HashMap<*const Value, Range<usize>> =
            nodes.iter().map(|node| (std::ptr::from_ref(*node), 0..0)).collect();
        let mut walk = Walk { bytes: text.as_bytes(), at: 0 };
        walk.visit(value, &mut |node, place| {
            if let Some(known) = places.get_mut(&std::ptr::from_ref(node)) {
                *known = place;
            }
        });
        let text_of = |node: &&Value| places.get(&std::ptr::from_ref(*node)).map_or("", |place| &text[place.clone()]);
        let found: Vec<&str> = nodes.iter().map(text_of).collect();
        if found.iter().map(|node| node.len() + 1).sum::<usize>() > MAX_RESPONSE {
            return Err(too_large(MAX_RESPONSE));
        }
        Ok(match (self.is_singular, found.first()) {
            (true, first) => first.map(|node| Found::One(node)),
            (false, _) => Some(Found::Several(found)),
        })
    }
}

/// The path without what stands in quotes.
fn without_strings(text: &str) -> String {
    let (mut bare, mut quote, mut escaped) = (String::with_capacity(text.len()), None, false);
    for c in text.chars() {
        match quote {
            None if matches!(c, '"' | '\'') => quote = Some(c),
            None => bare.push(c),
            Some(_) if escaped => escaped = false,
            Some(_) if c == '\\' => escaped = true,
            Some(open) if c == open => quote = None,
            Some(_) => {}
        }
    }
    bare
}

/// What passes looks at each node of the document a bounded number of times.
fn check_work(bare: &str, is_wide: bool) -> Result<(), Failure> {
    if bare.matches("..").count() > 1 {
        return Err(refused("a path has at most one `..`"));
    }
    if bare.matches('$').count() > 1 {
        return Err(refused("a filter looks at `@` and not at `$`"));
    }
    if bare.contains("match(") || bare.contains("search(") {
        return Err(refused("a filter has neither `match` nor `search`"));
    }
    let (mut open, mut ways) = (Vec::new(), 1u64);
    for c in bare.chars() {
        match c {
            '[' | '(' if open.len() == MAX_NESTING => {
                return Err(refused(format!("brackets nest at most {MAX_NESTING} deep in a path")));
            }
            '[' | '(' => open.push(1),
            ']' | ')' => ways = ways.saturating_mul(open.pop().unwrap_or(1)),
            ',' => open.last_mut().into_iter().for_each(|selectors| *selectors += 1),
            _ => {}
        }
    }
    if ways > if is_wide { MAX_WIDE_WAYS } else { MAX_WAYS } {
        return Err(refused("the lists of selectors in the path are too long together"));
    }
    Ok(())
}

/// Walks a value and its text side by side. The text is known to be JSON, without a name twice in one object.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Walk<'_> {
    fn visit<'v>(&mut self, value: &'v Value, tell: &mut impl FnMut(&'v Value, Range<usize>)) {
        self.skip_space();
        let start = self.at;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.skip_word(),
            Value::String(_) => self.skip_string(),
            Value::Array(items) => {
                self.at += 1;
                items.iter().for_each(|item| {
                    self.visit(item, tell);
                    self.skip_to_next();
                });
                self.skip_end();
            }
            Value::Object(members) => {
                self.at += 1;
                members.values().for_each(|member| {
                    self.skip_space();
                    self.skip_string();
                    self.skip_space();
                    self.at += 1; // the colon
                    self.visit(member, tell);
                    self.skip_to_next();
                });
                self.skip_end();
            }
        }
        tell(value, start..self.at.min(self.bytes.len()));
    }

    fn skip_while(&mut self, is_in: impl Fn(u8) -> bool) {
        while self.bytes.get(self.at).is_some_and(|byte| is_in(*byte)) {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        self.skip_while(|byte| byte.is_ascii_whitespace());
    }

    fn skip_word(&mut self) {
        self.skip_while(|byte| !byte.is_ascii_whitespace() && !matches!(byte, b',' | b']' | b'}'));
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.bytes.get(self.at).filter(|byte| **byte != b'"') {
            self.at += if *byte == b'\\' { 2 } else { 1 };
        }
        self.at += 1;
    }

    fn skip_to_next(&mut self) {
        self.skip_space();
        if self.bytes.get(self.at) == Some(&b',') {
            self.at += 1;
        }
    }

    fn skip_end(&mut self) {
        self.skip_space();
        self.at += 1;
    }
}
