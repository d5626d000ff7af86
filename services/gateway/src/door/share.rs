//! `?share=`: a token that travels in an address, for models that can only open one. Its text leaves the address before
//! anybody reads, repeats or logs it, and goes on as a credential of a scheme of its own, which services take for tokens
//! that were minted for addresses and for nothing else.

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::token;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Uri, header};

use crate::answer::Refusal;
use crate::request::{CAP_PROOF, TERMINAL_KEY, decoded};

/// The parameter.
const SHARE: &str = "share";
/// The one address that takes it.
const DISPATCH: &str = "/api/dispatch";
/// How the token goes on to the services.
const SCHEME: &str = "Url";

/// Says that the request's credential came in its address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared;

/// Whether the address has a share, whatever it is worth.
pub(super) fn is_there(uri: &Uri) -> bool {
    pairs(uri).any(|pair| value(pair).is_some())
}

/// Takes the share out of the address, of which only its name stays.
pub(super) async fn lift(mut request: Request, next: Next) -> Response {
    if !is_there(request.uri()) {
        return next.run(request).await;
    }
    match take(&mut request) {
        Ok(()) => next.run(request).await,
        Err(fault) => Refusal::from(fault).into_response(),
    }
}

fn take(request: &mut Request) -> Result<()> {
    let mut shares: Vec<String> = pairs(request.uri()).filter_map(value).collect();
    *request.uri_mut() = without_values(request.uri());
    // what is there twice, or at another address, is refused by name where the query is read
    let (Some(share), true, true) = (shares.pop(), shares.is_empty(), request.uri().path() == DISPATCH) else {
        return Ok(());
    };
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Err(Fault::new(Reason::UnrecognizedRequest, "`share` is for addresses that are opened, not posted to")
            .fix("send the token as `Authorization: Bearer <token>`")
            .with("received_params", r#"["share"]"#)
            .with("recognized", "[]"));
    }
    let headers = request.headers_mut();
    if [header::AUTHORIZATION, TERMINAL_KEY, CAP_PROOF].iter().any(|name| headers.contains_key(name)) {
        return Err(Fault::new(
            Reason::AmbiguousRequest,
            "the request has a credential in its address and one in a header",
        )
        .fix("send one of them"));
    }
    headers.insert(header::AUTHORIZATION, credential(&share)?);
    request.extensions_mut().insert(Shared);
    Ok(())
}

/// The credential of a share that has the form of a token. Anything else, above all the key of an owner or of a
/// principal, is no credential here and goes nowhere.
fn credential(share: &str) -> Result<HeaderValue> {
    token::parse(share).map_err(|_| in_address())?;
    let mut value = HeaderValue::try_from(format!("{SCHEME} {share}")).map_err(|_| in_address())?;
    value.set_sensitive(true);
    Ok(value)
}

fn in_address() -> Fault {
    Fault::new(Reason::Unauthorized, "an address takes a token that was minted for one, and no other credential")
        .fix("mint a token with `url: true`; take back a key that was sent in an address")
}

fn pairs(uri: &Uri) -> impl Iterator<Item = &str> {
    uri.query().unwrap_or_default().split('&')
}

/// The value of a pair whose name is `share`, however it is spelled.
fn value(pair: &str) -> Option<String> {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    (decoded(name).is_ok_and(|name| name == SHARE)).then(|| decoded(value).unwrap_or_default())
}

fn without_values(uri: &Uri) -> Uri {
    let kept: Vec<&str> = pairs(uri).map(|pair| if value(pair).is_some() { SHARE } else { pair }).collect();
    let text = format!("{}?{}", uri.path(), kept.join("&"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(text).expect("parts of an address with less between them"));
    Uri::from_parts(parts).expect("the address as it came with another query")
}

#[cfg(test)]
mod tests {
    use axum::body::Body;

    use super::*;

    /// Three parts of base64url with an object as header: the form of a token.
    const TOKEN: &str = "e30.e30.AA";

    fn request(method: &str, address: &str) -> Request {
        Request::builder().method(method).uri(address).body(Body::empty()).unwrap()
    }

    #[test]
    fn a_share_leaves_the_address_and_goes_on_as_a_credential() {
        for name in ["share", "%73hare", "s%68are"] {
            let mut request = request("GET", &format!("/api/dispatch?invoke=NOW&{name}={TOKEN}&body=a"));
            take(&mut request).unwrap();
            assert_eq!(request.uri(), "/api/dispatch?invoke=NOW&share&body=a");
            assert_eq!(request.headers()["authorization"], format!("Url {TOKEN}"));
            assert!(
                request.headers()["authorization"].is_sensitive() && request.extensions().get::<Shared>().is_some()
            );
        }
    }

    #[test]
    fn a_share_that_is_of_no_use_is_not_repeated_either() {
        for address in ["/api/directory?share=a", "/api/dispatch?share=a&share=b", "/x?share=a&y=1"] {
            let mut request = request("GET", address);
            take(&mut request).unwrap();
            assert!(!request.uri().to_string().contains("=a"), "{}", request.uri());
            assert!(!request.headers().contains_key("authorization"));
        }
        let refused = take(&mut request("POST", "/api/dispatch?share=a")).unwrap_err();
        assert_eq!(refused.reason(), Reason::UnrecognizedRequest);
    }

    #[test]
    fn only_what_has_the_form_of_a_token_is_a_credential() {
        for bad in ["", "owner-key-0123456789", "cbk_AAAAAAAA", "a.b.c", "e30.e30", "e30.e30.AA%0A", "%ff", "~"] {
            let mut request = request("GET", &format!("/api/dispatch?ask=x&share={bad}"));
            assert_eq!(take(&mut request).unwrap_err().reason(), Reason::Unauthorized, "{bad}");
            assert!(!request.headers().contains_key("authorization"));
        }
    }

    #[test]
    fn two_credentials_are_one_too_many() {
        for header in ["authorization", "x-terminal-key", "cap-proof"] {
            let mut request = request("GET", &format!("/api/dispatch?ask=x&share={TOKEN}"));
            request.headers_mut().insert(header, HeaderValue::from_static("a"));
            assert_eq!(take(&mut request).unwrap_err().reason(), Reason::AmbiguousRequest, "{header}");
        }
    }
}
