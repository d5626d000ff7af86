//! An issued token as it is kept: everything but its text.

use callbook_domain::caller::{Caller, Counter, Holder};
use callbook_domain::canonical::{self, sha256_hex};
use callbook_domain::event::{Body, EventKind};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::row::timestamp;
use callbook_domain::token::{Claims, parse};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::scope::refused;

/// The longest purpose and the longest reason of a revocation, in characters.
const MAX_WORDS: usize = 256;

/// A stored token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Issued {
    /// Its id.
    pub(crate) jti: Uuid,
    /// The key that signed it.
    pub(crate) kid: String,
    /// For whom it is.
    pub(crate) sub: String,
    /// The thumbprint of its holder's key.
    pub(crate) holder: Option<String>,
    /// What it is for.
    pub(crate) purpose: String,
    /// Its claims as JSON.
    pub(crate) claims: String,
    /// Who minted it, as receipts name a caller.
    pub(crate) minted_by: String,
    /// The principal that minted it, or the token that it was narrowed from.
    pub(crate) principal: Option<Uuid>,
    /// The token that it was narrowed from.
    pub(crate) source: Option<Uuid>,
    /// The id of its link.
    pub(crate) link: String,
    /// What a revocation can name of it.
    pub(crate) names: Vec<String>,
    /// Its counters.
    pub(crate) counters: Vec<Counter>,
    /// When it was issued.
    pub(crate) issued_at: OffsetDateTime,
    /// The first moment at which it is no longer good.
    pub(crate) expires_at: OffsetDateTime,
    /// What took it back.
    pub(crate) revoked: Option<String>,
    /// Calls that were counted under it, where they are counted.
    pub(crate) used: Option<i64>,
}

impl Issued {
    /// The record of a token that was just signed; `source` is the token that it was narrowed from.
    ///
    /// # Errors
    /// `internal` where the text is none of ours.
    pub(crate) fn of(text: &str, purpose: String, by: &Caller, source: Option<&Holder>) -> Result<Issued> {
        let link = parse(text)?.first().ok_or_else(unreadable)?.peek()?;
        let kid = link.header.kid.ok_or_else(unreadable)?;
        let claims = link.claims;
        let holder = claims.cnf.map(|key| key.thumbprint());
        let principal = match by {
            Caller::Principal(principal) => Some(principal.id),
            Caller::Owner | Caller::Holder(_) | Caller::Anonymous => source.and_then(|source| source.principal),
        };
        let mut names = vec![
            format!("jti:{}", claims.jti),
            format!("link:{}", link.id),
            format!("sub:{}", claims.sub),
            format!("kid:{kid}"),
        ];
        names.extend(holder.as_ref().map(|holder| format!("holder:{holder}")));
        names.extend(principal.map(|principal| format!("principal:{principal}")));
        names.extend(source.into_iter().flat_map(|source| source.names.iter().cloned()));
        names.sort_unstable();
        names.dedup();
        let own = claims.cap.uses.and_then(|uses| i64::try_from(uses).ok());
        let own = own.map(|limit| Counter { link: link.id.to_string(), limit });
        let counters = own.into_iter().chain(source.into_iter().flat_map(|source| source.counters.iter().cloned()));
        Ok(Issued {
            jti: claims.jti,
            kid,
            sub: claims.sub.clone(),
            holder,
            purpose,
            claims: claims.canonical(),
            minted_by: by.actor(),
            principal,
            source: source.map(|source| source.chain.root().claims.jti),
            link: link.id.to_string(),
            names,
            counters: counters.collect(),
            issued_at: second(claims.iat),
            expires_at: second(claims.exp),
            revoked: None,
            used: claims.cap.uses.map(|_| 0),
        })
    }

    /// The body of the log entry about its beginning. Its scope stands in it by its hash, and its text nowhere.
    pub(crate) fn event(&self, scope: &Claims, at: OffsetDateTime) -> String {
        let cap = scope.to_json().get("cap").map(canonical::to_string).unwrap_or_default();
        let body = Body::new(EventKind::Mint)
            .set("jti", self.jti.to_string())
            .set("sub", self.sub.clone())
            .set("kid", self.kid.clone())
            .set("scope", sha256_hex(cap))
            .set("actor", self.minted_by.clone())
            .set("exp", timestamp(self.expires_at))
            .set("ts", timestamp(at));
        match self.source {
            Some(source) => body.set("source", source.to_string()).canonical(),
            None => body.canonical(),
        }
    }
}

/// The same fault in the words of a request: a field where a claim stood.
pub(crate) fn in_words_of_a_request(fault: Fault) -> Fault {
    if fault.reason() != Reason::InvalidRequest {
        return fault;
    }
    let claim = fault.metadata().iter().find(|(name, _)| *name == "field").map(|(_, claim)| claim.as_str());
    let field = match claim.unwrap_or_default() {
        "cap" | "cap.keys" => "keys",
        "cap.prefixes" => "prefixes",
        "cap.max_bytes" => "max_bytes",
        "cap.uses" => "uses",
        "cap.url" => "url",
        "exp" => "ttl",
        "cnf" => "holder",
        "del" | "del.max" => "max_depth",
        "aud" => "audience",
        "sub" => "subject",
        _ => return fault,
    };
    refused(field, fault.message())
}

/// Refuses words that are too long, or hold what nobody can print.
pub(crate) fn check_words(field: &'static str, text: &str) -> Result<()> {
    if text.chars().count() <= MAX_WORDS && !text.chars().any(char::is_control) {
        return Ok(());
    }
    Err(refused(field, format!("`{field}` is at most {MAX_WORDS} printable characters")))
}

fn second(unix: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(unix).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

fn unreadable() -> Fault {
    Fault::new(Reason::Internal, "a token that was just signed cannot be read")
}
