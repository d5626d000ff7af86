//! What a run gave. An outcome is typed; its text form is a rendering and never decides anything.

use std::fmt::Write as _;

use crate::content;

/// Bytes with their media type. JSON keeps the text that the upstream or function gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// The bytes as they came, after decoding and redaction.
    pub bytes: Vec<u8>,
    /// `application/json`, `text/plain; charset=utf-8`, … Empty when nothing was said.
    pub media_type: String,
    /// The upstream sent more than the row's bound; this is the head of it.
    pub truncated: bool,
}

impl Output {
    /// JSON text.
    pub fn json(text: impl Into<Vec<u8>>) -> Self {
        Output { bytes: text.into(), media_type: "application/json".into(), truncated: false }
    }

    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Output { bytes: text.into().into_bytes(), media_type: "text/plain; charset=utf-8".into(), truncated: false }
    }

    /// Nothing, as a 204 gives it.
    pub fn empty() -> Self {
        Output { bytes: Vec::new(), media_type: String::new(), truncated: false }
    }

    /// The bytes as JSON text, where they are one whole JSON document of at most [`MAX_DEPTH`] levels.
    pub fn as_json(&self) -> Option<&str> {
        let text = std::str::from_utf8(&self.bytes).ok()?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let declared = self.media_type.is_empty() || is_json(&self.media_type);
        (declared && !self.truncated && depth(text) <= MAX_DEPTH && is_document(text)).then_some(text.trim())
    }

    /// The bytes as text, where they are UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok()
    }
}

/// Deeper JSON than this is handed on as text: readers with a recursion limit could not take it.
pub const MAX_DEPTH: usize = 120;

/// Whether a media type says JSON (`application/json`, `…+json`), parameters ignored.
pub fn is_json(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}

fn is_document(text: &str) -> bool {
    serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

fn depth(text: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in text.bytes() {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b'[' | b'{') => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            (false, b']' | b'}') => depth = depth.saturating_sub(1),
            (true | false, _) => {}
        }
    }
    deepest
}

/// Why a run failed. It has a receipt all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// A stable name: `http:401`, `http:fetch`, `auth:missing_secret`, `fn:unknown_target`, `flow:bad_step`, …
    pub code: String,
    /// What a person reads. Never a secret.
    pub message: String,
    /// The upstream's status, where it answered.
    pub upstream_status: Option<u16>,
    /// The same call may succeed later.
    pub retryable: bool,
    /// Where in the row or the flow, such as a step's key.
    pub at: Option<String>,
    /// What the upstream gave with its refusal.
    pub output: Option<Output>,
}

impl Failure {
    /// A failure that the same call would meet again.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Failure {
            code: code.into(),
            message: message.into(),
            upstream_status: None,
            retryable: false,
            at: None,
            output: None,
        }
    }

    /// Marks it as one that may pass.
    pub fn retryable(mut self) -> Self {
        self.retryable = true;
        self
    }
}

/// What a run gave: output, or a named failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It succeeded. The status is the upstream's, for rows that have one.
    Ok(Output, Option<u16>),
    /// It failed.
    Failed(Failure),
}

impl Outcome {
    /// Whether it succeeded.
    pub fn is_ok(&self) -> bool {
        matches!(self, Outcome::Ok(..))
    }

    /// The output, that of a refusal too.
    pub fn output(&self) -> Option<&Output> {
        match self {
            Outcome::Ok(output, _) => Some(output),
            Outcome::Failed(failure) => failure.output.as_ref(),
        }
    }

    /// The upstream's status.
    pub fn upstream_status(&self) -> Option<u16> {
        match self {
            Outcome::Ok(_, status) => *status,
            Outcome::Failed(failure) => failure.upstream_status,
        }
    }

    /// Whether it counts as material: it succeeded and gave output, or changed something (`204` of a write).
    pub fn is_material(&self, wrote: bool) -> bool {
        match self {
            Outcome::Ok(output, _) => wrote || !output.bytes.is_empty(),
            Outcome::Failed(_) => false,
        }
    }

    /// The seed's text form: `HTTP 200:<body>`, `ERR:http:401:<body>`, plain output for the rest.
    pub fn render(&self) -> String {
        match self {
            Outcome::Ok(output, Some(status)) => format!("HTTP {status}:{}", body_text(output)),
            Outcome::Ok(output, None) => body_text(output),
            Outcome::Failed(failure) => {
                let mut text = format!("ERR:{}", failure.code);
                let body = match &failure.output {
                    Some(output) if !output.bytes.is_empty() => body_text(output),
                    Some(_) | None => failure.message.clone(),
                };
                let _ = write!(text, ":{body}");
                text
            }
        }
    }
}

fn body_text(output: &Output) -> String {
    match output.as_text() {
        Some(text) if output.media_type == content::MEDIA_TYPE => {
            content::plain(text).unwrap_or_else(|| text.to_owned())
        }
        Some(text) => text.to_owned(),
        None => data_encoding::BASE64.encode(&output.bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_form_is_the_seeds() {
        assert_eq!(Outcome::Ok(Output::json("{}"), Some(200)).render(), "HTTP 200:{}");
        let refused = Failure {
            upstream_status: Some(401),
            output: Some(Output::text("no")),
            ..Failure::new("http:401", "the upstream answered 401")
        };
        assert_eq!(Outcome::Failed(refused).render(), "ERR:http:401:no");
        assert_eq!(
            Outcome::Failed(Failure::new("fn:unknown_target", "frobnicate")).render(),
            "ERR:fn:unknown_target:frobnicate"
        );
    }

    #[test]
    fn json_is_json_only_where_it_is_whole_and_shallow() {
        assert_eq!(Output::json("\u{feff}{\"a\":1e400}").as_json(), Some("{\"a\":1e400}"));
        assert_eq!(Output::json("<html>").as_json(), None);
        assert_eq!(Output::json("[".repeat(3000) + &"]".repeat(3000)).as_json(), None);
        assert_eq!(Output::text("{}").as_json(), None);
        assert_eq!(Output { truncated: true, ..Output::json("{}") }.as_json(), None);
    }
}
