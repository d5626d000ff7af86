//! The body of a request.

use url::form_urlencoded;

use super::json_tree::{self, Node};
use super::pair::{self, Pair};
use super::scope::{Scope, marks};
use super::slot::{Piece, Slot, slots};
use super::{BadTemplate, refused};
use crate::arguments::{Bound, missing};
use crate::fault::Result;
use crate::json;

/// A request body with slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyTemplate(Kind);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    None,
    Json(Node),
    Form(Vec<Pair>),
    Text { media_type: String, pieces: Vec<Piece> },
}

/// A body ready to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilledBody {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Their media type.
    pub media_type: String,
}

impl BodyTemplate {
    /// No body.
    pub(crate) fn none() -> Self {
        BodyTemplate(Kind::None)
    }

    /// Reads a body template: `form:` pairs, `text/<subtype>:` text, or JSON. Blank text is no body.
    ///
    /// A line break directly after the colon of `text/<subtype>:` is not part of the text.
    pub(crate) fn compile(text: &str, scope: &Scope<'_>) -> Result<Self, BadTemplate> {
        let trimmed = text.trim();
        if trimmed.is_empty() {
            return Ok(BodyTemplate::none());
        }
        if let Some(pairs) = trimmed.strip_prefix("form:") {
            return form(pairs.trim_start(), scope).map(|pairs| BodyTemplate(Kind::Form(pairs)));
        }
        if let Some((media_type, text)) = declared_text(text.trim_start()) {
            let pieces = scope.pieces(text, "text body")?;
            return Ok(BodyTemplate(Kind::Text { media_type: media_type.to_owned(), pieces }));
        }
        json_tree::compile(trimmed, scope).map(|node| BodyTemplate(Kind::Json(node))).map_err(|bad| match bad.fix {
            Some(_) => bad,
            None => bad.fix("write JSON with slots, `form:name=$1`, or begin with a type as in `text/plain:`"),
        })
    }

    /// The body for a call's arguments; none where the template is none, or one slot whose argument was not given.
    ///
    /// # Errors
    /// `missing_argument`, or `argument_refused:<slot>:<rule>`.
    pub fn fill(&self, bound: &Bound) -> Result<Option<FilledBody>> {
        let (text, media_type) = match &self.0 {
            Kind::None => return Ok(None),
            Kind::Json(node) if node.is_absent(bound) => return Ok(None),
            Kind::Json(node) => {
                let mut text = String::new();
                node.write(bound, &mut text)?;
                debug_assert_ne!(json::check(&text), Err(json::Problem::NotJson), "values are checked one by one");
                (text, "application/json")
            }
            Kind::Form(pairs) => (pair::fill(pairs, bound, form_value)?, "application/x-www-form-urlencoded"),
            Kind::Text { media_type, pieces } => (fill_text(pieces, bound)?, media_type.as_str()),
        };
        Ok(Some(FilledBody { bytes: text.into_bytes(), media_type: media_type.to_owned() }))
    }

    /// The slots.
    pub fn slots(&self) -> Vec<&Slot> {
        let mut found = Vec::new();
        match &self.0 {
            Kind::None => {}
            Kind::Json(node) => node.slots(&mut found),
            Kind::Form(pairs) => found.extend(pairs.iter().flat_map(Pair::slots)),
            Kind::Text { pieces, .. } => found.extend(slots(pieces)),
        }
        found
    }
}

fn form(text: &str, scope: &Scope<'_>) -> Result<Vec<Pair>, BadTemplate> {
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(BadTemplate::new("body", "a form holds a space or a line break").fix("write `+` for a space"));
    }
    pair::compile(marks(text, "form value")?, scope, "form")
}

fn form_value(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// `text/<subtype>[; parameters]:` and what follows.
fn declared_text(text: &str) -> Option<(&str, &str)> {
    let (media_type, rest) = text.split_once(':')?;
    let essence = media_type.split(';').next().unwrap_or_default().trim_end();
    let subtype = essence.strip_prefix("text/")?;
    let is_token = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '+' | '-' | '_');
    let is_type = !subtype.is_empty() && subtype.chars().all(is_token);
    let is_visible = media_type.bytes().all(|byte| (b' '..=b'~').contains(&byte) && byte != b'$');
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
    (is_type && is_visible).then_some((media_type, rest))
}

fn fill_text(pieces: &[Piece], bound: &Bound) -> Result<String> {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Slot(slot) => {
                let argument = slot.argument(bound).ok_or_else(|| missing(&slot.label(), None))?;
                if argument.as_text().contains('\0') {
                    return Err(refused(slot, "control_character", "U+0000 cannot stand in a text body"));
                }
                text.push_str(argument.as_text());
            }
        }
    }
    Ok(text)
}
