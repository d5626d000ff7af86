//! JSON-RPC: one message in, one answer out. Values keep the text that they came with.

use callbook_domain::fault::{Fault, Kind};
use callbook_runtime::problem::http_body;
use http::StatusCode;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::answer::Raw;
use crate::request::Object;

/// Codes of JSON-RPC, of MCP's transport, and (above zero, where both leave room) of HTTP.
pub(super) mod code {
    pub(in crate::mcp) const PARSE: i64 = -32_700;
    pub(in crate::mcp) const INVALID_REQUEST: i64 = -32_600;
    pub(in crate::mcp) const METHOD_NOT_FOUND: i64 = -32_601;
    pub(in crate::mcp) const INVALID_PARAMS: i64 = -32_602;
    pub(in crate::mcp) const INTERNAL: i64 = -32_603;
    pub(in crate::mcp) const HEADER_MISMATCH: i64 = -32_020;
    pub(in crate::mcp) const MISSING_CAPABILITY: i64 = -32_021;
    pub(in crate::mcp) const UNSUPPORTED_VERSION: i64 = -32_022;
    /// What the seed's clients know as a missing credential.
    pub(in crate::mcp) const SEED_UNAUTHORIZED: i64 = -32_001;
}

/// The id of a request, as it came: a string or an integer.
#[derive(Clone, Debug)]
pub(super) struct Id(Raw);

impl Id {
    /// Its JSON text.
    pub(super) fn as_json(&self) -> &str {
        self.0.get()
    }

    fn read(raw: Raw) -> Option<Id> {
        let text = raw.get();
        let is_integer = || text.strip_prefix('-').unwrap_or(text).bytes().all(|byte| byte.is_ascii_digit());
        (text.starts_with('"') || is_integer()).then_some(Id(raw))
    }
}

/// What a client sent.
pub(super) enum Message {
    /// It waits for an answer.
    Request(Request),
    /// It does not.
    Notification,
    /// An answer to something that a server asked of it.
    Answer,
}

/// A request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Params,
}

/// The parameters of a request, each as it is written.
#[derive(Debug, Default)]
pub(super) struct Params(Option<Object>);

impl Params {
    /// Takes a parameter out and reads it.
    pub(super) fn take<T: for<'a> Deserialize<'a>>(&mut self, name: &str) -> Result<Option<T>, RpcError> {
        let Some(raw) = self.raw(name) else { return Ok(None) };
        match serde_json::from_str(raw.get()) {
            Ok(value) => Ok(Some(value)),
            Err(error) => Err(RpcError::params(format!("`{name}` cannot be read: {error}"))),
        }
    }

    /// As [`Params::take`], for what must be there.
    pub(super) fn require<T: for<'a> Deserialize<'a>>(&mut self, name: &str) -> Result<T, RpcError> {
        self.take(name)?.ok_or_else(|| RpcError::params(format!("`{name}` is missing")))
    }

    /// Takes a parameter out as it is written; null is absent.
    pub(super) fn raw(&mut self, name: &str) -> Option<Raw> {
        self.0.as_mut()?.take(name).filter(|raw| raw.get() != "null")
    }

    /// Takes a parameter out, null too.
    pub(super) fn raw_or_null(&mut self, name: &str) -> Option<Raw> {
        self.0.as_mut()?.take(name)
    }
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default)]
    jsonrpc: Option<String>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Raw>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Option<Raw>,
    #[serde(default)]
    result: Option<IgnoredAny>,
    #[serde(default)]
    error: Option<IgnoredAny>,
}

/// A value that is there, `null` too.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Raw>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a body. The error has the id of the request where it could be read.
pub(super) fn read(body: &[u8]) -> Result<Message, (Option<Id>, Box<RpcError>)> {
    let refused = |error: RpcError| (None, Box::new(error));
    if serde_json::from_slice::<IgnoredAny>(body).is_err() {
        return Err(refused(RpcError::bad(code::PARSE, "the body is not JSON")));
    }
    let envelope: Envelope = serde_json::from_slice(body).map_err(|error| {
        refused(RpcError::bad(code::INVALID_REQUEST, format!("the body is not one JSON-RPC message: {error}")))
    })?;
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return Err(refused(RpcError::bad(code::INVALID_REQUEST, "`jsonrpc` must be \"2.0\"")));
    }
    let id = match envelope.id {
        None => None,
        Some(raw) => match Id::read(raw) {
            Some(id) => Some(id),
            None => return Err(refused(RpcError::bad(code::INVALID_REQUEST, "`id` must be a string or an integer"))),
        },
    };
    let is_answer = envelope.result.is_some() || envelope.error.is_some();
    let (method, id) = match (envelope.method, id) {
        (Some(method), Some(id)) => (method, id),
        (Some(_), None) => return Ok(Message::Notification),
        (None, Some(_)) if is_answer => return Ok(Message::Answer),
        (None, id) => return Err((id, Box::new(RpcError::bad(code::INVALID_REQUEST, "`method` is missing")))),
    };
    match envelope.params.map(|raw| serde_json::from_str(raw.get())).transpose() {
        Ok(params) => Ok(Message::Request(Request { id, method, params: Params(params) })),
        Err(error) => Err((Some(id), Box::new(RpcError::params(format!("`params` cannot be read: {error}"))))),
    }
}

