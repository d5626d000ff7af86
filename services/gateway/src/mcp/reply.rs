//! Results and refusals as JSON-RPC and HTTP have them.

use std::fmt::Write as _;

use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde_json::{Value, json};

use super::era::Era;
use super::message::{Challenge, Id, RpcError};
use crate::answer::{Raw, media};
use crate::config::Config;

/// The result of a request: its fields in order.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    fields: Vec<(&'static str, Raw)>,
    meta: Vec<(&'static str, Value)>,
    hints: Option<Hints>,
    needs_input: bool,
}

/// How long a result may be kept, and by whom.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hints {
    /// In milliseconds.
    pub(super) ttl_ms: u64,
    /// It is the same for every caller.
    pub(super) public: bool,
}

impl Hints {
    /// What is the same for all callers of this version.
    pub(super) const FIXED: Hints = Hints { ttl_ms: 3_600_000, public: true };
    /// What hangs on the caller and on the book.
    pub(super) const BOOK: Hints = Hints { ttl_ms: 5_000, public: false };
    /// What may be another thing the next time.
    pub(super) const NONE: Hints = Hints { ttl_ms: 0, public: false };
}

impl Outcome {
    /// A result with one field.
    pub(super) fn of(name: &'static str, value: &impl Serialize) -> Self {
        Outcome::default().field(name, value)
    }

    /// One more field.
    pub(super) fn field(mut self, name: &'static str, value: &impl Serialize) -> Self {
        self.fields.push((name, serde_json::value::to_raw_value(value).expect("a result is plain data")));
        self
    }

    /// A field where there is a value.
    pub(super) fn optional(self, name: &'static str, value: Option<&impl Serialize>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// A key of `_meta`.
    pub(super) fn meta(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.meta.push((name, value.into()));
        self
    }

    /// How long it may be kept; only the modern revision says so.
    pub(super) fn hints(mut self, hints: Hints) -> Self {
        self.hints = Some(hints);
        self
    }

    /// It is no end: the client has to ask somebody and come back.
    pub(super) fn input_required(mut self) -> Self {
        self.needs_input = true;
        self
    }

    /// The fields as one JSON object.
    pub(super) fn object(&self) -> String {
        let fields: Vec<String> =
            self.fields.iter().map(|(name, value)| format!("\"{name}\":{}", value.get())).collect();
        format!("{{{}}}", fields.join(","))
    }

    /// The whole message.
    pub(super) fn message(&self, id: &Id, era: &Era) -> String {
        let mut text = format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{", id.as_json());
        let mut first = true;
        let mut add = |name: &str, value: &str| {
            let comma = if std::mem::take(&mut first) { "" } else { "," };
            let _ = write!(text, "{comma}\"{name}\":{value}");
        };
        if era.is_modern() {
            add("resultType", if self.needs_input { "\"input_required\"" } else { "\"complete\"" });
        }
        for (name, value) in &self.fields {
            add(name, value.get());
        }
        if let Some(hints) = self.hints.filter(|_| era.is_modern()) {
            add("ttlMs", &hints.ttl_ms.to_string());
            add("cacheScope", if hints.public { "\"public\"" } else { "\"private\"" });
        }
        let mut meta: serde_json::Map<String, Value> =
            self.meta.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        if era.is_modern() {
            meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), server_info());
        }
        if !meta.is_empty() {
            add("_meta", &Value::Object(meta).to_string());
        }
        text.push_str("}}");
        text
    }
}

/// What this server is called.
pub(super) fn server_info() -> Value {
    json!({"name": "callbook", "title": "Callbook", "version": env!("CARGO_PKG_VERSION")})
}

/// A notification.
pub(super) fn notification(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// A message of refusal; without an id where none could be read.
pub(super) fn refusal(id: Option<&Id>, error: &RpcError) -> String {
    let mut told = json!({"code": error.code, "message": error.message});
    if let Some(data) = &error.data {
        told["data"] = data.clone();
    }
    match id {
        Some(id) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{},\"error\":{told}}}", id.as_json()),
        None => format!("{{\"jsonrpc\":\"2.0\",\"error\":{told}}}"),
    }
}

/// A message as the whole answer.
pub(super) fn whole(message: String) -> Response {
    media(StatusCode::OK, "application/json", message)
}

/// A refusal as the whole answer, with what HTTP says beside it.
pub(super) fn refused(id: Option<&Id>, error: &RpcError, base: &str, path: &str, config: &Config) -> Response {
    let mut response = media(error.status, "application/json", refusal(id, error));
    let challenge = error.challenge.as_ref().map(|challenge| {
        let metadata = (!config.issuers.is_empty())
            .then(|| format!("resource_metadata=\"{base}/.well-known/oauth-protected-resource{path}\""));
        let parts: Vec<String> = match challenge {
            Challenge::Credential => metadata.into_iter().collect(),
            Challenge::Scope(scope) => {
                let told = ["error=\"insufficient_scope\"".to_owned(), format!("scope=\"{scope}\"")];
                told.into_iter().chain(metadata).collect()
            }
        };
        format!("Bearer {}", parts.join(", ")).trim_end().to_owned()
    });
    if let Some(Ok(challenge)) = challenge.map(|text| HeaderValue::from_str(&text)) {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    if let Some(seconds) = error.retry_after {
        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
    }
    response
}
