//! The URL of a request: origin fixed, slots in the path and in query values.

use percent_encoding::{AsciiSet, CONTROLS, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use url::{Position, Url};

use super::pair::{self, Pair};
use super::scope::{Mark, Scope, marks, push_text};
use super::slot::{Piece, Slot, slots};
use super::{BadTemplate, refused};
use crate::arguments::{Bound, missing};
use crate::fault::{Fault, Reason, Result};

/// The longest finished URL, in bytes.
const MAX_URL: usize = 16 * 1024;

/// Everything but `A-Z a-z 0-9 - . _ ~`.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// What a path's own text may not hold as it is. `%` may: the text may be encoded already.
const PATH_TEXT: &AsciiSet =
    &CONTROLS.add(b' ').add(b'"').add(b'<').add(b'>').add(b'`').add(b'{').add(b'}').add(b'^').add(b'\\').add(b'|');

/// A URL with slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlTemplate {
    /// `https://api.example.com`, in the URL standard's spelling.
    origin: String,
    segments: Vec<Vec<Piece>>,
    query: Option<Vec<Pair>>,
}

impl UrlTemplate {
    /// Reads an absolute `http` or `https` URL.
    pub(crate) fn compile(text: &str, scope: &Scope<'_>) -> Result<UrlTemplate, BadTemplate> {
        let (origin, rest) = origin(text)?;
        let mut path = Vec::new();
        let mut query: Option<Vec<Mark<'_>>> = None;
        for mark in marks(rest, "URL")? {
            match (&mut query, mark) {
                (Some(query), mark) => query.push(mark),
                (None, Mark::Text(text)) => match text.split_once('?') {
                    None => path.push(mark),
                    Some((before, after)) => {
                        path.push(Mark::Text(before));
                        query = Some(vec![Mark::Text(after)]);
                    }
                },
                (None, mark) => path.push(mark),
            }
        }
        for mark in path.iter().chain(query.iter().flatten()) {
            refuse_characters(mark)?;
        }
        let template = UrlTemplate {
            origin,
            segments: segments(path, scope)?,
            query: query.map(|marks| pair::compile(marks, scope, "query")).transpose()?,
        };
        template.refuse_dots()?;
        Ok(template)
    }

    /// Where requests go: scheme, host, and port where it is not the scheme's own.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// The slots of path and query.
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        let values = self.query.iter().flatten().flat_map(Pair::slots);
        self.segments.iter().flat_map(|pieces| slots(pieces)).chain(values)
    }

    /// The URL for a call's arguments.
    ///
    /// # Errors
    /// `argument_refused:<slot>:<rule>` for an argument that would change the path's shape, `missing_argument`,
    /// `request_too_large`.
    pub fn fill(&self, bound: &Bound) -> Result<Url> {
        let mut path = String::new();
        for pieces in &self.segments {
            path.push('/');
            path.push_str(&fill_segment(pieces, bound)?);
        }
        let mut text = format!("{}{path}", self.origin);
        if let Some(pairs) = &self.query {
            let query = pair::fill(pairs, bound, |value| utf8_percent_encode(value, VALUE).to_string())?;
            if !query.is_empty() {
                text.push('?');
                text.push_str(&query);
            }
        }
        if text.len() > MAX_URL {
            let message = format!("the URL is {} bytes, more than {MAX_URL}", text.len());
            return Err(Fault::new(Reason::RequestTooLarge, message));
        }
        // What we wrote is what a reader of URLs must read: the same origin, the same path.
        let url = Url::parse(&text).map_err(|_| changed())?;
        let is_same = url[..Position::BeforePath] == self.origin && url.path() == path && url.fragment().is_none();
        if is_same { Ok(url) } else { Err(changed()) }
    }

    /// A literal `.` or `..` would be resolved away, and the path would not be the one that was written.
    fn refuse_dots(&self) -> Result<(), BadTemplate> {
        for pieces in &self.segments {
            if let [Piece::Literal(text)] = pieces.as_slice()
                && is_dots(text)
            {
                return Err(BadTemplate::new("path", "a segment is `.` or `..`").fix("write the path without it"));
            }
        }
        Ok(())
    }
}