/// A refusal in JSON-RPC's form, with the HTTP status under which it goes out.
#[derive(Debug)]
pub(super) struct RpcError {
    pub(super) status: StatusCode,
    pub(super) code: i64,
    pub(super) message: String,
    pub(super) data: Option<Value>,
    /// What the caller should know about its credential.
    pub(super) challenge: Option<Challenge>,
    /// After how many seconds another try makes sense.
    pub(super) retry_after: Option<u64>,
}

/// What `WWW-Authenticate` says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Challenge {
    /// Show a credential, or another one.
    Credential,
    /// Come back with more rights: these.
    Scope(String),
}

impl RpcError {
    pub(super) fn new(status: StatusCode, code: i64, message: impl Into<String>) -> Self {
        RpcError { status, code, message: message.into(), data: None, challenge: None, retry_after: None }
    }

    /// A message that breaks the protocol: 400.
    pub(super) fn bad(code: i64, message: impl Into<String>) -> Self {
        RpcError::new(StatusCode::BAD_REQUEST, code, message)
    }

    /// Parameters that do not do.
    pub(super) fn params(message: impl Into<String>) -> Self {
        RpcError::new(StatusCode::OK, code::INVALID_PARAMS, message)
    }

    /// A method that is not there.
    pub(super) fn method(status: StatusCode, method: &str) -> Self {
        RpcError::new(status, code::METHOD_NOT_FOUND, format!("`{method}` is not a method of this server"))
    }

    pub(super) fn with(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }
}

impl From<Fault> for RpcError {
    fn from(fault: Fault) -> Self {
        let (status, body) = http_body(&fault);
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let (status, code) = match fault.kind() {
            Kind::Invalid | Kind::NotFound | Kind::Precondition | Kind::Conflict => {
                (StatusCode::OK, code::INVALID_PARAMS)
            }
            Kind::Internal => (status, code::INTERNAL),
            Kind::Unauthenticated | Kind::Forbidden | Kind::Exhausted | Kind::Unavailable => {
                (status, i64::from(status.as_u16()))
            }
        };
        let mut error = RpcError::new(status, code, fault.message().to_owned());
        error.data = Some(json!({"error": body["error"], "fix": fault.how_to_fix()}));
        error.challenge = match fault.kind() {
            Kind::Unauthenticated => Some(Challenge::Credential),
            Kind::Forbidden => Some(Challenge::Scope(needs(&fault).unwrap_or_default().to_owned())),
            Kind::Invalid | Kind::NotFound | Kind::Conflict | Kind::Precondition => None,
            Kind::Exhausted | Kind::Unavailable | Kind::Internal => None,
        };
        let waits = matches!(fault.kind(), Kind::Exhausted | Kind::Unavailable);
        error.retry_after = waits.then(|| fault.retry_after().unwrap_or(1_000).div_ceil(1_000).max(1));
        error
    }
}

/// What a refused caller lacks.
pub(super) fn needs(fault: &Fault) -> Option<&str> {
    fault.metadata().iter().find(|(name, _)| *name == "needs").map(|(_, needs)| needs.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &str) -> i64 {
        match read(body.as_bytes()) {
            Ok(_) => panic!("{body} was taken"),
            Err((_, error)) => error.code,
        }
    }

    #[test]
    fn a_request_keeps_the_text_of_its_id_and_parameters() {
        let body = br#"{"jsonrpc":"2.0","id":"a\u0062","method":"m","params":{"n":1.10}}"#;
        let Ok(Message::Request(mut request)) = read(body) else { panic!("not taken") };
        assert_eq!(request.id.as_json(), r#""a\u0062""#);
        assert_eq!(request.params.raw("n").unwrap().get(), "1.10");
        assert!(request.params.raw("n").is_none());
    }

    #[test]
    fn what_is_no_message_is_refused_by_its_code() {
        for bad in ["", "{", "{}{}"] {
            assert_eq!(refused(bad), code::PARSE, "{bad}");
        }
        for bad in [
            "[]",
            "1",
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            r#"{"id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#,
        ] {
            assert_eq!(refused(bad), code::INVALID_REQUEST, "{bad}");
        }
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":[1]}"#), code::INVALID_PARAMS);
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":1,"a":2}}"#), code::INVALID_PARAMS);
    }

    #[test]
    fn notifications_and_answers_are_told_apart_from_requests() {
        assert!(matches!(read(br#"{"jsonrpc":"2.0","method":"n"}"#), Ok(Message::Notification)));
        assert!(matches!(read(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), Ok(Message::Answer)));
    }
}
