//! What a revocation takes back.

use callbook_domain::caller::{Caller, Holder};
use callbook_domain::event::{Body, EventKind};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::row::timestamp;
use callbook_domain::token::Digest;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::scope::refused;

/// The longest subject, in bytes; claims know the same bound.
const MAX_SUBJECT: usize = 256;

/// What is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One link, by the id that it gives itself, and all that was derived from it.
    Link(Uuid),
    /// A token that the gate issued, and all that was derived from it.
    Root(Uuid),
    /// Every token with a link of this holder, by the thumbprint of its key.
    Holder(String),
    /// Every token of this subject.
    Subject(String),
    /// Every token that this key signed.
    Kid(String),
}

impl Target {
    /// Refuses a name that no token could have.
    ///
    /// # Errors
    /// `invalid_request`.
    pub(crate) fn check(&self) -> Result<()> {
        let is_thumbprint = |text: &String| Digest::from_base64url(text).is_some();
        let subject_fits =
            |text: &str| !text.is_empty() && text.len() <= MAX_SUBJECT && !text.chars().any(char::is_control);
        match self {
            Target::Link(_) | Target::Root(_) => Ok(()),
            Target::Holder(holder) if !is_thumbprint(holder) => {
                Err(refused("holder", "a holder is named by the RFC 7638 thumbprint of its key"))
            }
            Target::Subject(subject) if !subject_fits(subject) => {
                Err(refused("subject", "a subject is 1 to 256 bytes of printable text"))
            }
            Target::Kid(kid) if !is_thumbprint(kid) => Err(refused("kid", "a key is named by its RFC 7638 thumbprint")),
            Target::Holder(_) | Target::Subject(_) | Target::Kid(_) => Ok(()),
        }
    }

    /// The name under which the owner, or the principal that minted the token, takes it back.
    pub(crate) fn name(&self) -> String {
        match self {
            Target::Link(jti) | Target::Root(jti) => format!("jti:{jti}"),
            Target::Holder(holder) => format!("holder:{holder}"),
            Target::Subject(subject) => format!("sub:{subject}"),
            Target::Kid(kid) => format!("kid:{kid}"),
        }
    }

    /// The name under which a holder takes back its own token: the last link of what it presents, and no other. A
    /// holder could give a link of its own somebody else's `jti`, so the name is one that only that link has.
    ///
    /// # Errors
    /// `forbidden`.
    pub(crate) fn own(&self, holder: &Holder) -> Result<String> {
        let leaf = holder.chain.leaf();
        match self {
            Target::Link(jti) if *jti == leaf.claims.jti => Ok(format!("link:{}", leaf.id)),
            Target::Root(jti) if *jti == leaf.claims.jti && leaf.header.kid.is_some() => {
                Ok(format!("link:{}", leaf.id))
            }
            Target::Link(_) | Target::Root(_) | Target::Holder(_) | Target::Subject(_) | Target::Kid(_) => {
                Err(Fault::new(Reason::Forbidden, "a holder takes back the token that it presents, and no other")
                    .with("needs", "owner"))
            }
        }
    }
}

/// The body of the log entry about a revocation.
pub(crate) fn event(name: &str, reason: &str, by: &Caller, at: OffsetDateTime) -> String {
    let body = Body::new(EventKind::Revoke).set("revoked", name.to_owned()).set("actor", by.actor());
    let body = body.set("ts", timestamp(at));
    if reason.is_empty() { body.canonical() } else { body.set("reason", reason.to_owned()).canonical() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_token_has_is_refused() {
        let thumbprint = Digest::of("a key").base64url();
        for good in [Target::Holder(thumbprint.clone()), Target::Kid(thumbprint), Target::Subject("agent:a".into())] {
            assert!(good.check().is_ok(), "{good:?}");
        }
        for bad in [
            Target::Holder("short".into()),
            Target::Kid("../../etc".into()),
            Target::Subject(String::new()),
            Target::Subject("a\0".into()),
        ] {
            assert_eq!(bad.check().unwrap_err().reason(), Reason::InvalidRequest, "{bad:?}");
        }
    }
}
