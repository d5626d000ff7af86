//! Where a request may go: pure rules over URLs and addresses. The cases are those of `vectors/ssrf.json`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use ipnet::{Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// Why a request was not sent: because of its URL, its lookup (`Dns`, `Address`) or itself (`Header`, `Method`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Neither `https` nor an allowed origin.
    Scheme,
    /// The host is an IP literal, in whatever spelling.
    Ip,
    /// Not a URL.
    Parse,
    /// A name that means this machine or this network.
    Name,
    /// A user or password in the URL; a credential belongs into `auth`.
    Userinfo,
    /// A port other than 443.
    Port,
    /// A backslash, which parsers read differently.
    Backslash,
    /// A control character, which parsers drop differently.
    Control,
    /// The name has no address.
    Dns,
    /// The name has an address that is not public.
    Address,
    /// A header that belongs to the connection, such as `host` or `transfer-encoding`.
    Header,
    /// `CONNECT` or `TRACE`.
    Method,
}

impl Refusal {
    /// The name, as in `vectors/ssrf.json` and in outcomes.
    pub fn as_str(self) -> &'static str {
        match self {
            Refusal::Scheme => "scheme",
            Refusal::Ip => "ip",
            Refusal::Parse => "parse",
            Refusal::Name => "name",
            Refusal::Userinfo => "userinfo",
            Refusal::Port => "port",
            Refusal::Backslash => "backslash",
            Refusal::Control => "control",
            Refusal::Dns => "dns",
            Refusal::Address => "address",
            Refusal::Header => "header",
            Refusal::Method => "method",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Scheme => "only https may be called",
            Refusal::Ip => "an address in place of a name may not be called",
            Refusal::Parse => "the url cannot be read",
            Refusal::Name => "this name is not a public one",
            Refusal::Userinfo => "a url may not carry a user or password",
            Refusal::Port => "only port 443 may be called",
            Refusal::Backslash => "a url may not hold a backslash",
            Refusal::Control => "a url may not hold a control character",
            Refusal::Dns => "the name has no address",
            Refusal::Address => "the name has an address that is not public",
            Refusal::Header => "this header belongs to the connection and cannot be set",
            Refusal::Method => "this method may not be used",
        })
    }
}

impl std::error::Error for Refusal {}

/// Scheme, host and port: what a connection and the binding of a secret belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    scheme: String,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of an `http` or `https` URL; `None` for every other URL.
    pub fn of(url: &Url) -> Option<Self> {
        if !matches!(url.scheme(), "http" | "https") {
            return None;
        }
        let (host, port) = (url.host_str()?, url.port_or_known_default()?);
        Some(Origin { scheme: url.scheme().to_owned(), host: host.to_owned(), port })
    }

    /// The host: lower case, a name in its ASCII form, an IPv6 address in brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether connections to it are encrypted.
    pub fn is_https(&self) -> bool {
        self.scheme == "https"
    }
}

impl FromStr for Origin {
    type Err = String;

    /// Reads `scheme://host[:port]`; refuses anything that is more than an origin.
    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("`{text}` is not an origin of the form scheme://host:port");
        let url = Url::parse(text).map_err(|_| bad())?;
        let bare = url.path() == "/" && url.query().is_none() && url.fragment().is_none();
        if !bare || has_userinfo(&url) || text.contains('\\') {
            return Err(bad());
        }
        Origin::of(&url).ok_or_else(bad)
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme, self.host)?;
        match (self.scheme.as_str(), self.port) {
            ("http", 80) | ("https", 443) => Ok(()),
            (_, port) => write!(f, ":{port}"),
        }
    }
}

/// What the operator allows beyond public `https` on port 443.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// These may be plain `http`, loopback, private, an IP literal, and on any port.
    pub allow_origins: Vec<Origin>,
}

impl Policy {
    /// Reads `CALLBOOK_ALLOW_ORIGINS`: origins with commas between; empty parts are skipped.
    pub fn parse(list: &str) -> Result<Self, String> {
        let parts = list.split(',').map(str::trim).filter(|part| !part.is_empty());
        Ok(Policy { allow_origins: parts.map(str::parse).collect::<Result<_, _>>()? })
    }

