//! Who may reach this server through a browser: no page of another origin, whatever name it gave our address.

use http::uri::Authority;
use http::{HeaderMap, Uri, header};

use crate::config::Config;

/// Whether the request may come from where it says. A client that is no browser sends no `Origin`. A gateway that only
/// this machine reaches answers to no other name than this machine's, because a page can make its own name point here.
pub(super) fn is_welcome(headers: &HeaderMap, config: &Config) -> bool {
    let public = config.public_url.as_deref().and_then(authority);
    let is_ours = |told: &Authority| public.as_ref() == Some(told) || is_local(told.host());
    let host = headers.get(header::HOST).map(|host| host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()));
    let host = match host {
        Some(None) => return false,
        Some(host) => host,
        None => None,
    };
    let origin = headers.get(header::ORIGIN).map(|origin| origin.to_str().ok().and_then(authority));
    let fits = |told: &Authority| is_ours(told) || !config.local_only && host.as_ref() == Some(told);
    let is_origin_welcome = match &origin {
        None => true,
        Some(None) => false,
        Some(Some(origin)) => fits(origin),
    };
    is_origin_welcome && (!config.local_only || host.as_ref().is_none_or(is_ours))
}

fn authority(url: &str) -> Option<Authority> {
    url.parse::<Uri>().ok()?.into_parts().authority
}

/// An address or `localhost`: no name that a name server could give to somebody else.
fn is_local(host: &str) -> bool {
    let bare = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost") || bare.parse::<std::net::IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn welcome(local_only: bool, host: &str, origin: &str) -> bool {
        let mut headers: HeaderMap = [(header::HOST, host.parse().unwrap())].into_iter().collect();
        if !origin.is_empty() {
            headers.insert(header::ORIGIN, origin.parse().unwrap());
        }
        let public_url = Some("https://book.example".to_owned());
        let config = Config { public_url, local_only, ..Config::at("http://127.0.0.1:1".parse().unwrap()) };
        is_welcome(&headers, &config)
    }

    #[test]
    fn a_gateway_of_this_machine_answers_to_its_own_names_alone() {
        for (host, origin) in [
            ("127.0.0.1:7700", ""),
            ("localhost:7700", "http://localhost:7700"),
            ("[::1]:7700", "http://127.0.0.1:5173"),
            ("book.example", "https://book.example"),
        ] {
            assert!(welcome(true, host, origin), "{host} {origin}");
        }
        for (host, origin) in [
            ("evil.example", ""),
            ("evil.example", "http://evil.example"),
            ("127.0.0.1:7700", "http://evil.example"),
            ("127.0.0.1:7700", "null"),
            ("localhost.evil.example", ""),
        ] {
            assert!(!welcome(true, host, origin), "{host} {origin}");
        }
    }

    #[test]
    fn a_gateway_of_a_network_takes_its_own_pages_and_no_others() {
        assert!(welcome(false, "any.example", "") && welcome(false, "any.example", "https://any.example"));
        assert!(!welcome(false, "any.example", "https://evil.example") && !welcome(false, "any.example", "null"));
    }
}
