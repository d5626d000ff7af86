//! Query strings: every parameter is known, given once and UTF-8, or the request is refused with the list.

use std::num::NonZeroU32;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use callbook_domain::fault::{Fault, Reason, Result};
use http::Uri;
use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use utoipa::{IntoParams, ToSchema};

use crate::answer::Refusal;
use crate::app::App;

/// The parameter that every JSON answer takes.
const PRETTY: &str = "pretty";

/// The parameters of a request, as the API document names them.
pub(crate) struct Query<T>(pub(crate) T);

impl<T: DeserializeOwned + IntoParams> Query<T> {
    /// Reads the query of an address.
    pub(crate) fn read(uri: &Uri) -> Result<T> {
        let known: Vec<String> = T::into_params(|| None).into_iter().map(|parameter| parameter.name).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        recognize(&names(uri)?, &known)?;
        match axum::extract::Query::<T>::try_from_uri(uri) {
            Ok(axum::extract::Query(parameters)) => Ok(parameters),
            Err(rejection) => Err(Fault::new(Reason::InvalidRequest, sentence(&rejection))),
        }
    }
}

impl<T: DeserializeOwned + IntoParams> FromRequestParts<Arc<App>> for Query<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &Arc<App>) -> std::result::Result<Self, Refusal> {
        Ok(Query(Query::<T>::read(&parts.uri)?))
    }
}

/// Entries a page, from 1.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[schema(value_type = u32, format = Int64, minimum = 1, maximum = 4_294_967_295_i64)]
pub(crate) struct Limit(NonZeroU32);

impl Limit {
    /// The size of the wire: 0 where the caller leaves it to the service.
    pub(crate) fn page_size(limit: Option<Limit>) -> u32 {
        limit.map_or(0, |Limit(size)| size.get())
    }
}

/// A switch of a query: `true` or `false`; `1` and `0` are taken too, as in bodies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(try_from = "String")]
#[schema(value_type = bool)]
pub(crate) struct Switch(pub(crate) bool);

impl TryFrom<String> for Switch {
    type Error = &'static str;

    fn try_from(text: String) -> std::result::Result<Self, Self::Error> {
        match text.as_str() {
            "true" | "1" => Ok(Switch(true)),
            "false" | "0" => Ok(Switch(false)),
            _ => Err("it must be true or false"),
        }
    }
}

/// Refuses every parameter, for addresses that take none.
pub(crate) fn nothing(uri: &Uri) -> Result<()> {
    recognize(&names(uri)?, &[])
}

/// The names of the parameters in their order.
///
/// # Errors
/// A name or a value that is not UTF-8 when decoded.
pub(crate) fn names(uri: &Uri) -> Result<Vec<String>> {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let names = pairs.map(|pair| {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let name = decoded(name)?;
        decoded(value)?;
        Ok(name)
    });
    names.collect()
}

/// Refuses names that are not known, and names that stand twice.
pub(crate) fn recognize(received: &[String], known: &[&str]) -> Result<()> {
    if received.iter().any(|name| name != PRETTY && !known.contains(&name.as_str())) {
        return Err(Fault::new(Reason::UnrecognizedRequest, "the query has a parameter that is not known here")
            .with("received_params", json!(received).to_string())
            .with("recognized", json!(known).to_string()));
    }
    let twice = received.iter().enumerate().find(|(at, name)| received[..*at].contains(name));
    match twice {
        Some((_, name)) => {
            Err(Fault::new(Reason::InvalidRequest, format!("`{name}` is there twice")).with("field", "query"))
        }
        None => Ok(()),
    }
}

/// Whether a switch such as `pretty` is on: there, and not `0` or `false`.
pub(crate) fn wants(uri: &Uri, switch: &str) -> bool {
    let pairs = uri.query().unwrap_or_default().split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.into_iter().any(|(name, value)| name == switch && !matches!(value, "0" | "false"))
}

/// A name or a value of a query.
///
/// # Errors
/// One that is not UTF-8.
pub(crate) fn decoded(text: &str) -> Result<String> {
    let text = text.replace('+', " ");
    match percent_decode_str(&text).decode_utf8() {
        Ok(text) => Ok(text.into_owned()),
        Err(_) => Err(Fault::new(Reason::InvalidRequest, "the query is not UTF-8")),
    }
}

/// The reader's words about the parameter, without what it says about itself.
fn sentence(rejection: &axum::extract::rejection::QueryRejection) -> String {
    let text = rejection.body_text();
    text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize, IntoParams)]
    #[expect(dead_code, reason = "only its reading is tested")]
    struct Some {
        ask: Option<String>,
        limit: Option<u32>,
    }

    fn read(query: &str) -> Result<Some> {
        Query::<Some>::read(&format!("/x?{query}").parse().unwrap())
    }

    #[test]
    fn an_unknown_parameter_is_named_beside_the_known_ones() {
        let fault = read("ask=x&purpose=y&pretty").unwrap_err();
        assert_eq!(fault.reason(), Reason::UnrecognizedRequest);
        assert_eq!(fault.metadata()[0], ("received_params", r#"["ask","purpose","pretty"]"#.to_owned()));
        assert_eq!(fault.metadata()[1], ("recognized", r#"["ask","limit"]"#.to_owned()));
    }

    #[test]
    fn what_cannot_be_read_is_refused() {
        for bad in ["limit=x", "limit=", "limit=-1", "ask=%ff", "ask=a&ask=b", "%ff=1"] {
            assert_eq!(read(bad).unwrap_err().reason(), Reason::InvalidRequest, "{bad}");
        }
        assert_eq!(read("ask=a+b%20c&&limit=3").unwrap().ask.as_deref(), Option::Some("a b c"));
    }

    #[test]
    fn a_switch_is_on_unless_it_says_no() {
        let on = |query: &str| wants(&format!("/x?{query}").parse().unwrap(), "pretty");
        assert!(on("pretty") && on("a=1&pretty=1") && !on("pretty=0") && !on("pretty=false") && !on("prettyx"));
    }
}
