//! Bytes of rows in JSON: JSON as it is, text as text, the rest as base64.

use callbook_domain::outcome::Output;
use data_encoding::BASE64;
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

/// JSON text of a service as a value. Text that is no JSON would break the whole answer, so it becomes a string.
pub(crate) fn raw(text: &[u8]) -> Box<RawValue> {
    let text = String::from_utf8_lossy(text);
    RawValue::from_string(text.as_ref().to_owned()).unwrap_or_else(|_| quoted(&text))
}

fn quoted(text: &str) -> Box<RawValue> {
    serde_json::value::to_raw_value(text).expect("a string is always JSON")
}

/// Output of a row as a value: exactly its bytes where they are JSON.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum Typed {
    /// One JSON document.
    Json(Box<RawValue>),
    /// Anything else.
    Bytes(Bytes),
}

impl Typed {
    /// Nothing where there are no bytes.
    pub(crate) fn read(bytes: bytes::Bytes, media_type: String, truncated: bool) -> Option<Self> {
        if bytes.is_empty() {
            return None;
        }
        let output = Output { bytes: bytes.into(), media_type, truncated };
        let document = output.as_json().and_then(|text| RawValue::from_string(text.to_owned()).ok());
        Some(match document {
            Some(document) => Typed::Json(document),
            None => Typed::Bytes(Bytes::read(output.bytes, output.media_type, truncated)),
        })
    }
}

/// Bytes that are kept exactly: as text where they are UTF-8, else as base64.
#[derive(Serialize, ToSchema)]
pub(crate) struct Bytes {
    /// Media type. Absent: not said.
    #[serde(skip_serializing_if = "String::is_empty")]
    media_type: String,
    /// The bytes, where they are UTF-8.
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The bytes, where they are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    /// True: this is the head of more. Absent: it is all.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    truncated: bool,
}

impl Bytes {
    pub(crate) fn read(bytes: impl Into<Vec<u8>>, media_type: String, truncated: bool) -> Self {
        match String::from_utf8(bytes.into()) {
            Ok(text) => Bytes { media_type, text: Some(text), base64: None, truncated },
            Err(other) => Bytes { media_type, text: None, base64: Some(BASE64.encode(other.as_bytes())), truncated },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(bytes: &'static [u8], media_type: &str) -> String {
        let typed = Typed::read(bytes::Bytes::from_static(bytes), media_type.into(), false);
        serde_json::to_string(&typed).unwrap()
    }

    #[test]
    fn json_output_keeps_every_byte_of_its_numbers() {
        let exact = br#"{"n":9007199254740993,"m":1.10,"z":-0,"e":1e400,"a":1,"a":2}"#;
        assert_eq!(shown(exact, "application/json").as_bytes(), exact);
    }

    #[test]
    fn other_output_says_its_media_type() {
        assert_eq!(shown(b"hi", "text/plain"), r#"{"media_type":"text/plain","text":"hi"}"#);
        assert_eq!(shown(b"\xff\x00", "image/png"), r#"{"media_type":"image/png","base64":"/wA="}"#);
        assert_eq!(shown(b"<html>", "application/json"), r#"{"media_type":"application/json","text":"<html>"}"#);
        assert_eq!(shown(b"", ""), "null");
    }

    #[test]
    fn broken_json_of_a_service_does_not_break_the_answer() {
        assert_eq!(raw(b"{\"a\":").get(), r#""{\"a\":""#);
        assert_eq!(raw(b"1.10").get(), "1.10");
    }
}
