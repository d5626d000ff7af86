//! What the headers present: one credential, of one kind.

use callbook_domain::caller::unauthorized;
use callbook_domain::fault::{Fault, Reason, Result};
use data_encoding::BASE64URL_NOPAD;
use http::HeaderMap;
use serde_json::{Map, Value};

/// The header, and the gRPC metadata, of a holder's proof.
const PROOF: &str = "cap-proof";

/// One credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Credential<'a> {
    /// The owner key, an API key, or something that is neither.
    Key(&'a str),
    /// A capability token.
    Token {
        /// The chain.
        text: &'a str,
        /// It came in an address, as the gateway says.
        in_url: bool,
    },
    /// A signed text that is no capability token: somebody else's, perhaps.
    Signed(&'a str),
}

/// The one credential in the headers. Two that differ are refused: nobody means that.
pub(crate) fn presented(headers: &HeaderMap) -> Result<Option<Credential<'_>>> {
    let mut values = headers.get_all("x-terminal-key").iter().map(|value| value.to_str().ok());
    let terminal = values.next().map(|key| key.filter(|key| !key.is_empty()).map(Credential::Key));
    if values.next().is_some() {
        return Err(unauthorized());
    }
    let mut values = headers.get_all("authorization").iter().map(|value| value.to_str().ok().and_then(authorization));
    let authorization = values.next();
    if values.next().is_some() {
        return Err(unauthorized());
    }
    match (terminal, authorization) {
        (None, None) => Ok(None),
        (Some(Some(one)), None) | (None, Some(Some(one))) => Ok(Some(one)),
        (Some(Some(one)), Some(Some(other))) if one == other => Ok(Some(one)),
        (_, _) => Err(unauthorized()),
    }
}

/// The holder's proof, as it came.
pub(crate) fn proof(headers: &HeaderMap) -> Result<Option<&str>> {
    let mut values = headers.get_all(PROOF).iter();
    match (values.next().map(|value| value.to_str()), values.next()) {
        (None, _) => Ok(None),
        (Some(Ok(proof)), None) => Ok(Some(proof)),
        (Some(_), _) => Err(Fault::new(Reason::PopInvalid, "a call has one proof, a compact JWS")),
    }
}

fn authorization(value: &str) -> Option<Credential<'_>> {
    let (scheme, text) = value.split_once(' ')?;
    let text = Some(text.trim()).filter(|text| !text.is_empty())?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => Some(bearer(text)),
        "cap" => Some(Credential::Token { text, in_url: false }),
        // what a gateway makes of `?share=`
        "url" => Some(Credential::Token { text, in_url: true }),
        _ => None,
    }
}

/// What stands before the first dot decides, as far as it can be read: a key has no header of a signed text.
fn bearer(text: &str) -> Credential<'_> {
    let header = text.split_once('.').and_then(|(header, _)| BASE64URL_NOPAD.decode(header.as_bytes()).ok());
    match header.and_then(|header| serde_json::from_slice::<Map<String, Value>>(&header).ok()) {
        None => Credential::Key(text),
        Some(header) => match header.get("typ").and_then(Value::as_str) {
            Some(typ) if typ.starts_with("cap") => Credential::Token { text, in_url: false },
            Some(_) | None => Credential::Signed(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn one_credential_is_taken_and_a_strange_one_is_not_taken_for_none() {
        let key = Some(Credential::Key("k"));
        assert_eq!(presented(&headers(&[])).unwrap(), None);
        assert_eq!(presented(&headers(&[("x-terminal-key", "k")])).unwrap(), key);
        assert_eq!(presented(&headers(&[("authorization", "bearer k")])).unwrap(), key);
        assert_eq!(presented(&headers(&[("x-terminal-key", "k"), ("authorization", "Bearer k")])).unwrap(), key);
        for odd in [
            &[("authorization", "Basic k")][..],
            &[("authorization", "Bearer")],
            &[("authorization", "Cap ")],
            &[("x-terminal-key", "")],
            &[("x-terminal-key", "a"), ("authorization", "Bearer b")],
            &[("x-terminal-key", "a"), ("authorization", "Cap a")],
            &[("x-terminal-key", "a"), ("x-terminal-key", "a")],
            &[("authorization", "Cap a"), ("authorization", "Cap a")],
        ] {
            assert!(presented(&headers(odd)).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn a_signed_text_is_told_from_a_key_by_its_header() {
        let signed = |header: &str| format!("{}.e30.c2ln", BASE64URL_NOPAD.encode(header.as_bytes()));
        let token = signed(r#"{"alg":"none","typ":"cap+jwt"}"#);
        let other = signed(r#"{"alg":"RS256","typ":"JWT"}"#);
        for (value, credential) in [
            (format!("Bearer {token}"), Credential::Token { text: &token, in_url: false }),
            (format!("CAP {token}"), Credential::Token { text: &token, in_url: false }),
            (format!("Url {token}"), Credential::Token { text: &token, in_url: true }),
            (format!("Cap {other}"), Credential::Token { text: &other, in_url: false }),
            (format!("Bearer {other}"), Credential::Signed(&other)),
            ("Bearer a.key.with.dots".to_owned(), Credential::Key("a.key.with.dots")),
        ] {
            assert_eq!(presented(&headers(&[("authorization", &value)])).unwrap(), Some(credential), "{value}");
        }
    }

    #[test]
    fn a_call_has_one_proof() {
        assert_eq!(proof(&headers(&[])).unwrap(), None);
        let one = headers(&[("cap-proof", "p")]);
        assert_eq!(proof(&one).unwrap(), Some("p"));
        let two = headers(&[("cap-proof", "p"), ("cap-proof", "p")]);
        assert_eq!(proof(&two).unwrap_err().reason(), Reason::PopInvalid);
    }
}
