//! Which revision of the protocol a request is written in. Every request says it by itself.

use http::{HeaderMap, HeaderName, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::message::{RpcError, code};

/// The revision whose requests carry everything themselves.
pub(super) const MODERN: &str = "2026-07-28";
/// Revisions that begin with `initialize`, newest first.
pub(super) const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The header that names the revision.
pub(super) const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// Every revision that is served, newest first.
pub(super) fn served() -> Vec<&'static str> {
    std::iter::once(MODERN).chain(LEGACY).collect()
}

/// The revision of one request, with what its client can do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Era {
    /// 2026-07-28: the request says who asks and what the client can do.
    Modern(Capabilities),
    /// 2025-11-25 and before; nothing is known of the client.
    Legacy,
}

impl Era {
    pub(super) fn is_modern(&self) -> bool {
        matches!(self, Era::Modern(_))
    }
}

/// What a client says that it can do.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Capabilities {
    #[serde(default)]
    elicitation: Option<Map<String, Value>>,
}

impl Capabilities {
    /// Whether it can put a form before a person. A client that names no mode can.
    pub(super) fn can_show_form(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
    }

    /// Whether it can open an address for a person.
    pub(super) fn can_open_url(&self) -> bool {
        self.elicitation.as_ref().is_some_and(|modes| modes.contains_key("url"))
    }
}

/// What the request says about itself in `_meta`.
#[derive(Debug, Default)]
pub(super) struct Meta(Map<String, Value>);

impl Meta {
    /// Reads `_meta`; absent is empty.
    pub(super) fn new(meta: Option<Map<String, Value>>) -> Self {
        Meta(meta.unwrap_or_default())
    }

    /// The token under which the client wants to hear of progress.
    pub(super) fn progress_token(&self) -> Option<&Value> {
        self.0.get("progressToken").filter(|token| token.is_string() || token.is_i64() || token.is_u64())
    }

    /// The trace that the request belongs to, as headers have it.
    pub(super) fn trace(&self) -> HeaderMap {
        let named = ["traceparent", "tracestate"].into_iter().filter_map(|name| {
            let value = self.0.get(name)?.as_str()?.parse().ok()?;
            Some((HeaderName::from_static(name), value))
        });
        named.collect()
    }

    fn version(&self) -> Option<&str> {
        self.0.get(VERSION_KEY)?.as_str()
    }
}

/// The era of a request, or why it cannot be told.
pub(super) fn of(headers: &HeaderMap, meta: &Meta) -> Result<Era, RpcError> {
    let named = headers.get(VERSION).map(|value| value.to_str().unwrap_or_default().trim());
    let is_legacy = |version: &str| LEGACY.contains(&version);
    let version = match (named, meta.version()) {
        (None, None) => return Ok(Era::Legacy),
        (Some(named), None) if is_legacy(named) => return Ok(Era::Legacy),
        (Some(MODERN), None) => return Err(lacks(VERSION_KEY)),
        (Some(named), None) => return Err(unsupported(named)),
        (None, Some(_)) => return Err(mismatch(format!("the header `{VERSION}` is missing"))),
        (Some(named), Some(version)) if named != version => {
            return Err(mismatch(format!("the header `{VERSION}` says `{named}` and the body `{version}`")));
        }
        (Some(_), Some(version)) => version,
    };
    match version {
        MODERN => match meta.0.get(CAPABILITIES_KEY) {
            Some(told @ Value::Object(_)) => serde_json::from_value(told.clone())
                .map(Era::Modern)
                .map_err(|_| RpcError::bad(code::INVALID_PARAMS, format!("`_meta.{CAPABILITIES_KEY}` cannot be read"))),
            Some(_) | None => Err(lacks(CAPABILITIES_KEY)),
        },
        version if is_legacy(version) => Ok(Era::Legacy),
        other => Err(unsupported(other)),
    }
}

/// The revision that `initialize` agrees on: the one that was asked for, or the newest that begins so.
pub(super) fn agreed(asked: &str) -> &'static str {
    LEGACY.into_iter().find(|version| *version == asked).unwrap_or(LEGACY[0])
}

/// A header that does not say what the body says.
pub(super) fn mismatch(message: String) -> RpcError {
    RpcError::bad(code::HEADER_MISMATCH, message)
}

/// A request that needs a form of a client that did not say it shows any.
pub(super) fn needs_form() -> RpcError {
    RpcError::new(StatusCode::BAD_REQUEST, code::MISSING_CAPABILITY, "this call needs an answer of a person")
        .with(json!({"requiredCapabilities": {"elicitation": {"form": {}}}}))
}

fn lacks(key: &str) -> RpcError {
    RpcError::bad(code::INVALID_PARAMS, format!("`_meta` lacks `{key}`"))
}

fn unsupported(asked: &str) -> RpcError {
    RpcError::bad(code::UNSUPPORTED_VERSION, "this revision of the protocol is not served")
        .with(json!({"supported": served(), "requested": asked}))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn era(header: Option<&str>, meta: Value) -> Result<Era, i64> {
        let mut headers = HeaderMap::new();
        if let Some(version) = header {
            headers.insert(VERSION, version.parse().unwrap());
        }
        let Value::Object(meta) = meta else { panic!("an object") };
        of(&headers, &Meta(meta)).map_err(|error| error.code)
    }

    #[test]
    fn a_request_says_its_own_era() {
        let modern = json!({VERSION_KEY: MODERN, CAPABILITIES_KEY: {}});
        assert!(era(Some(MODERN), modern).unwrap().is_modern());
        assert_eq!(era(None, json!({})), Ok(Era::Legacy));
        for version in LEGACY {
            assert_eq!(era(Some(version), json!({})), Ok(Era::Legacy));
        }
    }

    #[test]
    fn what_does_not_fit_is_refused_by_its_code() {
        assert_eq!(era(Some(MODERN), json!({})), Err(code::INVALID_PARAMS));
        assert_eq!(era(Some(MODERN), json!({VERSION_KEY: MODERN})), Err(code::INVALID_PARAMS));
        assert_eq!(era(Some(MODERN), json!({VERSION_KEY: MODERN, CAPABILITIES_KEY: 1})), Err(code::INVALID_PARAMS));
        assert_eq!(era(Some(MODERN), json!({VERSION_KEY: "v9"})), Err(code::HEADER_MISMATCH));
        assert_eq!(era(None, json!({VERSION_KEY: MODERN})), Err(code::HEADER_MISMATCH));
        assert_eq!(era(Some("v9"), json!({VERSION_KEY: "v9"})), Err(code::UNSUPPORTED_VERSION));
        assert_eq!(era(Some("v9"), json!({})), Err(code::UNSUPPORTED_VERSION));
    }

    #[test]
    fn a_client_shows_forms_unless_it_names_other_modes_alone() {
        let can = |told: Value| serde_json::from_value::<Capabilities>(told).unwrap().can_show_form();
        assert!(can(json!({"elicitation": {}})) && can(json!({"elicitation": {"form": {}, "url": {}}})));
        assert!(!can(json!({"elicitation": {"url": {}}})) && !can(json!({"sampling": {}})));
    }
}
