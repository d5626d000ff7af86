//! Addresses: where to listen, whom to call, and the origins of upstreams.

use std::fmt;
use std::net::IpAddr;

use url::Url;

use super::error::SettingsError;
use super::pick::text;

/// A host and a port. The host is a name or an IP address without brackets.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct HostPort {
    /// A DNS name or an IP address.
    pub host: String,
    /// 0 lets the system choose.
    pub port: u16,
}

impl HostPort {
    /// Reads `host:port` or `[v6]:port`.
    ///
    /// # Errors
    /// Half a sentence that says what is missing.
    pub fn parse(text: &str) -> Result<Self, String> {
        let refused = || format!("`{text}` is not host:port");
        let (host, port) = text.trim().rsplit_once(':').ok_or_else(refused)?;
        let port = port.parse().map_err(|_| refused())?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = bare.unwrap_or(host);
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let plain = !host.is_empty() && host.chars().all(fits);
        let v6 = bare.is_some() && host.parse::<std::net::Ipv6Addr>().is_ok();
        if !(plain || v6) {
            return Err(refused());
        }
        Ok(HostPort { host: host.to_owned(), port })
    }

    /// Whether only this machine reaches it.
    pub fn is_loopback(&self) -> bool {
        match self.host.parse::<IpAddr>() {
            Ok(ip) => ip.to_canonical().is_loopback(),
            Err(_) => self.host.eq_ignore_ascii_case("localhost"),
        }
    }
}

impl fmt::Display for HostPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Where another role listens. A DNS name may stand for several processes and is resolved again by whoever calls.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ServiceAddress {
    /// Whether the connection is TLS: `https://`, or no scheme and TLS between services is set.
    pub tls: bool,
    /// Host and port.
    pub at: HostPort,
}

impl ServiceAddress {
    /// The address as tonic wants it.
    pub fn uri(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.at)
    }

    pub(super) fn parse(name: &str, text: &str, tls: bool) -> Result<Self, SettingsError> {
        let text = text.trim().trim_end_matches('/');
        let (tls, rest) = match (text.strip_prefix("https://"), text.strip_prefix("http://")) {
            (Some(rest), _) => (true, rest),
            (None, Some(rest)) => (false, rest),
            (None, None) => (tls, text),
        };
        let at = HostPort::parse(rest).map_err(|problem| SettingsError::refused(name, problem))?;
        Ok(ServiceAddress { tls, at })
    }
}

pub(super) fn host_port(
    name: &str,
    set: Option<String>,
    file: Option<String>,
    default: &str,
) -> Result<HostPort, SettingsError> {
    HostPort::parse(&text(set, file, default)).map_err(|problem| SettingsError::refused(name, problem))
}

/// The canonical form of an origin, `scheme://host[:port]` without a port that the scheme implies: the form in which
/// a row's target is compared with it.
///
/// # Errors
/// Half a sentence that says why it is not an origin.
pub fn parse_origin(text: &str) -> Result<String, String> {
    let url = Url::parse(text.trim()).map_err(|_| format!("`{text}` is not an origin (scheme://host:port)"))?;
    let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
    let anonymous = url.username().is_empty() && url.password().is_none();
    if !matches!(url.scheme(), "http" | "https") || !bare || !anonymous {
        return Err(format!("`{}` must be scheme://host:port and nothing more", without_login(url)));
    }
    Ok(url.origin().ascii_serialization())
}

/// A login in a URL is somebody's secret and does not go into a sentence.
fn without_login(url: Url) -> String {
    format!("{}://{}{}", url.scheme(), url.host_str().unwrap_or_default(), url.path())
}

pub(super) fn origins(name: &str, list: Vec<String>) -> Result<Vec<String>, SettingsError> {
    let parse = |text: &String| parse_origin(text).map_err(|problem| SettingsError::refused(name, problem));
    list.iter().map(parse).collect()
}