/// Reads scheme and authority; gives the origin and what follows it.
fn origin(text: &str) -> Result<(String, &str), BadTemplate> {
    let absolute = || {
        BadTemplate::new("scheme", "the URL is not absolute").fix("begin with `https://` and the host, or `http://`")
    };
    let (scheme, rest) = text.split_once("://").ok_or_else(absolute)?;
    if scheme.contains('$') {
        return Err(no_slot("scheme"));
    }
    if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return Err(absolute());
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, rest) = rest.split_at(end);
    if let Some(at) = authority.find('$') {
        let place = if authority[at..].contains('@') {
            "userinfo"
        } else if authority[..at].contains(':') {
            "port"
        } else {
            "host"
        };
        return Err(no_slot(place));
    }
    if authority.contains('@') {
        return Err(BadTemplate::new("userinfo", "a URL holds no credential")
            .fix("name a secret in `auth`, as in `basic:USER:PASS`"));
    }
    let bad_host = |why: String| BadTemplate::new("host", why).fix("write the host's name, and `:port` where needed");
    if authority.chars().any(|c| c.is_control() || c.is_whitespace() || matches!(c, '\\' | '%')) {
        return Err(bad_host("it holds a character that no host has".into()));
    }
    let url = Url::parse(&format!("{scheme}://{authority}/")).map_err(|error| bad_host(error.to_string()))?;
    let origin = url[..Position::BeforePath].to_owned();
    Ok((origin, rest))
}

fn no_slot(place: &str) -> BadTemplate {
    BadTemplate::new(place, format!("no slot may stand in the {place}"))
        .fix("write it out; a row calls one fixed origin, and another origin is another row")
}

fn refuse_characters(mark: &Mark<'_>) -> Result<(), BadTemplate> {
    let Mark::Text(text) = mark else { return Ok(()) };
    if text.contains('#') {
        return Err(BadTemplate::new("fragment", "a request carries no fragment").fix("write `%23` for a `#`"));
    }
    match text.chars().find(|c| c.is_control() || c.is_whitespace() || *c == '\\') {
        None => Ok(()),
        Some(c) => Err(BadTemplate::new("URL", format!("it holds the character U+{:04X}", u32::from(c)))
            .fix("write it percent-encoded")),
    }
}

fn segments(marks: Vec<Mark<'_>>, scope: &Scope<'_>) -> Result<Vec<Vec<Piece>>, BadTemplate> {
    let mut segments: Vec<Vec<Piece>> = vec![Vec::new()];
    for mark in marks {
        if let Mark::Text(text) = mark {
            if pair::is_broken(text) {
                return Err(BadTemplate::new("path", "`%` without two hexadecimal digits").fix("write `%25` for it"));
            }
            for (i, part) in text.split('/').enumerate() {
                if i > 0 {
                    segments.push(Vec::new());
                }
                let encoded = utf8_percent_encode(part, PATH_TEXT).to_string();
                push_text(segments.last_mut().expect("it begins with one"), &encoded);
            }
        } else if let Some(slot) = scope.slot(&mark, "path")? {
            segments.last_mut().expect("it begins with one").push(Piece::Slot(slot));
        }
    }
    // The path begins with `/`, so what stands before it is empty; an empty path is `/`.
    if segments.len() > 1 {
        segments.remove(0);
    }
    Ok(segments)
}

fn fill_segment(pieces: &[Piece], bound: &Bound) -> Result<String> {
    let mut segment = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(text) => segment.push_str(text),
            Piece::Slot(slot) => {
                let argument = slot.argument(bound).ok_or_else(|| missing(&slot.label(), None))?;
                if argument.is_null() {
                    return Err(refused(slot, "null", "`null` cannot stand in a path"));
                }
                let text = pair::flat(slot, &argument)?;
                if text.chars().any(|c| c.is_control()) {
                    return Err(refused(slot, "control_character", "a control character cannot stand in a path"));
                }
                if text.contains('\\') || text.contains('/') && !slot.spans() {
                    return Err(refused(slot, "path_separator", "`/` and `\\` cannot stand in a path segment"));
                }
                let parts: Vec<String> =
                    text.split('/').map(|part| utf8_percent_encode(part, VALUE).to_string()).collect();
                segment.push_str(&parts.join("/"));
            }
        }
    }
    match slots(pieces).last() {
        Some(slot) if segment.split('/').any(str::is_empty) => {
            Err(refused(slot, "empty_segment", "a path segment would be empty"))
        }
        Some(slot) if segment.split('/').any(is_dots) => {
            Err(refused(slot, "dot_segment", "`.` and `..` cannot stand as a path segment"))
        }
        Some(_) | None => Ok(segment),
    }
}

fn is_dots(segment: &str) -> bool {
    let decoded: Vec<u8> = percent_decode_str(segment).collect();
    decoded == b"." || decoded == b".."
}

fn changed() -> Fault {
    Fault::new(Reason::ArgumentRefused, "the arguments would change where the request goes").detail("url:shape")
}
