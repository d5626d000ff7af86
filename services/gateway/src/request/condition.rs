//! `ETag`, `If-None-Match` and `If-Match`.

use callbook_domain::fault::{Fault, Reason, Result};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use sha2::{Digest, Sha256};
use utoipa::IntoParams;

/// The condition of a write, as the API document names it.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "describes in the API document what `if_match` reads")]
pub(crate) struct IfMatch {
    /// ETag that the stored row must have, or `*`.
    #[param(rename = "if-match", nullable = false, pattern = "^(\\*|\"v[1-9][0-9]{0,17}\")$")]
    if_match: Option<String>,
}

/// A strong validator, with its quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Etag(String);

impl Etag {
    /// Of a row: its version.
    pub(crate) fn of_version(version: i64) -> Self {
        Etag(format!("\"v{version}\""))
    }

    /// Of a contract: all that a call depends on, all that a model reads, and the form in which this caller got it.
    pub(crate) fn of_contract(contract_hash: &str, text_hash: &str, content: &[u8]) -> Self {
        let mut digest = Sha256::new();
        for part in [contract_hash.as_bytes(), b"\0", text_hash.as_bytes(), b"\0", content] {
            digest.update(part);
        }
        Etag(format!("\"{}\"", data_encoding::HEXLOWER.encode(&digest.finalize()[..16])))
    }

    /// The header.
    pub(crate) fn value(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).expect("quotes, hex and digits are printable")
    }
}

/// Whether the caller holds this state already (`If-None-Match`, compared weakly as RFC 9110 says).
pub(crate) fn is_fresh(headers: &HeaderMap, etag: &Etag) -> bool {
    tags(headers, &header::IF_NONE_MATCH).any(|tag| tag == "*" || tag.strip_prefix("W/").unwrap_or(tag) == etag.0)
}

/// The version that the caller insists on. Absent or `*`: any.
///
/// # Errors
/// Anything that is not one `ETag` of a row.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<i64>> {
    let tags: Vec<&str> = tags(headers, &header::IF_MATCH).collect();
    match tags.as_slice() {
        [] if !headers.contains_key(header::IF_MATCH) => Ok(None),
        ["*"] => Ok(None),
        [tag] => version(tag).map(Some).ok_or_else(malformed),
        _ => Err(malformed()),
    }
}

fn version(tag: &str) -> Option<i64> {
    let digits = tag.strip_prefix("\"v")?.strip_suffix('"')?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|version| plain && *version >= 1)
}

fn tags<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|tag| !tag.is_empty())
}

fn malformed() -> Fault {
    Fault::new(Reason::InvalidRequest, "`If-Match` is not one ETag of a row")
        .fix("send the ETag of the read as it is, such as \"v3\", or *")
        .with("field", "if-match")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, values: &[&str]) -> HeaderMap {
        values.iter().map(|value| (name.clone(), value.parse().unwrap())).collect()
    }

    #[test]
    fn if_match_names_one_version() {
        let read = |values: &[&str]| if_match(&headers(header::IF_MATCH, values));
        assert_eq!(read(&[]), Ok(None));
        assert_eq!(read(&["*"]), Ok(None));
        assert_eq!(read(&["\"v3\""]), Ok(Some(3)));
        for bad in
            ["", "v3", "\"3\"", "W/\"v3\"", "\"v\"", "\"v0\"", "\"v+1\"", "\"v3\", \"v4\"", "\"v99999999999999999999\""]
        {
            assert!(read(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn if_none_match_takes_lists_weak_tags_and_any() {
        let fresh = |values: &[&str]| is_fresh(&headers(header::IF_NONE_MATCH, values), &Etag::of_version(3));
        assert!(fresh(&["\"v3\""]) && fresh(&["\"v2\", W/\"v3\""]) && fresh(&["\"v2\"", "\"v3\""]) && fresh(&["*"]));
        assert!(!fresh(&[]) && !fresh(&["\"v33\""]) && !fresh(&["v3"]));
    }

    #[test]
    fn a_contract_in_another_form_has_another_tag() {
        let json = Etag::of_contract("sha256:a", "sha256:b", b"{}");
        assert_ne!(json, Etag::of_contract("sha256:a", "sha256:b", b"# md"));
        assert_ne!(json, Etag::of_contract("sha256:c", "sha256:b", b"{}"));
        assert_eq!(json.value().len(), 34);
    }
}
