//! A principal as it is kept: what its name and its grants may be, and the log entries about it.

use callbook_domain::caller::{Caller, Grant};
use callbook_domain::canonical::sha256_hex;
use callbook_domain::event::{Body, EventKind};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::MAX_KEY;
use callbook_domain::row::timestamp;
use time::OffsetDateTime;
use uuid::Uuid;

/// The longest name, in characters.
const MAX_NAME: usize = 64;
/// The most grants of one principal.
const MAX_GRANTS: usize = 256;

/// A stored principal, without its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// Stays the same when the name does not.
    pub(crate) id: Uuid,
    /// Unique for ever.
    pub(crate) name: String,
    /// What it may do.
    pub(crate) grants: Vec<Grant>,
    /// When it was added.
    pub(crate) created_at: OffsetDateTime,
    /// When it was ended.
    pub(crate) revoked_at: Option<OffsetDateTime>,
}

/// Whether a text may be a principal's name.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    if !name.is_empty() && name.len() <= MAX_NAME && name.bytes().all(fits) {
        return Ok(());
    }
    Err(Fault::new(Reason::InvalidRequest, "a name is 1 to 64 characters of `A-Za-z0-9_.-`").with("field", "name"))
}

/// Whether grants may be kept.
pub(crate) fn check_grants(grants: &[Grant]) -> Result<()> {
    if grants.len() > MAX_GRANTS {
        return Err(Fault::new(Reason::InvalidRequest, format!("a principal has at most {MAX_GRANTS} grants"))
            .with("field", "grants"));
    }
    match grants.iter().find(|grant| grant.prefix.len() > MAX_KEY || grant.prefix.contains('\0')) {
        None => Ok(()),
        Some(_) => Err(Fault::new(Reason::InvalidRequest, format!("a prefix is at most {MAX_KEY} bytes of text"))
            .with("field", "grants")),
    }
}

impl Kept {
    /// The body of the log entry about the principal's beginning or end. The grants stand in it by their hash: there
    /// may be more than an entry holds.
    pub(crate) fn event(&self, kind: EventKind, by: &Caller, at: OffsetDateTime) -> String {
        Body::new(kind)
            .set("principal", self.name.clone())
            .set("id", self.id.to_string())
            .set("grants", sha256_hex(grants_text(&self.grants)))
            .set("actor", by.actor())
            .set("ts", timestamp(at))
            .canonical()
    }
}

/// The grants as they are stored.
pub(crate) fn grants_text(grants: &[Grant]) -> String {
    serde_json::to_string(grants).expect("grants are words and text")
}

#[cfg(test)]
mod tests {
    use callbook_domain::caller::May;

    use super::*;

    #[test]
    fn a_name_is_plain_and_short() {
        for good in ["a", "team-1.prod_X", &"n".repeat(64)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        for bad in ["", "a b", "é", "a/b", "a\0", &"n".repeat(65)] {
            assert_eq!(check_name(bad).unwrap_err().reason(), Reason::InvalidRequest, "{bad:?}");
        }
    }

    #[test]
    fn an_event_fits_however_many_grants_there_are() {
        let grants = vec![Grant { may: May::ReadReceipts, prefix: "p".repeat(128) }; MAX_GRANTS];
        check_grants(&grants).unwrap();
        let at = OffsetDateTime::UNIX_EPOCH;
        let kept = Kept { id: Uuid::nil(), name: "n".repeat(64), grants, created_at: at, revoked_at: None };
        assert!(kept.event(EventKind::Mint, &Caller::Owner, at).len() < 1_024);
        assert!(check_grants(&[Grant { may: May::Edit, prefix: "p".repeat(129) }]).is_err());
    }
}
