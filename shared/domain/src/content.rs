//! Content blocks as the Model Context Protocol has them: what a row gives a model to see, hear or follow.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::json::{self, Problem};

/// The media type of a JSON list of blocks.
pub const MEDIA_TYPE: &str = "application/vnd.callbook.content+json";

/// Why something is no content block.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadBlock {
    /// It is not taken as JSON.
    #[error("a block is not taken as JSON: {0}")]
    Json(#[from] Problem),
    /// It is JSON and no object.
    #[error("a block is a JSON object with a `type`")]
    NotObject,
    /// Its `type` is absent or none of the five.
    #[error("`type` is one of text, image, audio, resource_link and resource")]
    Type,
    /// A field is absent, or has a value that it cannot have.
    #[error("a block of type `{block}` has `{field}`, {expected}")]
    Field {
        /// The type of the block.
        block: &'static str,
        /// The field.
        field: &'static str,
        /// What it must hold.
        expected: &'static str,
    },
}

/// Whether a JSON text is one content block: `text` with `text`; `image` and `audio` with `data` in base64 and
/// `mimeType`; `resource_link` with `uri` and `name`; `resource` with a `resource` of `uri` and either `text` or `blob`
/// in base64. Other fields are the writer's.
///
/// # Errors
/// The first thing that is wrong.
pub fn check(block: &str) -> Result<(), BadBlock> {
    let Value::Object(fields) = json::value(block)? else { return Err(BadBlock::NotObject) };
    match fields.get("type").and_then(Value::as_str) {
        Some("text") => Fields("text", &fields).text("text"),
        Some("image") => media("image", &fields),
        Some("audio") => media("audio", &fields),
        Some("resource_link") => {
            let fields = Fields("resource_link", &fields);
            fields.word("uri").and(fields.word("name"))
        }
        Some("resource") => resource(&fields),
        Some(_) | None => Err(BadBlock::Type),
    }
}

fn media(block: &'static str, fields: &Map<String, Value>) -> Result<(), BadBlock> {
    let fields = Fields(block, fields);
    fields.base64("data").and(fields.word("mimeType"))
}

fn resource(fields: &Map<String, Value>) -> Result<(), BadBlock> {
    let Some(Value::Object(inner)) = fields.get("resource") else {
        return Err(BadBlock::Field { block: "resource", field: "resource", expected: "an object" });
    };
    let fields = Fields("resource", inner);
    fields.word("uri")?;
    match (inner.contains_key("text"), inner.contains_key("blob")) {
        (true, false) => fields.text("text"),
        (false, true) => fields.base64("blob"),
        (true, true) | (false, false) => {
            Err(BadBlock::Field { block: "resource", field: "resource", expected: "with either `text` or `blob`" })
        }
    }
}

/// The fields of a block of this type.
struct Fields<'a>(&'static str, &'a Map<String, Value>);

impl Fields<'_> {
    fn text(&self, field: &'static str) -> Result<(), BadBlock> {
        self.require(field, "a string", |_| true)
    }

    fn word(&self, field: &'static str) -> Result<(), BadBlock> {
        self.require(field, "a string that is not empty", |text| !text.is_empty())
    }

    fn base64(&self, field: &'static str) -> Result<(), BadBlock> {
        let is_base64 = |text: &str| data_encoding::BASE64.decode(text.as_bytes()).is_ok();
        self.require(field, "bytes in base64 with padding", is_base64)
    }

    fn require(
        &self,
        field: &'static str,
        expected: &'static str,
        fits: impl Fn(&str) -> bool,
    ) -> Result<(), BadBlock> {
        match self.1.get(field).and_then(Value::as_str) {
            Some(text) if fits(text) => Ok(()),
            Some(_) | None => Err(BadBlock::Field { block: self.0, field, expected }),
        }
    }
}

/// What a reader without pictures and sound gets of a list of blocks: texts as they are, links by their address, and of
/// anything else its type. Nothing where it is no list of blocks.
pub fn plain(list: &str) -> Option<String> {
    let blocks: Vec<Map<String, Value>> = serde_json::from_str(list).ok()?;
    let mut text = String::new();
    for (at, block) in blocks.iter().enumerate() {
        text.push_str(if at > 0 { "\n" } else { "" });
        let field = |fields: &Map<String, Value>, name: &str| fields.get(name)?.as_str().map(str::to_owned);
        let kind = field(block, "type")?;
        match kind.as_str() {
            "text" => text.push_str(&field(block, "text")?),
            "resource_link" => text.push_str(&field(block, "uri")?),
            "resource" => {
                let inner = block.get("resource")?.as_object()?;
                text.push_str(&field(inner, "text").or_else(|| field(inner, "uri"))?);
            }
            _ => {
                let _ = write!(text, "[{kind} {}]", field(block, "mimeType")?);
            }
        }
    }
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_five_types_are_taken_with_the_fields_that_they_need() {
        for block in [
            r#"{"type":"text","text":""}"#,
            r#"{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{"priority":1}}"#,
            r#"{"type":"audio","data":"","mimeType":"audio/wav"}"#,
            r#"{"type":"resource_link","uri":"https://example.com/","name":"page"}"#,
            r#"{"type":"resource","resource":{"uri":"file:///a","text":"x"}}"#,
            r#"{"type":"resource","resource":{"uri":"file:///a","blob":"aGk="}}"#,
        ] {
            assert_eq!(check(block), Ok(()), "{block}");
        }
        for (block, why) in [
            ("x", "a block is not taken as JSON: it is not JSON"),
            ("[]", "a block is a JSON object with a `type`"),
            ("{}", "`type` is one of text, image, audio, resource_link and resource"),
            (r#"{"type":"video"}"#, "`type` is one of text, image, audio, resource_link and resource"),
            (r#"{"type":"text","text":1}"#, "a block of type `text` has `text`, a string"),
            (
                r#"{"type":"image","data":"aGk","mimeType":"image/png"}"#,
                "a block of type `image` has `data`, bytes in base64 with padding",
            ),
            (
                r#"{"type":"audio","data":"aGk=","mimeType":""}"#,
                "a block of type `audio` has `mimeType`, a string that is not empty",
            ),
            (
                r#"{"type":"resource_link","uri":"a"}"#,
                "a block of type `resource_link` has `name`, a string that is not empty",
            ),
            (r#"{"type":"resource","resource":"a"}"#, "a block of type `resource` has `resource`, an object"),
            (
                r#"{"type":"resource","resource":{"uri":"a","text":"","blob":""}}"#,
                "a block of type `resource` has `resource`, with either `text` or `blob`",
            ),
        ] {
            assert_eq!(check(block).unwrap_err().to_string(), why, "{block}");
        }
    }

    #[test]
    fn a_list_of_blocks_reads_as_text() {
        let list = r#"[{"type":"text","text":"Here"},{"type":"image","data":"","mimeType":"image/png"},
            {"type":"resource_link","uri":"https://a/","name":"a"},{"type":"resource","resource":{"uri":"u","text":"t"}}]"#;
        assert_eq!(plain(list).as_deref(), Some("Here\n[image image/png]\nhttps://a/\nt"));
        assert_eq!(plain("[]").as_deref(), Some(""));
        assert_eq!(plain("{}"), None);
        assert_eq!(plain("[{\"type\":\"text\"}]"), None);
    }
}
