//! What a row gave, and what went in: JSON, text, or bytes.

use data_encoding::BASE64;
use serde::Deserialize;
use serde_json::value::RawValue;

use callbook_domain::outcome::is_json;

use super::screen::Screen;
use super::trouble::Trouble;

/// Content of an answer, as exact as the answer holds it.
#[derive(Debug, PartialEq, Eq)]
pub enum Content {
    /// JSON text.
    Json(String),
    /// Other text.
    Text(String),
    /// What is no text.
    Bytes(Vec<u8>),
}

/// Content that is not JSON, as answers hold it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packed {
    #[serde(default)]
    media_type: String,
    text: Option<String>,
    base64: Option<String>,
    /// This is the head of more.
    #[serde(default)]
    pub truncated: bool,
}

impl Packed {
    /// The content; nothing where it is not packed as answers pack it.
    pub fn content(self) -> Option<Content> {
        match (self.text, self.base64) {
            (Some(text), None) if is_json(&self.media_type) => Some(Content::Json(text)),
            (Some(text), None) => Some(Content::Text(text)),
            (None, Some(base64)) => BASE64.decode(base64.as_bytes()).ok().map(Content::Bytes),
            (_, _) => None,
        }
    }
}

impl Content {
    /// The output of an invocation, and whether it is only the head of more. A row's own JSON may look like packed
    /// content; the text form of the same outcome, which ends with it, tells them apart.
    pub fn of_output(output: &RawValue, result: &str) -> (Self, bool) {
        let own = || (Content::Json(output.get().to_owned()), false);
        if result.trim_end().ends_with(output.get()) {
            return own();
        }
        let Ok(packed) = serde_json::from_str::<Packed>(output.get()) else { return own() };
        let truncated = packed.truncated;
        packed.content().map_or_else(own, |content| (content, truncated))
    }

    /// The exact bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Content::Json(text) | Content::Text(text) => text.as_bytes(),
            Content::Bytes(bytes) => bytes,
        }
    }

    /// Writes it: JSON with indents where a person reads, bytes only where they can do no harm.
    pub fn show(&self, screen: &Screen, again: &str) -> Result<(), Trouble> {
        match self {
            Content::Json(text) if screen.is_terminal => screen.rows_text(&indented(text), again),
            Content::Json(text) | Content::Text(text) => screen.rows_text(text, again),
            Content::Bytes(bytes) => screen.raw(bytes, again),
        }
    }

    /// It on a few lines.
    pub fn summary(&self, most: usize) -> String {
        let text = match self {
            Content::Json(text) | Content::Text(text) => text,
            Content::Bytes(bytes) => return format!("{} bytes that are not text", bytes.len()),
        };
        let head = super::text::shorten(text, most);
        if head == *text { head } else { format!("{head} ({} bytes)", text.len()) }
    }
}

/// JSON with indents. Numbers keep their text; what cannot be read stays as it is.
fn indented(text: &str) -> String {
    let value = serde_json::from_str::<serde_json::Value>(text);
    value.and_then(|value| serde_json::to_string_pretty(&value)).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(output: &str, result: &str) -> (Content, bool) {
        Content::of_output(&RawValue::from_string(output.into()).unwrap(), result)
    }

    #[test]
    fn json_stays_as_it_is_written() {
        assert_eq!(of(r#"{"n":1.10}"#, r#"HTTP 200:{"n":1.10}"#), (Content::Json(r#"{"n":1.10}"#.into()), false));
        assert_eq!(of("12", "12").0, Content::Json("12".into()));
        assert_eq!(indented(r#"{"n":1.10,"m":9007199254740993}"#), "{\n  \"n\": 1.10,\n  \"m\": 9007199254740993\n}");
        assert_eq!(indented("{"), "{");
    }

    #[test]
    fn text_and_bytes_are_unpacked() {
        assert_eq!(of(r#"{"media_type":"text/plain","text":"hi"}"#, "hi"), (Content::Text("hi".into()), false));
        assert_eq!(of(r#"{"base64":"//4="}"#, "//4="), (Content::Bytes(vec![255, 254]), false));
        let cut = of(r#"{"media_type":"application/json","text":"{\"a\":","truncated":true}"#, r#"HTTP 200:{"a":"#);
        assert_eq!(cut, (Content::Json("{\"a\":".into()), true));
    }

    #[test]
    fn a_rows_own_json_that_looks_packed_is_not_unpacked() {
        let own = r#"{"media_type":"text/plain","text":"hi"}"#;
        assert_eq!(of(own, &format!("HTTP 200:{own}")).0, Content::Json(own.into()));
        let other = r#"{"media_type":"text/plain","text":"hi","more":1}"#;
        assert_eq!(of(other, "x").0, Content::Json(other.into()));
    }

    #[test]
    fn a_summary_is_short() {
        assert_eq!(Content::Text("abcdef".into()).summary(4), "abc… (6 bytes)");
        assert_eq!(Content::Text("abc".into()).summary(4), "abc");
        assert_eq!(Content::Bytes(vec![0; 3]).summary(4), "3 bytes that are not text");
    }
}
