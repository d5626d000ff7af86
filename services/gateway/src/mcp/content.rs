//! Outputs as content blocks.

use callbook_domain::outcome::Output;
use data_encoding::BASE64;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::answer::Raw;

/// The media type of a JSON list of blocks: what the function `content` gives.
const BLOCKS: &str = "application/vnd.callbook.content+json";
/// Bytes of an output that is neither text nor sound nor picture and still stands in the answer; larger ones are linked.
const LARGEST_BLOB: usize = 256 * 1024;

/// One block.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Block {
    /// As a row gave it.
    Raw(Raw),
    /// Made here.
    Own(Own),
}

/// A block of ours.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Own {
    Text { text: String },
    Image { data: String, mime_type: String },
    Audio { data: String, mime_type: String },
    Resource { resource: Contents },
    ResourceLink { uri: String, name: String, mime_type: String, size: usize },
}

/// What stands at an address.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Contents {
    pub(super) uri: String,
    pub(super) mime_type: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) blob: Option<String>,
}

impl Block {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Block::Own(Own::Text { text: text.into() })
    }
}

/// An output by what a client can do with it.
pub(super) enum Form {
    /// Blocks that the row made.
    Blocks(Vec<Raw>),
    /// One JSON document.
    Json(String),
    /// Text of any other kind.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>, String),
    /// Nothing, as a 204 gives it.
    Nothing,
}

/// Reads an output.
pub(super) fn form(output: Output) -> Form {
    if output.bytes.is_empty() {
        return Form::Nothing;
    }
    if let Some(text) = output.as_json() {
        let blocks = (output.media_type == BLOCKS).then(|| serde_json::from_str::<Vec<Raw>>(text).ok()).flatten();
        return blocks.map_or_else(|| Form::Json(text.to_owned()), Form::Blocks);
    }
    match String::from_utf8(output.bytes) {
        Ok(text) => Form::Text(text),
        Err(bytes) => Form::Bytes(bytes.into_bytes(), output.media_type),
    }
}

/// Bytes as the block of their kind.
pub(super) fn bytes(bytes: &[u8], media_type: String, uri: String) -> Block {
    let mime_type = match media_type.split(';').next().unwrap_or_default().trim() {
        "" => "application/octet-stream".to_owned(),
        essence => essence.to_ascii_lowercase(),
    };
    let data = || BASE64.encode(bytes);
    Block::Own(match mime_type.split('/').next() {
        Some("image") => Own::Image { data: data(), mime_type },
        Some("audio") => Own::Audio { data: data(), mime_type },
        Some(_) | None if bytes.len() <= LARGEST_BLOB => {
            Own::Resource { resource: Contents { uri, mime_type, text: None, blob: Some(data()) } }
        }
        Some(_) | None => Own::ResourceLink { uri, name: "output".to_owned(), mime_type, size: bytes.len() },
    })
}

/// Blocks as the contents of an address: texts and bytes by their own kind.
pub(super) fn contents(blocks: &[Raw], uri: &str) -> Vec<Contents> {
    blocks.iter().filter_map(|block| content(block, uri)).collect()
}

fn content(block: &RawValue, uri: &str) -> Option<Contents> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Any {
        r#type: String,
        #[serde(default)]
        text: Option<String>,
        #[serde(default)]
        data: Option<String>,
        #[serde(default)]
        blob: Option<String>,
        #[serde(default)]
        mime_type: Option<String>,
        #[serde(default)]
        resource: Option<Raw>,
    }
    let any: Any = serde_json::from_str(block.get()).ok()?;
    let or = |told: Option<String>, plain: &str| told.unwrap_or_else(|| plain.to_owned());
    match any.r#type.as_str() {
        "resource" => {
            #[derive(serde::Deserialize)]
            #[serde(rename_all = "camelCase")]
            struct Inner {
                #[serde(default)]
                text: Option<String>,
                #[serde(default)]
                blob: Option<String>,
                #[serde(default)]
                mime_type: Option<String>,
            }
            let Inner { text, blob, mime_type } = serde_json::from_str(any.resource?.get()).ok()?;
            Some(Contents { uri: uri.to_owned(), mime_type: or(mime_type, "text/plain"), text, blob })
        }
        "text" => Some(Contents {
            uri: uri.to_owned(),
            mime_type: or(any.mime_type, "text/plain"),
            text: any.text,
            blob: None,
        }),
        _ => Some(Contents {
            uri: uri.to_owned(),
            mime_type: or(any.mime_type, "application/octet-stream"),
            text: None,
            blob: any.data.or(any.blob),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(bytes: &[u8], media_type: &str) -> Output {
        Output { bytes: bytes.to_vec(), media_type: media_type.to_owned(), truncated: false }
    }

    #[test]
    fn an_output_is_what_its_bytes_and_media_type_say() {
        assert!(matches!(form(output(b"", "")), Form::Nothing));
        assert!(
            matches!(form(output(b"{\"n\":1.10}", "application/json")), Form::Json(text) if text == "{\"n\":1.10}")
        );
        assert!(matches!(form(output(b"{\"n\":", "application/json")), Form::Text(_)));
        assert!(
            matches!(form(output(b"[{\"type\":\"text\",\"text\":\"a\"}]", BLOCKS)), Form::Blocks(list) if list.len() == 1)
        );
        assert!(matches!(form(output(b"\xff\x00", "image/png")), Form::Bytes(..)));
    }

    #[test]
    fn bytes_are_shown_by_their_kind() {
        let shown = |media_type: &str, size: usize| {
            serde_json::to_value(bytes(&vec![0xff; size], media_type.to_owned(), "u".to_owned())).unwrap()
        };
        assert_eq!(
            shown("image/png", 2),
            serde_json::json!({"type": "image", "data": "//8=", "mimeType": "image/png"})
        );
        assert_eq!(shown("Audio/Wav; x=1", 1)["mimeType"], "audio/wav");
        assert_eq!(shown("", 1)["resource"]["mimeType"], "application/octet-stream");
        let large = shown("application/zip", LARGEST_BLOB + 1);
        assert_eq!(
            (large["type"].as_str(), large["size"].as_u64()),
            (Some("resource_link"), Some(LARGEST_BLOB as u64 + 1))
        );
    }
}
