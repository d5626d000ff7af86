//! Headers that repeat what the body says, so that what stands between can route without reading it.

use data_encoding::BASE64;
use http::{HeaderMap, HeaderName};
use serde_json::Value;

use super::era::mismatch;
use super::message::RpcError;

const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const PARAMETER: &str = "mcp-param-";

/// Refuses a request whose `Mcp-Method` is missing or says something else than its body.
pub(super) fn check_method(headers: &HeaderMap, method: &str) -> Result<(), RpcError> {
    same(headers, METHOD, method)
}

/// The same for `Mcp-Name` and the name or address that the request is about.
pub(super) fn check_name(headers: &HeaderMap, name: &str) -> Result<(), RpcError> {
    same(headers, NAME, name)
}

/// Refuses a call whose `Mcp-Param-…` does not repeat the argument. An argument that is absent or null has none.
pub(super) fn check_parameter(headers: &HeaderMap, suffix: &str, argument: Option<&Value>) -> Result<(), RpcError> {
    let name = format!("{PARAMETER}{}", suffix.to_ascii_lowercase());
    let expected = match argument {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(flag)) => flag.to_string(),
        Some(Value::Number(number)) => {
            let told = read(headers, &name)?;
            let equal = told.parse::<f64>().is_ok_and(|told| Some(told) == number.as_f64());
            return if equal { Ok(()) } else { Err(differs(&name)) };
        }
        // The arguments' own check refuses them.
        Some(Value::Array(_) | Value::Object(_)) => return Ok(()),
    };
    same(headers, &name, &expected)
}

fn same(headers: &HeaderMap, name: &str, expected: &str) -> Result<(), RpcError> {
    if read(headers, name)? == expected { Ok(()) } else { Err(differs(name)) }
}

/// The header's one value, decoded where it is wrapped.
fn read(headers: &HeaderMap, name: &str) -> Result<String, RpcError> {
    let missing = || mismatch(format!("the header `{name}` is missing"));
    let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| missing())?;
    let mut values = headers.get_all(header).iter();
    let value = values.next().ok_or_else(missing)?;
    if values.next().is_some() {
        return Err(mismatch(format!("the header `{name}` is there twice")));
    }
    let text = value.to_str().map_err(|_| mismatch(format!("the header `{name}` is not ASCII")))?.trim();
    let Some(encoded) = text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) else {
        return Ok(text.to_owned());
    };
    let bytes = BASE64.decode(encoded.as_bytes()).ok();
    bytes
        .and_then(|bytes| String::from_utf8(bytes).ok())
        .ok_or_else(|| mismatch(format!("the header `{name}` is not Base64 of a text")))
}

fn differs(name: &str) -> RpcError {
    mismatch(format!("the header `{name}` does not say what the body says"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        [(HeaderName::from_static(name), value.parse().unwrap())].into_iter().collect()
    }

    #[test]
    fn a_header_must_say_what_the_body_says() {
        assert!(check_method(&headers("mcp-method", " tools/list "), "tools/list").is_ok());
        assert!(check_method(&headers("mcp-method", "TOOLS/LIST"), "tools/list").is_err());
        assert!(check_method(&HeaderMap::new(), "tools/list").is_err());
        assert!(check_name(&headers("mcp-name", "=?base64?w6k=?="), "é").is_ok());
        for bad in ["=?base64?w6k?=", "=?base64?w!k=?=", "e"] {
            assert!(check_name(&headers("mcp-name", bad), "é").is_err(), "{bad}");
        }
        assert!(check_name(&headers("mcp-name", "=?base64?w6k="), "=?base64?w6k=").is_ok(), "not wrapped whole");
    }

    #[test]
    fn an_argument_is_repeated_by_its_value() {
        let check =
            |value: &str, argument| check_parameter(&headers("mcp-param-region", value), "Region", Some(&argument));
        assert!(check("eu", json!("eu")).is_ok() && check("us", json!("eu")).is_err());
        assert!(check("42.0", json!(42)).is_ok() && check("43", json!(42)).is_err());
        assert!(check("true", json!(true)).is_ok() && check("True", json!(true)).is_err());
        let none = HeaderMap::new();
        assert!(check_parameter(&none, "Region", None).is_ok());
        assert!(check_parameter(&none, "Region", Some(&Value::Null)).is_ok());
        assert!(check_parameter(&none, "Region", Some(&json!("eu"))).is_err());
    }
}
