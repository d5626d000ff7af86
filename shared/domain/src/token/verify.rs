//! Is this token good, here and now? Steps 1 to 9 of the check order of `spec/tokens.md`: the first failure answers,
//! and nothing about rows is known here.

use time::{Duration, OffsetDateTime};

use super::chain::{self, Chain, Header, Link, Sealed};
use super::proof::{self, ProofInput};
use super::{Claims, Keys, invalid, narrow};
use crate::fault::{Fault, Reason, Result};

/// How far ahead an issuer's clock may be, in seconds. An end is an end on our clock.
pub const SKEW_SECONDS: i64 = 5;

/// What the one who verifies knows.
#[derive(Clone, Copy, Debug)]
pub struct Expect<'a> {
    /// Its own audience name.
    pub audience: &'a str,
    /// The issuer of this deployment.
    pub iss: &'a str,
    /// The time.
    pub now: OffsetDateTime,
    /// The longest life of a root that the operator allows.
    pub max_ttl: Duration,
}

/// A token that is good here and now, in the hands of its holder.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// Its links, and what they allow.
    pub chain: Chain,
    /// The id of the holder's proof, which is the call's idempotency key; absent for a bearer token.
    pub proof: Option<String>,
}

/// Verifies a token and, where it has a holder, the proof that the caller is that holder.
///
/// # Errors
/// Those of [`inspect`], then `pop_required`, `pop_invalid`.
pub fn verify(text: &str, keys: &Keys, expect: &Expect<'_>, proof: Option<&ProofInput<'_>>) -> Result<Verified> {
    let chain = inspect(text, keys, expect)?;
    let proof = prove(&chain, expect, proof)?;
    Ok(Verified { chain, proof })
}

/// Step 9 alone, on a chain that was inspected: the proof's id, where the leaf has a holder and the proof is good.
///
/// # Errors
/// `pop_required`, `pop_invalid`.
pub fn prove(chain: &Chain, expect: &Expect<'_>, proof: Option<&ProofInput<'_>>) -> Result<Option<String>> {
    proof::check(chain.leaf(), expect, proof)
}

/// Verifies a token and asks for no proof: steps 1 to 8, enough to say what it is and not to call with it.
///
/// # Errors
/// The literal reasons of the steps, in their order.
pub fn inspect(text: &str, keys: &Keys, expect: &Expect<'_>) -> Result<Chain> {
    let sealed = chain::parse(text)?;
    let headers = headers(&sealed, keys)?;
    let chain = open(&sealed, headers, keys, expect.iss)?;
    check_linkage(&chain)?;
    for (parent, child) in pairs(&chain) {
        narrow::check(&parent.claims, &child.claims)?;
    }
    check_time(&chain, expect)?;
    check_audience(&chain.leaf().claims, expect.audience)?;
    Ok(chain)
}

/// Steps 1 and 2 alone, which cost no signature.
///
/// # Errors
/// Those of [`parse`](super::parse), then `alg_not_allowed`, `typ_wrong`, `header_param_refused`, `kid_unknown`.
pub fn inspect_headers(text: &str, keys: &Keys) -> Result<()> {
    headers(&chain::parse(text)?, keys).map(drop)
}

fn headers(sealed: &[Sealed<'_>], keys: &Keys) -> Result<Vec<Header>> {
    let read = |link: &Sealed<'_>| {
        let header = link.header(chain::TYP)?;
        match &header.kid {
            Some(kid) if keys.named(kid).is_none() => Err(unknown_kid()),
            Some(_) | None => Ok(header),
        }
    };
    sealed.iter().map(read).collect()
}

/// Opens the links in order: the key of each is the issuer's or stands in the link before it, which is open by then.
fn open(sealed: &[Sealed<'_>], headers: Vec<Header>, keys: &Keys, iss: &str) -> Result<Chain> {
    let mut links: Vec<Link> = Vec::with_capacity(sealed.len());
    for (link, header) in sealed.iter().zip(headers) {
        let key = match &header.kid {
            Some(kid) => keys.named(kid),
            None => links.last().and_then(|parent| parent.claims.cnf.as_ref()),
        };
        let link = link.open(key.ok_or_else(chain::bad_signature)?)?;
        if links.is_empty() && link.claims.iss != iss {
            return Err(invalid("iss", "is another issuer"));
        }
        links.push(link);
    }
    Ok(Chain::of(links).expect("a text has at least one link"))
}

fn check_linkage(chain: &Chain) -> Result<()> {
    chain::check_root(chain.root())?;
    pairs(chain).try_for_each(|(parent, child)| chain::check_link(parent, child))
}

fn pairs(chain: &Chain) -> impl Iterator<Item = (&Link, &Link)> {
    chain.links().iter().zip(chain.links().iter().skip(1))
}

/// Step 7 alone: a chain that was good may have ended since.
///
/// # Errors
/// `iat_in_future`, `ttl_too_long`, `expired`.
pub fn check_time(chain: &Chain, expect: &Expect<'_>) -> Result<()> {
    let now = expect.now.unix_timestamp();
    let mut claims = chain.links().iter().map(|link| &link.claims);
    if claims.clone().any(|claims| claims.iat > now + SKEW_SECONDS) {
        return Err(Fault::new(Reason::IatInFuture, "the token is issued later than now")
            .fix("set the clock of the one who issues"));
    }
    // A child ends with its parent at the latest, and its holder chose its `iat`: only the root's life says something.
    if chain.root().claims.life() > expect.max_ttl.whole_seconds() {
        return Err(Fault::new(Reason::TtlTooLong, "the token lives longer than this deployment allows")
            .with("max_seconds", expect.max_ttl.whole_seconds().to_string()));
    }
    if claims.any(|claims| claims.exp <= now) {
        return Err(Fault::new(Reason::Expired, "the token's time is over").fix("ask for a new token"));
    }
    Ok(())
}

fn check_audience(leaf: &Claims, audience: &str) -> Result<()> {
    if leaf.aud.iter().any(|name| name == audience) {
        return Ok(());
    }
    Err(Fault::new(Reason::AudienceBound, "the token is for other executors").detail(leaf.aud.join(",")))
}

fn unknown_kid() -> Fault {
    Fault::new(Reason::KidUnknown, "no key of the issuer has this `kid`")
}
