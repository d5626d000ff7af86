//! Who calls, and what that caller may do and see.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::fault::{Fault, Reason, Result};
use crate::key::Key;
use crate::row::word_enum;
use crate::token::{Cap, Chain, Prefix};

word_enum! {
    /// What a grant lets its holder do.
    May {
        /// Call rows, and ask for repairs and replays.
        Invoke = "invoke",
        /// Write rows and recommendations.
        Edit = "edit",
        /// Hand out narrower credentials.
        Mint = "mint",
        /// Decide on held calls and lower a row's gates.
        Approve = "approve",
        /// Read other callers' receipts.
        ReadReceipts = "read_receipts",
    }
}

impl Serialize for May {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for May {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        May::parse(&word)
            .ok_or_else(|| serde::de::Error::custom("`may` is one of invoke, edit, mint, approve, read_receipts"))
    }
}

/// One thing that a principal may do, over the keys that begin with `prefix`; the empty prefix is all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// What.
    pub may: May,
    /// Over which keys.
    #[serde(default)]
    pub prefix: String,
}

impl Grant {
    fn covers(&self, may: May, key: &str) -> bool {
        self.may == may && key.starts_with(&self.prefix)
    }
}

/// A platform team, as its API key or the token of an outside issuer shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    /// Stays the same when the name does not.
    pub id: Uuid,
    /// Chosen by the owner, unique; of an outside issuer `<issuer>:<subject>`.
    pub name: String,
    /// What it may do.
    pub grants: Vec<Grant>,
    /// When the JWT ends by which an outside issuer vouches for it, in seconds since the Unix epoch. None for a principal
    /// of ours, which ends when its record does.
    pub vouched_until: Option<i64>,
}

impl Principal {
    /// Whether an outside issuer vouches for it: no record of ours can be ended.
    pub fn is_outside(&self) -> bool {
        self.vouched_until.is_some()
    }
}

/// The holder of a capability token that is good here and now: steps 1 to 8 of the check order of tokens hold, and where
/// it makes a call step 9 too. Nothing of it was known to be taken back; the commit point looks again.
#[derive(Clone, Debug, PartialEq)]
pub struct Holder {
    /// What the token says.
    pub chain: Arc<Chain>,
    /// All that a revocation can name of it and of the tokens that the gate narrowed it from: `jti:…` and `link:…` of
    /// every link, `holder:…`, `sub:…`, `kid:…`, and `principal:…` of the one who minted it.
    pub names: Vec<String>,
    /// The counters of its links that count calls, and of the tokens that the gate narrowed it from. No link twice.
    pub counters: Vec<Counter>,
    /// The principal that minted it, or the token that it was narrowed from.
    pub principal: Option<Uuid>,
}

/// One counter of calls.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Counter {
    /// The id of the link under which it counts.
    pub link: String,
    /// The most calls.
    pub limit: i64,
}

impl Holder {
    /// The first second in which the token is no longer good, since the Unix epoch: that of the link that ends first.
    pub fn expires_at(&self) -> i64 {
        self.chain.links().iter().map(|link| link.claims.exp).min().expect("a chain is never empty")
    }

    /// What it allows.
    pub fn cap(&self) -> &Cap {
        self.chain.cap()
    }
}

/// Who calls.
#[derive(Clone, Debug, PartialEq)]
pub enum Caller {
    /// The holder of the owner key: may do everything.
    Owner,
    /// The holder of an API key: may do what its grants say.
    Principal(Principal),
    /// The holder of a capability token: may run what the token covers.
    Holder(Arc<Holder>),
    /// Nobody in particular: reads what a public catalogue shows, and public receipts.
    Anonymous,
}

impl Caller {
    /// The name under which idempotency keys, key-value pairs and limits are kept apart.
    pub fn identity(&self) -> String {
        match self {
            Caller::Owner => "owner".into(),
            Caller::Principal(principal) => format!("principal:{}", principal.id),
            Caller::Holder(holder) => holder.chain.identity(),
            Caller::Anonymous => "anonymous".into(),
        }
    }

    /// The name in receipts and events.
    pub fn actor(&self) -> String {
        match self {
            Caller::Owner => "owner:terminal-key".into(),
            Caller::Principal(principal) => format!("principal:{}", principal.name),
            Caller::Holder(holder) => format!("cap:{}", holder.chain.leaf().claims.jti),
            Caller::Anonymous => "anonymous".into(),
        }
    }

    /// Whether the caller may do this to this key. An absent key asks for the right over all keys.
    pub fn may(&self, may: May, key: Option<&Key>) -> bool {
        match self {
            Caller::Owner => true,
            Caller::Principal(principal) => {
                let key = key.map_or("", Key::as_str);
                principal.grants.iter().any(|grant| grant.covers(may, key))
            }
            Caller::Holder(holder) => may == May::Invoke && covers(holder, key),
            Caller::Anonymous => false,
        }
    }

    /// The principal of ours that calls: its record can be ended.
    pub fn recorded_principal(&self) -> Option<Uuid> {
        match self {
            Caller::Principal(principal) if !principal.is_outside() => Some(principal.id),
            Caller::Principal(_) | Caller::Owner | Caller::Holder(_) | Caller::Anonymous => None,
        }
    }

