//! What an upstream answered, reduced to what Callbook keeps.

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;
use encoding_rs::Encoding;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};

/// Header values are the upstream's; a receipt should not grow by them.
const MAX_KEPT: usize = 32;
const MAX_KEPT_VALUE: usize = 1024;

/// A complete answer, or the beginning of one that was longer than its bound.
#[derive(Clone, PartialEq, Eq)]
pub struct Answered {
    /// The HTTP status, 100 to 999.
    pub status: u16,
    /// The media type in lower case, without parameters.
    pub media_type: Option<String>,
    /// The declared charset, in lower case.
    pub charset: Option<String>,
    /// `content-type`, `etag`, `retry-after` and rate limits, in lower case; nothing else is kept.
    pub kept_headers: Vec<(String, String)>,
    /// The decoded body.
    pub body: Bytes,
    /// Whether the body goes on beyond `body`.
    pub truncated: bool,
    /// Bytes of body that were received, before decoding.
    pub remote_wire_bytes: u64,
}

impl fmt::Debug for Answered {
    /// Without the body and the headers, which may hold anything.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answered")
            .field("status", &self.status)
            .field("media_type", &self.media_type)
            .field("bytes", &self.body.len())
            .field("truncated", &self.truncated)
            .finish_non_exhaustive()
    }
}

/// The body as UTF-8 text without a byte order mark, converted when another charset is declared. `None` when it is
/// not text: no charset that we know, and not UTF-8. A character that the bound cut in two is left out.
pub fn text(answered: &Answered) -> Option<Cow<'_, str>> {
    let declared = answered.charset.as_deref().and_then(|label| Encoding::for_label(label.as_bytes()));
    if let Some(encoding) = declared.filter(|encoding| *encoding != encoding_rs::UTF_8) {
        return Some(encoding.decode(&answered.body).0);
    }
    let bytes = json_bytes(answered);
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(Cow::Borrowed(text)),
        Err(error) if answered.truncated && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).ok().map(Cow::Borrowed)
        }
        Err(_) => None,
    }
}

/// The body without a UTF-8 byte order mark, which JSON does not allow and some upstreams send.
pub fn json_bytes(answered: &Answered) -> &[u8] {
    answered.body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&answered.body)
}

/// How a body is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    Identity,
    Gzip,
    Zlib,
    Brotli,
    /// Several at once, or one that we do not read.
    Unknown,
}

/// The head of an answer.
pub(super) struct Head {
    pub(super) status: u16,
    pub(super) media_type: Option<String>,
    pub(super) charset: Option<String>,
    pub(super) kept_headers: Vec<(String, String)>,
    pub(super) coding: Coding,
}

impl Head {
    pub(super) fn read(status: u16, headers: &HeaderMap) -> Self {
        let content_type = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
        let (media_type, charset) = content_type.as_deref().map_or((None, None), media_type);
        Head { status, media_type, charset, kept_headers: kept(headers), coding: coding(headers) }
    }
}

fn kept(headers: &HeaderMap) -> Vec<(String, String)> {
    let is_kept = |name: &str| {
        matches!(name, "content-type" | "etag" | "retry-after")
            || name.starts_with("ratelimit")
            || name.starts_with("x-ratelimit-")
    };
    // a value that is too long is left out whole: half a secret would not be found in it
    let is_short = |value: &HeaderValue| value.len() <= MAX_KEPT_VALUE;
    let pairs = headers.iter().filter(|(name, value)| is_kept(name.as_str()) && is_short(value)).take(MAX_KEPT);
    pairs
        .map(|(name, value)| (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned()))
        .collect()
}

fn coding(headers: &HeaderMap) -> Coding {
    let mut values = headers.get_all(CONTENT_ENCODING).iter();
    let (first, more) = (values.next(), values.next());
    let Some(value) = first else { return Coding::Identity };
    if more.is_some() {
        return Coding::Unknown;
    }
    match value.as_bytes().trim_ascii().to_ascii_lowercase().as_slice() {
        b"" | b"identity" => Coding::Identity,
        b"gzip" | b"x-gzip" => Coding::Gzip,
        b"deflate" => Coding::Zlib,
        b"br" => Coding::Brotli,
        _ => Coding::Unknown,
    }
}

/// Splits `text/plain; charset="utf-8"` into the type and the charset, both in lower case.
fn media_type(value: &str) -> (Option<String>, Option<String>) {
    let mut parts = value.split(';');
    let essence = parts.next().map(|part| part.trim().to_ascii_lowercase()).filter(|part| !part.is_empty());
    let charset = parts.filter_map(|part| part.split_once('=')).find_map(|(name, value)| {
        let value = value.trim().trim_matches('"').to_ascii_lowercase();
        (name.trim().eq_ignore_ascii_case("charset") && !value.is_empty()).then_some(value)
    });
    (essence, charset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(charset: Option<&str>, body: &'static [u8], truncated: bool) -> Answered {
        Answered {
            status: 200,
            media_type: None,
            charset: charset.map(str::to_owned),
            kept_headers: Vec::new(),
            body: Bytes::from_static(body),
            truncated,
            remote_wire_bytes: 0,
        }
    }

    #[test]
    fn a_declared_charset_becomes_utf8_and_the_bytes_stay() {
        let latin = answered(Some("iso-8859-1"), b"caf\xe9", false);
        assert_eq!(text(&latin).unwrap(), "café");
        assert_eq!(latin.body.as_ref(), b"caf\xe9");
        assert_eq!(text(&answered(Some("shift_jis"), b"\x93\xfa\x96\x7b", false)).unwrap(), "日本");
        assert_eq!(text(&answered(Some("utf-16le"), b"\xff\xfea\0", false)).unwrap(), "a");
        assert_eq!(text(&answered(Some("no-such"), b"a", false)).unwrap(), "a");
    }

    #[test]
    fn a_byte_order_mark_is_left_out_and_broken_text_is_no_text() {
        assert_eq!(text(&answered(None, b"\xef\xbb\xbf{}", false)).unwrap(), "{}");
        assert_eq!(json_bytes(&answered(None, b"\xef\xbb\xbf{}", false)), b"{}");
        assert_eq!(text(&answered(None, b"a\xff", false)), None);
        assert_eq!(text(&answered(None, b"caf\xc3", false)), None);
        assert_eq!(text(&answered(None, b"caf\xc3", true)).unwrap(), "caf");
    }

    #[test]
    fn a_content_type_is_read_with_and_without_parameters() {
        let read = |value| media_type(value);
        assert_eq!(read("Application/JSON"), (Some("application/json".into()), None));
        assert_eq!(read("text/html; a=b;Charset=\"UTF-8\" "), (Some("text/html".into()), Some("utf-8".into())));
        assert_eq!(read(""), (None, None));
        assert_eq!(read("; charset="), (None, None));
    }
}
