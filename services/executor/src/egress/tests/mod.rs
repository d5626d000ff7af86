//! The way out, tried from outside against real sockets.

mod limit;
mod proxy;
mod redaction;
mod redirect;
mod upstream;
mod vector;
mod wire;

use http::{HeaderName, HeaderValue, Method};

use super::{Egress, Limits, Outbound, Policy, Redirects};
use upstream::Upstream;

/// A way out that may reach these stand-ins.
fn egress(upstreams: &[&Upstream]) -> Egress {
    let allow_origins = upstreams.iter().map(|upstream| upstream.origin().parse().unwrap()).collect();
    Egress::new(Policy { allow_origins }, "test")
}

fn get(url: &str) -> Outbound {
    Outbound {
        method: Method::GET,
        url: url.parse().unwrap(),
        headers: Vec::new(),
        body: None,
        secret: None,
        redirects: Redirects::None,
    }
}

fn post(url: &str, body: &'static str) -> Outbound {
    Outbound { method: Method::POST, body: Some(body.into()), ..get(url) }
}

fn header(name: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static(name), HeaderValue::from_static(value))
}

/// Short enough for tests, long enough for a busy machine.
fn limits() -> Limits {
    Limits { total: std::time::Duration::from_secs(20), ..Limits::default() }
}
