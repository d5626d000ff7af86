//! The address of this surface, as the caller knows it.

use http::uri::Authority;
use http::{HeaderMap, HeaderName, header};

use crate::config::Config;

const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// `scheme://host`: the setting, else what `Host` says, with the scheme that a proxy says it took. Empty where the
/// request has no usable `Host`; addresses are then paths.
pub(super) fn base_url(headers: &HeaderMap, config: &Config) -> String {
    if let Some(url) = &config.public_url {
        return url.trim_end_matches('/').to_owned();
    }
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let Some(host) = host.filter(|host| is_plain(host)) else { return String::new() };
    let secure = headers.get(FORWARDED_PROTO).is_some_and(|proto| proto.as_bytes().eq_ignore_ascii_case(b"https"));
    format!("{}://{host}", if secure { "https" } else { "http" })
}

/// A host that can stand in an address: nothing in it could end the authority or name a user.
fn is_plain(host: &str) -> bool {
    host.parse::<Authority>().is_ok() && !host.contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(host: &str, proto: &str) -> String {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        headers.insert(FORWARDED_PROTO, proto.parse().unwrap());
        base_url(&headers, &Config::at("http://127.0.0.1:1".parse().unwrap()))
    }

    #[test]
    fn the_address_is_the_one_that_the_caller_used() {
        assert_eq!(base("book.example:7700", ""), "http://book.example:7700");
        assert_eq!(base("book.example", "https"), "https://book.example");
        assert_eq!(base("[::1]:7700", "javascript"), "http://[::1]:7700");
    }

    #[test]
    fn a_host_that_is_none_is_not_repeated() {
        for bad in ["", "a b", "user@host", "a/b", "a\"><script>"] {
            assert_eq!(base(bad, ""), "", "{bad}");
        }
    }

    #[test]
    fn the_setting_wins() {
        let config =
            Config { public_url: Some("https://book.example/".into()), ..Config::at("http://h:1".parse().unwrap()) };
        assert_eq!(base_url(&HeaderMap::new(), &config), "https://book.example");
    }
}