    /// When its credential ends by itself, in seconds since the Unix epoch.
    pub fn ends(&self) -> Option<i64> {
        match self {
            Caller::Holder(holder) => Some(holder.expires_at()),
            Caller::Principal(principal) => principal.vouched_until,
            Caller::Owner | Caller::Anonymous => None,
        }
    }

    /// Refuses a caller that may not do this to this key: `unauthorized` without a credential, else `forbidden` with
    /// what it needs.
    pub fn require(&self, may: May, key: Option<&Key>) -> Result<()> {
        if self.may(may, key) {
            return Ok(());
        }
        if let (Caller::Holder(holder), May::Invoke, Some(key)) = (self, may, key) {
            return holder.chain.check_scope(key);
        }
        let needs = match key {
            Some(key) => format!("{may}:{key}"),
            None => format!("{may}:"),
        };
        self.refuse(needs)
    }

    /// Refuses everybody but the owner.
    pub fn require_owner(&self) -> Result<()> {
        match self {
            Caller::Owner => Ok(()),
            Caller::Principal(_) | Caller::Holder(_) | Caller::Anonymous => self.refuse("owner".into()),
        }
    }

    /// Refuses a caller without any credential.
    pub fn require_credential(&self) -> Result<()> {
        match self {
            Caller::Owner | Caller::Principal(_) | Caller::Holder(_) => Ok(()),
            Caller::Anonymous => self.refuse("credential".into()),
        }
    }

    fn refuse(&self, needs: String) -> Result<()> {
        match self {
            Caller::Anonymous => Err(unauthorized()),
            Caller::Owner | Caller::Principal(_) | Caller::Holder(_) => {
                Err(Fault::new(Reason::Forbidden, format!("this credential does not cover {needs}"))
                    .with("needs", needs))
            }
        }
    }

    /// Whether rows of this key exist for the caller. A principal sees what some grant of its covers, a holder what its
    /// token covers; hidden rows answer like unknown ones.
    pub fn sees(&self, key: &Key) -> bool {
        match self {
            Caller::Owner | Caller::Anonymous => true,
            Caller::Principal(principal) => {
                principal.grants.iter().any(|grant| key.as_str().starts_with(&grant.prefix))
            }
            Caller::Holder(holder) => holder.chain.covers(key),
        }
    }

    /// Whether the caller sees every row, so that whole-book figures may be shown to it as they are.
    pub fn sees_all(&self) -> bool {
        match self {
            Caller::Owner | Caller::Anonymous => true,
            Caller::Principal(principal) => principal.grants.iter().any(|grant| grant.prefix.is_empty()),
            Caller::Holder(holder) => covers(holder, None),
        }
    }

    /// The same text for callers that see the same keys, and the empty one for those that see all.
    pub fn sight(&self) -> String {
        let (keys, prefixes): (Vec<&str>, BTreeSet<&str>) = match self {
            Caller::Owner | Caller::Anonymous => return String::new(),
            Caller::Principal(_) | Caller::Holder(_) if self.sees_all() => return String::new(),
            Caller::Principal(principal) => {
                (Vec::new(), principal.grants.iter().map(|grant| grant.prefix.as_str()).collect())
            }
            Caller::Holder(holder) => {
                let cap = holder.cap();
                (cap.keys.keys().map(Key::as_str).collect(), cap.prefixes.iter().map(Prefix::as_str).collect())
            }
        };
        serde_json::json!([keys, prefixes]).to_string()
    }
}

/// Whether the token covers the key; an absent one stands for all keys.
fn covers(holder: &Holder, key: Option<&Key>) -> bool {
    match key {
        Some(key) => holder.chain.covers(key),
        None => holder.cap().prefixes.iter().any(|prefix| prefix.as_str().is_empty()),
    }
}

/// The answer to a missing or unknown credential. It says nothing else, so that nothing can be learned from it.
pub fn unauthorized() -> Fault {
    Fault::new(Reason::Unauthorized, "a credential is needed")
        .fix("send `Authorization: Bearer <key>`, or `x-terminal-key: <key>` as the owner")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(may: May, prefix: &str) -> Caller {
        let grants = vec![Grant { may, prefix: prefix.into() }];
        Caller::Principal(Principal { id: Uuid::nil(), name: "team".into(), grants, vouched_until: None })
    }

    #[test]
    fn a_grant_covers_its_prefix_and_nothing_else() {
        let key = Key::parse("GITHUB_LIST").unwrap();
        let other = Key::parse("STRIPE_LIST").unwrap();
        let team = principal(May::Edit, "GITHUB_");
        assert!(team.may(May::Edit, Some(&key)) && team.sees(&key));
        assert!(!team.may(May::Edit, Some(&other)) && !team.sees(&other));
        assert!(!team.may(May::Invoke, Some(&key)));
        assert!(!team.may(May::Edit, None), "all keys is more than a prefix");
        let refused = team.require(May::Edit, Some(&other)).unwrap_err();
        assert_eq!(refused.metadata(), [("needs", "edit:STRIPE_LIST".to_owned())]);
    }

    #[test]
    fn a_missing_credential_is_unauthorized_and_never_forbidden() {
        assert_eq!(Caller::Anonymous.require(May::Edit, None).unwrap_err().reason(), Reason::Unauthorized);
        assert_eq!(principal(May::Edit, "").require_owner().unwrap_err().reason(), Reason::Forbidden);
    }
}