    /// Whether the operator listed exactly this origin.
    pub fn allows(&self, origin: &Origin) -> bool {
        self.allow_origins.contains(origin)
    }
}

/// Reads a URL and says whether a request may go there, before any lookup. The address behind a name is judged later,
/// by [`check_address`], when the connection is made.
pub fn check_url(policy: &Policy, raw: &str) -> Result<Url, Refusal> {
    if raw.chars().any(char::is_control) {
        return Err(Refusal::Control);
    }
    if raw.contains('\\') {
        return Err(Refusal::Backslash);
    }
    let url = Url::parse(raw).map_err(|_| Refusal::Parse)?;
    let origin = Origin::of(&url).ok_or(Refusal::Scheme)?;
    if has_userinfo(&url) {
        return Err(Refusal::Userinfo);
    }
    if policy.allows(&origin) {
        return Ok(url);
    }
    if !origin.is_https() {
        return Err(Refusal::Scheme);
    }
    match url.host() {
        None => return Err(Refusal::Parse),
        Some(Host::Ipv4(_) | Host::Ipv6(_)) => return Err(Refusal::Ip),
        Some(Host::Domain(name)) if !is_public_name(name) => return Err(Refusal::Name),
        Some(Host::Domain(_)) => {}
    }
    if origin.port != 443 {
        return Err(Refusal::Port);
    }
    Ok(url)
}

fn has_userinfo(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// A name with at least two labels, no final dot (it would be a second spelling of the same host) and no ending that
/// stands for the machine or its network.
fn is_public_name(name: &str) -> bool {
    const PRIVATE: [&str; 3] = [".localhost", ".local", ".internal"];
    name.contains('.') && !name.ends_with('.') && !PRIVATE.iter().any(|ending| name.ends_with(ending))
}

/// Whether an address is an ordinary public one. Not public is all that the IANA special-purpose registries list and
/// all that only wraps an IPv4 address (mapped, compatible, NAT64, 6to4, Teredo), whatever is inside.
pub fn check_address(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => !SPECIAL_V4.iter().any(|net| net.contains(&v4)),
        IpAddr::V6(v6) => GLOBAL_V6.contains(&v6) && !SPECIAL_V6.iter().any(|net| net.contains(&v6)),
    }
}

const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), prefix)
}

const fn v6(a: u16, b: u16, c: u16, prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix)
}

const SPECIAL_V4: [Ipv4Net; 15] = [
    v4(0, 0, 0, 8),       // this network
    v4(10, 0, 0, 8),      // private
    v4(100, 64, 0, 10),   // carrier-grade NAT, and some clouds' metadata
    v4(127, 0, 0, 8),     // loopback
    v4(169, 254, 0, 16),  // link-local, and most clouds' metadata
    v4(172, 16, 0, 12),   // private
    v4(192, 0, 0, 24),    // protocol assignments
    v4(192, 0, 2, 24),    // documentation
    v4(192, 88, 99, 24),  // 6to4 relay
    v4(192, 168, 0, 16),  // private
    v4(198, 18, 0, 15),   // benchmarking
    v4(198, 51, 100, 24), // documentation
    v4(203, 0, 113, 24),  // documentation
    v4(224, 0, 0, 4),     // multicast
    v4(240, 0, 0, 4),     // reserved and broadcast
];

/// The only part of IPv6 that is given out as public unicast; loopback, unique-local, link-local, multicast,
/// IPv4-mapped, IPv4-compatible and both NAT64 prefixes lie outside it.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 0, 3);

const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 0, 23),     // protocol assignments: Teredo, benchmarking, ORCHID
    v6(0x2001, 0xdb8, 0, 32), // documentation
    v6(0x2002, 0, 0, 16),     // 6to4
    v6(0x3fff, 0, 0, 20),     // documentation
];
