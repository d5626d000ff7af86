//! `http_fetch`: one request to a public origin, with no credential but what its arguments hold.

use callbook_domain::arguments::Argument;
use callbook_domain::json::{self, JsonKind};
use callbook_domain::outcome::{Failure, Outcome};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use url::Url;

use super::{World, refused, text_of};
use crate::call::Ran;
use crate::egress::{Origin, Outbound, Policy, Redirects, check_url};
use crate::runner::exchange::exchange;
use crate::runner::http::limits;

/// Fetches `url`, or sends `method|url|headers|body`, the headers a JSON object.
pub(super) async fn fetch(world: &World<'_>, arguments: &[Argument]) -> Ran {
    match outbound(world.app.egress.policy(), arguments) {
        Err(failure) => Ran::local(Outcome::Failed(failure)),
        Ok(outbound) => {
            let is_safe = outbound.method.is_safe();
            exchange(&world.app.egress, outbound, limits(world.call, world.limit), is_safe).await
        }
    }
}

fn outbound(policy: &Policy, arguments: &[Argument]) -> Result<Outbound, Failure> {
    let (method, url) = match arguments {
        [url] => (Method::GET, url.as_text()),
        _ => (method(text_of(arguments, 0))?, text_of(arguments, 1)),
    };
    let url = public(policy, url)?;
    let mut headers = headers(text_of(arguments, 2))?;
    let body = text_of(arguments, 3);
    if !body.is_empty() && !headers.iter().any(|(name, _)| *name == CONTENT_TYPE) {
        let is_json = json::check(body).is_ok() && matches!(json::kind(body), JsonKind::Object | JsonKind::Array);
        let media_type = if is_json { "application/json" } else { "text/plain; charset=utf-8" };
        headers.push((CONTENT_TYPE, HeaderValue::from_static(media_type)));
    }
    let body = (!body.is_empty()).then(|| body.to_owned().into());
    Ok(Outbound { method, url, headers, body, secret: None, redirects: Redirects::None })
}

fn method(word: &str) -> Result<Method, Failure> {
    Method::from_bytes(word.trim().to_ascii_uppercase().as_bytes())
        .map_err(|_| refused("of several arguments the first is the method, as `GET`, and the second is the URL"))
}

/// A URL that is public by itself. An origin that the operator allows is not one: it may lead into the operator's own
/// network, where only the operator's rows go.
fn public(policy: &Policy, url: &str) -> Result<Url, Failure> {
    let url = check_url(&Policy::default(), url.trim())
        .map_err(|refusal| Failure::new(format!("http:refused:{}", refusal.as_str()), refusal.to_string()))?;
    if Origin::of(&url).is_some_and(|origin| policy.allows(&origin)) {
        return Err(Failure::new(
            "http:refused:origin",
            "this origin is for rows that name it and not for `http_fetch`",
        ));
    }
    Ok(url)
}

fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, Failure> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let members = json::object(text).map_err(|_| refused("the headers are not a JSON object"))?;
    let header = |(name, raw): (String, Box<serde_json::value::RawValue>)| {
        let value = match json::kind(raw.get()) {
            JsonKind::String => json::unescape(raw.get()).ok(),
            JsonKind::Number | JsonKind::Boolean => Some(raw.get().to_owned()),
            JsonKind::Object | JsonKind::Array | JsonKind::Null => None,
        };
        match (HeaderName::try_from(&name), value.map(HeaderValue::try_from)) {
            (Ok(name), Some(Ok(value))) => Ok((name, value)),
            (Err(_), _) | (_, Some(Err(_)) | None) => Err(refused("a header cannot be sent as it is given")),
        }
    };
    members.into_iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn built(policy: &Policy, texts: &[&str]) -> Result<Outbound, Failure> {
        outbound(policy, &texts.iter().map(|text| Argument::untyped(*text)).collect::<Vec<_>>())
    }

    #[test]
    fn one_argument_is_an_address_and_several_begin_with_the_method() {
        let none = Policy::default();
        let got = built(&none, &["https://example.com/a"]).unwrap();
        assert_eq!((got.method, got.url.as_str(), got.body), (Method::GET, "https://example.com/a", None));
        let sent = built(&none, &["post", "https://example.com/", r#"{"x-a":"b","x-n":1.10}"#, "[1]"]).unwrap();
        let headers: Vec<_> = sent.headers.iter().map(|(n, v)| format!("{n}={}", v.to_str().unwrap())).collect();
        assert_eq!(
            (sent.method, headers.join(" ")),
            (Method::POST, "x-a=b x-n=1.10 content-type=application/json".into())
        );
        assert!(sent.secret.is_none());
        for bad in [
            &["https://example.com/", "x"][..],
            &["GET", "https://example.com/", "{\"a\":{}}"],
            &["GET", "https://example.com/", "x"],
        ] {
            assert_eq!(built(&none, bad).unwrap_err().code, "fn:arguments", "{bad:?}");
        }
    }

    #[test]
    fn only_public_origins_are_fetched_whatever_the_operator_allows() {
        let allowed = Policy::parse("http://127.0.0.1:9,https://intranet.example.com").unwrap();
        let refusal = |url: &str| built(&allowed, &[url]).unwrap_err().code;
        assert_eq!(refusal("http://127.0.0.1:9/"), "http:refused:scheme");
        assert_eq!(refusal("https://127.0.0.1/"), "http:refused:ip");
        assert_eq!(refusal("https://a.internal/"), "http:refused:name");
        assert_eq!(refusal("https://example.com:8443/"), "http:refused:port");
        assert_eq!(refusal("https://intranet.example.com/x"), "http:refused:origin");
        assert!(built(&allowed, &["https://example.com/"]).is_ok());
    }
}
