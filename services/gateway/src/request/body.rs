//! JSON bodies: whole, within bounds, in time, every name once.

use std::fmt;
use std::sync::Arc;

use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason};
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::answer::Refusal;
use crate::app::App;

/// A body of the given form, read from JSON.
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequest<Arc<App>> for JsonBody<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Refusal> {
        let text = json_text(request, app).await?;
        serde_json::from_slice(&text).map(JsonBody).map_err(|error| unreadable(&error).into())
    }
}

/// A JSON object whose values are kept as they are written. A name that stands twice is refused, because two readers
/// might take different ones.
#[derive(Debug)]
pub(crate) struct Object(Vec<(String, Box<RawValue>)>);

impl Object {
    /// Takes a field out.
    pub(crate) fn take(&mut self, name: &str) -> Option<Box<RawValue>> {
        let at = self.0.iter().position(|(other, _)| other == name)?;
        Some(self.0.remove(at).1)
    }

    /// Takes a switch out; absent and null are off, `0` and `1` are taken too.
    pub(crate) fn take_switch(&mut self, name: &'static str) -> Result<bool, Fault> {
        match self.take(name).as_deref().map(RawValue::get) {
            None | Some("false" | "0" | "null") => Ok(false),
            Some("true" | "1") => Ok(true),
            Some(_) => {
                Err(Fault::new(Reason::InvalidRequest, format!("`{name}` must be true or false")).with("field", name))
            }
        }
    }

    /// Sets a field to a text.
    pub(crate) fn set(&mut self, name: &str, text: &str) {
        self.take(name);
        let value = serde_json::value::to_raw_value(text).expect("a string is always JSON");
        self.0.insert(0, (name.to_owned(), value));
    }

    /// The object as JSON text, values unchanged.
    pub(crate) fn to_json(&self) -> Bytes {
        let mut text = String::from("{");
        for (at, (name, value)) in self.0.iter().enumerate() {
            if at > 0 {
                text.push(',');
            }
            text.push_str(&serde_json::Value::from(name.as_str()).to_string());
            text.push(':');
            text.push_str(value.get());
        }
        text.push('}');
        text.into()
    }
}

/// Reads a body as one JSON object.
pub(crate) async fn object(request: Request, app: &App) -> Result<Object, Refusal> {
    let text = json_text(request, app).await?;
    serde_json::from_slice(&text).map_err(|error| unreadable(&error).into())
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor)
    }
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
        let mut fields: Vec<(String, Box<RawValue>)> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        while let Some((name, value)) = map.next_entry::<String, Box<RawValue>>()? {
            if !seen.insert(name.clone()) {
                return Err(serde::de::Error::custom(format_args!("duplicate field `{name}`")));
            }
            fields.push((name, value));
        }
        Ok(Object(fields))
    }
}

/// A body of JSON, as it is written.
pub(crate) async fn json_text(request: Request, app: &App) -> Result<Bytes, Refusal> {
    if !is_json(request.headers()) {
        return Err(unsupported("send JSON with `content-type: application/json`"));
    }
    let limit = app.config.limits.request_bytes.map_or(usize::MAX, std::num::NonZero::get);
    let whole = Limited::new(request.into_body(), limit).collect();
    match tokio::time::timeout(app.config.body_timeout, whole).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_large(limit).into()),
        Ok(Err(_)) => Err(Fault::new(Reason::InvalidRequest, "the body broke off").into()),
        Err(_) => Err(Refusal::with_status(
            StatusCode::REQUEST_TIMEOUT,
            Fault::new(Reason::InvalidRequest, "the body did not arrive in time"),
        )),
    }
}

/// The refusal of a body over its bound.
pub(crate) fn too_large(limit: usize) -> Fault {
    Fault::new(Reason::RequestTooLarge, format!("the body is larger than {limit} bytes"))
}

/// The refusal of a media type.
pub(crate) fn unsupported(fix: &'static str) -> Refusal {
    let fault = Fault::new(Reason::InvalidRequest, "the body is of a media type that is not taken here").fix(fix);
    Refusal::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, fault)
}

/// Whether the body may be an import: NDJSON or JSON, or bytes that do not say what they are.
pub(crate) fn is_import(headers: &HeaderMap) -> bool {
    let Some(essence) = essence(headers) else { return true };
    let text = ["application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines"];
    is_json(headers)
        || text.contains(&essence.as_str())
        || matches!(essence.as_str(), "text/plain" | "application/octet-stream")
}

fn is_json(headers: &HeaderMap) -> bool {
    essence(headers).is_some_and(|essence| essence == "application/json" || essence.ends_with("+json"))
}

fn essence(headers: &HeaderMap) -> Option<String> {
    let text = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    Some(text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

/// What the reader says, which names fields and places and never repeats more than a name.
pub(crate) fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::new(Reason::InvalidRequest, format!("the body cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_the_text_of_its_values() {
        let mut object: Object =
            serde_json::from_str(r#"{"key":"K","seq": 1.10,"allow_lookalike":true,"é":[1, 2]}"#).unwrap();
        assert!(object.take_switch("allow_lookalike").unwrap());
        assert!(!object.take_switch("allow_lookalike").unwrap());
        assert_eq!(object.to_json(), r#"{"key":"K","seq":1.10,"é":[1, 2]}"#.as_bytes());
    }

    #[test]
    fn a_name_that_stands_twice_is_refused() {
        let error = serde_json::from_str::<Object>(r#"{"key":"A","key":"B"}"#).unwrap_err();
        assert!(error.to_string().starts_with("duplicate field `key`"), "{error}");
    }

    #[test]
    fn only_one_whole_object_is_an_object() {
        for bad in ["", "[]", "1", "{}{}", "{\"a\":}", "null", "{\"a\":1,}"] {
            assert!(serde_json::from_str::<Object>(bad).is_err(), "{bad}");
        }
    }
}
