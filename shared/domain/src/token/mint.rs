//! Making tokens: a root by the issuer, a narrower link by any holder, offline.

use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

use super::chain::{self, Header, Link, MAX_LINK, TYP};
use super::{Claims, Delegation, Digest, PrivateKey, PublicKey, narrow, parse};
use crate::fault::{Fault, Reason, Result};

/// The shortest and the longest life of a root, in seconds.
pub const LIFE_SECONDS: std::ops::RangeInclusive<i64> = 60..=7 * 24 * 60 * 60;

/// Signs a root. Its `kid` is the thumbprint of the key.
///
/// # Errors
/// `invalid_request` with the claim: a rule of the claims is broken, or the life is out of range.
pub fn root(claims: &Claims, issuer: &PrivateKey) -> Result<String> {
    if !LIFE_SECONDS.contains(&claims.life()) {
        return Err(refused("exp", "a root lives 60 seconds to 7 days"));
    }
    if claims.par.is_some() || claims.del.d != 0 {
        return Err(refused("del", "a root has no parent"));
    }
    readable(claims).map_err(|fault| {
        let claim = fault.metadata().first().map(|(_, claim)| claim.clone());
        refused(claim.as_deref().unwrap_or_default(), fault.message())
    })?;
    let header = json!({"alg": "EdDSA", "typ": TYP, "kid": issuer.public().thumbprint()});
    sized(issuer.sign(&header, &claims.canonical()))
}

/// The claims of a child that allows all that its parent allows, for a holder. Narrow them, then sign with
/// [`derived`].
pub fn child(parent: &Link, jti: Uuid, now: OffsetDateTime, holder: PublicKey) -> Claims {
    let above = &parent.claims;
    Claims {
        jti,
        iat: now.unix_timestamp(),
        cnf: Some(holder),
        del: Delegation { d: above.del.d.saturating_add(1), max: above.del.max },
        par: Some(parent.id),
        ..above.clone()
    }
}

/// Signs a child with the key of its parent's holder and gives the longer token. What the executors would refuse is
/// refused here.
///
/// # Errors
/// Those of [`parse`](super::parse) and of the claims; `bad_signature` where the key is not that of the leaf's holder;
/// `chain_broken`, `widened:<field>`.
pub fn derived(token: &str, claims: &Claims, holder: &PrivateKey) -> Result<String> {
    let links = parse(token)?;
    let parent = links.last().expect("a text has at least one link").peek()?;
    if parent.claims.cnf != Some(holder.public()) {
        return Err(Fault::new(Reason::BadSignature, "this is not the key of the token's holder"));
    }
    readable(claims)?;
    let text = sized(holder.sign(&json!({"alg": "EdDSA", "typ": TYP}), &claims.canonical()))?;
    let hash = Digest::of(&text);
    let child = Link { header: Header { kid: None }, claims: claims.clone(), id: hash, hash };
    chain::check_link(&parent, &child)?;
    narrow::check(&parent.claims, claims)?;
    let longer = format!("{token}~{text}");
    parse(&longer)?;
    Ok(longer)
}

/// Refuses claims that nobody would read.
fn readable(claims: &Claims) -> Result<()> {
    Claims::read(claims.canonical().as_bytes()).map(drop)
}

fn sized(text: String) -> Result<String> {
    if text.len() <= MAX_LINK {
        return Ok(text);
    }
    Err(Fault::new(Reason::TokenTooLarge, "a link of a token has at most 8 KiB").fix("cover keys by prefixes"))
}

fn refused(claim: &str, message: &str) -> Fault {
    Fault::new(Reason::InvalidRequest, message).with("field", claim)
}
