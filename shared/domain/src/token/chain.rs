//! From text to links. A link is sealed until its signature holds: nobody reads its claims before.

use data_encoding::BASE64URL_NOPAD;
use serde_json::{Map, Value};

use super::{Claims, Digest, PublicKey};
use crate::fault::{Fault, Reason, Result};
use crate::json::{self, Problem};

/// The largest link, in bytes.
pub const MAX_LINK: usize = 8 * 1024;
/// The most links of a chain.
pub const MAX_LINKS: usize = 4;
/// The deepest nesting of a header that is looked at.
const MAX_HEADER_DEPTH: usize = 8;
/// The type of a link.
pub(super) const TYP: &str = "cap+jwt";

/// A chain whose signatures hold, root first; never empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Chain(Vec<Link>);

/// One link whose signature holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// What its header says.
    pub header: Header,
    /// What it says.
    pub claims: Claims,
    /// The SHA-256 of its signing input: the `par` of its children, and a name that no other holder can give to a link
    /// of theirs.
    pub id: Digest,
    /// The SHA-256 of its whole text: the `ath` of a proof.
    pub hash: Digest,
}

/// The header of a link. Its algorithm and type are always `EdDSA` and `cap+jwt`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The issuer's key; absent on a derived link, which its parent's holder signed.
    pub kid: Option<String>,
}

/// One link in its three parts, its signature not looked at.
#[derive(Clone, Debug)]
pub struct Sealed<'a> {
    text: &'a str,
    input: &'a str,
    header: Map<String, Value>,
    /// A member of the header stands twice.
    doubled: bool,
    payload: Vec<u8>,
    signature: Vec<u8>,
}

impl Chain {
    /// The links in order, root first.
    pub fn links(&self) -> &[Link] {
        &self.0
    }

    /// The link that the issuer signed.
    pub fn root(&self) -> &Link {
        self.0.first().expect("a chain is never empty")
    }

    /// The last link: all others allow at least what it allows.
    pub fn leaf(&self) -> &Link {
        self.0.last().expect("a chain is never empty")
    }

    /// A chain of opened links; nothing where there are none.
    pub(super) fn of(links: Vec<Link>) -> Option<Chain> {
        (!links.is_empty()).then_some(Chain(links))
    }
}

/// Takes a token apart: the links between `~`, root first. No signature is looked at.
///
/// # Errors
/// `token_too_large`, `chain_too_long`, `token_malformed`.
pub fn parse(text: &str) -> Result<Vec<Sealed<'_>>> {
    let links: Vec<&str> = text.split('~').take(MAX_LINKS + 1).collect();
    if links.iter().take(MAX_LINKS).any(|link| link.len() > MAX_LINK) {
        return Err(Fault::new(Reason::TokenTooLarge, "a link of a token has at most 8 KiB"));
    }
    if links.len() > MAX_LINKS {
        return Err(Fault::new(Reason::ChainTooLong, "a token has at most 4 links"));
    }
    links.into_iter().map(|link| Sealed::parse(link).ok_or_else(malformed)).collect()
}

