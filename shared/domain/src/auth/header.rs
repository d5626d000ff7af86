//! `headers:{"K":"$NAME",…}`: the headers that a row may set, and the secrets in their values.

use std::collections::HashSet;

use super::{Auth, AuthPiece, BadAuth, MAX_NAME, malformed, secret_name};
use crate::json::{self, JsonKind};
use crate::template::header_value;

/// Header names that a row may not set: they steer the connection or the framing, or are set for every request.
const RESERVED_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// The most headers of one row.
const MAX_HEADERS: usize = 32;
/// Reads what stands after the colon.
pub(super) fn parse(rest: &str) -> Result<Auth, BadAuth> {
    let members = json::object(rest).map_err(|problem| {
        malformed("headers", format!("after the colon stands a JSON object of strings: {problem}"))
    })?;
    if members.is_empty() || members.len() > MAX_HEADERS {
        return Err(malformed("headers", format!("it has {} headers, not 1 to {MAX_HEADERS}", members.len())));
    }
    let mut seen = HashSet::new();
    let mut headers = Vec::new();
    for (name, raw) in members {
        check_header_name(&name)?;
        if !seen.insert(name.to_ascii_lowercase()) {
            return Err(malformed("headers", "a header stands twice"));
        }
        let value = match json::kind(raw.get()) {
            JsonKind::String => {
                json::unescape(raw.get()).map_err(|problem| malformed("headers", problem.to_string()))?
            }
            JsonKind::Object | JsonKind::Array | JsonKind::Number | JsonKind::Boolean | JsonKind::Null => {
                return Err(malformed("headers", "a header's value is no string"));
            }
        };
        headers.push((name, pieces(&value)?));
    }
    Ok(Auth::Headers(headers))
}

fn check_header_name(name: &str) -> Result<(), BadAuth> {
    let is_token_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_token_byte) {
        return Err(malformed("headers", "a header's name holds a character that no name has"));
    }
    if RESERVED_HEADERS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err(malformed("headers", format!("a row may not set the header `{name}`")));
    }
    Ok(())
}

/// A header's value: `$NAME` and `${NAME}` are secrets, `$$` is a `$`, and so is a `$` that begins no name.
fn pieces(value: &str) -> Result<Vec<AuthPiece>, BadAuth> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut rest = value;
    while let Some(at) = rest.find('$') {
        literal.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let word = after.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        let (name, length) = match after.bytes().next() {
            Some(b'{') => {
                let end = after.find('}').ok_or_else(|| malformed("headers", "`${` is not closed"))?;
                (&after[1..end], end + 1)
            }
            Some(first) if first.is_ascii_alphabetic() || first == b'_' => (&after[..word], word),
            other => {
                literal.push('$');
                rest = &after[usize::from(other == Some(b'$'))..];
                continue;
            }
        };
        let name = secret_name("headers", name)?;
        if !literal.is_empty() {
            pieces.push(AuthPiece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(AuthPiece::Secret(name));
        rest = &after[length..];
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(AuthPiece::Literal(literal));
    }
    for piece in &pieces {
        match piece {
            AuthPiece::Literal(text) => header_value(text)
                .map_err(|rule| malformed("headers", format!("a header's value breaks the rule `{rule}`")))?,
            AuthPiece::Secret(_) => {}
        }
    }
    Ok(pieces)
}