impl<'a> Sealed<'a> {
    /// Takes one link apart: three parts of base64url without padding and with canonical last bits.
    pub(super) fn parse(text: &'a str) -> Option<Sealed<'a>> {
        let (input, signature) = text.rsplit_once('.')?;
        let (header, payload) = input.split_once('.')?;
        let decode = |part: &str| BASE64URL_NOPAD.decode(part.as_bytes()).ok();
        let header = decode(header)?;
        let (header, doubled) = header_members(std::str::from_utf8(&header).ok()?)?;
        Some(Sealed { text, input, header, doubled, payload: decode(payload)?, signature: decode(signature)? })
    }

    /// Reads the header: exactly `alg`, `typ` and `kid` of a root, or `alg` and `typ` of a derived link.
    ///
    /// # Errors
    /// `alg_not_allowed`, `typ_wrong`, `header_param_refused`, in this order.
    pub(super) fn header(&self, typ: &str) -> Result<Header> {
        let member = |name| self.header.get(name);
        if member("alg").and_then(Value::as_str) != Some("EdDSA") {
            return Err(Fault::new(Reason::AlgNotAllowed, "a link is signed with EdDSA and nothing else"));
        }
        if member("typ").and_then(Value::as_str) != Some(typ) {
            return Err(Fault::new(Reason::TypWrong, format!("the type of a link is `{typ}`")));
        }
        let kid = match member("kid") {
            None => None,
            Some(Value::String(kid)) => Some(kid.clone()),
            Some(_) => return Err(refused_header()),
        };
        if self.doubled || self.header.len() != 2 + usize::from(kid.is_some()) {
            return Err(refused_header());
        }
        Ok(Header { kid })
    }

    /// Whether the key signed this link.
    pub(super) fn is_signed_by(&self, key: &PublicKey) -> bool {
        key.confirms(self.input, &self.signature)
    }

    /// The link, if the key signed it.
    ///
    /// # Errors
    /// `bad_signature`, before anything is read; those of the header; `claims_invalid`, `claims_unknown`.
    pub fn open(&self, key: &PublicKey) -> Result<Link> {
        if !self.is_signed_by(key) {
            return Err(bad_signature());
        }
        self.peek()
    }

    /// The link as its text says, signed by whomever. For the holder of a token who wants to know what it holds; it
    /// decides nothing.
    ///
    /// # Errors
    /// Those of the header; `claims_invalid`, `claims_unknown`.
    pub fn peek(&self) -> Result<Link> {
        Ok(Link {
            header: self.header(TYP)?,
            claims: Claims::read(&self.payload)?,
            id: Digest::of(self.input),
            hash: Digest::of(self.text),
        })
    }

    /// The payload. Ask for the signature first.
    pub(super) fn payload(&self) -> &[u8] {
        &self.payload
    }
}

/// The members of a header, and whether one stands twice.
fn header_members(text: &str) -> Option<(Map<String, Value>, bool)> {
    let doubled = match json::check_depth(text, MAX_HEADER_DEPTH) {
        Ok(()) => false,
        Err(Problem::Duplicate(_)) => true,
        Err(Problem::NotJson | Problem::TooDeep | Problem::LoneSurrogate | Problem::Reserved(_)) => return None,
    };
    let Ok(Value::Object(members)) = serde_json::from_str(text) else { return None };
    Some((members, doubled))
}

/// Refuses a child that does not hang on this parent.
///
/// # Errors
/// `chain_broken`.
pub(super) fn check_link(parent: &Link, child: &Link) -> Result<()> {
    let (above, below) = (&parent.claims, &child.claims);
    let holds = child.header.kid.is_none()
        && below.par == Some(parent.id)
        && below.del.d == above.del.d.saturating_add(1)
        && below.del.d <= above.del.max.min(below.del.max)
        && below.jti != above.jti;
    if holds { Ok(()) } else { Err(broken("a link is not the child of the one before it")) }
}

/// Refuses a first link that is no root.
///
/// # Errors
/// `chain_broken`.
pub(super) fn check_root(root: &Link) -> Result<()> {
    let holds = root.header.kid.is_some() && root.claims.par.is_none() && root.claims.del.d == 0;
    if holds { Ok(()) } else { Err(broken("the first link is no root")) }
}

/// The answer to a link that no key confirms.
pub(super) fn bad_signature() -> Fault {
    Fault::new(Reason::BadSignature, "the signature of a link does not hold")
}

fn broken(message: &str) -> Fault {
    Fault::new(Reason::ChainBroken, message)
}

fn malformed() -> Fault {
    Fault::new(Reason::TokenMalformed, "a link is three parts of base64url without padding, the first a JSON object")
}

fn refused_header() -> Fault {
    Fault::new(Reason::HeaderParamRefused, "the header of a link has `alg`, `typ` and, on a root, `kid`; nothing else")
}
