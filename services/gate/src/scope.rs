//! What somebody asks a token to cover, and what it then allows.

use std::collections::{BTreeMap, BTreeSet};

use callbook_domain::caller::{Caller, May};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk};
use callbook_domain::token::{Cap, Digest, Prefix};
use callbook_store::snapshot::Snapshot;

/// What is asked. Absent limits were not named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Scope {
    /// Keys, as they were written.
    pub(crate) keys: Vec<String>,
    /// Prefixes.
    pub(crate) prefixes: BTreeSet<Prefix>,
    /// Every key is pinned to its contract of now.
    pub(crate) pin: bool,
    /// The highest risk.
    pub(crate) risk: Option<Risk>,
    /// The gravest effect.
    pub(crate) effect: Option<Effect>,
    /// The most bytes of arguments.
    pub(crate) max_bytes: Option<u64>,
    /// The most calls.
    pub(crate) uses: Option<u64>,
    /// The hash of the only arguments.
    pub(crate) body: Option<Digest>,
    /// Every call waits for a person.
    pub(crate) owner_gate: bool,
}

impl Scope {
    /// What a root of this scope allows: what is not named is the narrowest.
    ///
    /// # Errors
    /// `forbidden` with the grant that is missing, before anything is said about rows; `unknown_key` with the key;
    /// `invalid_request`.
    pub(crate) fn root(&self, caller: &Caller, snapshot: &Snapshot, url: bool) -> Result<Cap> {
        if self.keys.is_empty() && self.prefixes.is_empty() {
            return Err(refused("keys", "keys or prefixes are needed").fix("name the keys that the token is for"));
        }
        self.check_grants(caller)?;
        Ok(Cap {
            keys: self.pinned(caller, snapshot)?,
            prefixes: self.prefixes.clone(),
            risk: self.risk.unwrap_or(Risk::Low),
            effect: self.effect.unwrap_or(Effect::Read),
            body: self.body,
            max_bytes: self.max_bytes,
            uses: self.uses,
            owner_gate: self.owner_gate,
            url,
        })
    }

    /// What a token of this scope allows that is narrowed from another one: what is not named is the source's.
    ///
    /// # Errors
    /// `widened:keys`, before anything is said about rows; `unknown_key` with the key; `invalid_request`. What else
    /// is wider than the source is not looked at here.
    pub(crate) fn within(&self, source: &Cap, caller: &Caller, snapshot: &Snapshot, url: bool) -> Result<Cap> {
        let is_covered = |key: &String| Key::parse(key).is_ok_and(|key| source.covers(&key));
        if !self.keys.iter().all(is_covered) {
            return Err(
                Fault::new(Reason::Widened, "a key is not covered by the token that you present").detail("keys")
            );
        }
        let (mut keys, prefixes) = if self.keys.is_empty() && self.prefixes.is_empty() {
            (source.keys.clone(), source.prefixes.clone())
        } else {
            (self.pinned(caller, snapshot)?, self.prefixes.clone())
        };
        // a pin of the source stays wherever its key is still reached
        for (key, pin) in source.keys.iter().filter(|(_, pin)| pin.is_some()) {
            if keys.contains_key(key) || prefixes.iter().any(|prefix| prefix.covers(key)) {
                keys.insert(key.clone(), *pin);
            }
        }
        Ok(Cap {
            keys,
            prefixes,
            risk: self.risk.unwrap_or(source.risk),
            effect: self.effect.unwrap_or(source.effect),
            body: self.body.or(source.body),
            max_bytes: self.max_bytes.or(source.max_bytes),
            uses: self.uses.or(source.uses),
            owner_gate: self.owner_gate || source.owner_gate,
            url,
        })
    }

    fn check_grants(&self, caller: &Caller) -> Result<()> {
        let Caller::Principal(principal) = caller else { return caller.require_owner() };
        let asked = self.keys.iter().map(String::as_str).chain(self.prefixes.iter().map(Prefix::as_str));
        for beginning in asked {
            for may in [May::Mint, May::Invoke] {
                let covers = |prefix: &str| beginning.starts_with(prefix);
                if !principal.grants.iter().any(|grant| grant.may == may && covers(&grant.prefix)) {
                    let needs = format!("{may}:{beginning}");
                    return Err(Fault::new(Reason::Forbidden, format!("this credential does not cover {needs}"))
                        .with("needs", needs));
                }
            }
        }
        Ok(())
    }

    /// The keys, each of which must be that of a row that the caller sees, with their pins.
    fn pinned(&self, caller: &Caller, snapshot: &Snapshot) -> Result<BTreeMap<Key, Option<Digest>>> {
        if self.pin && self.keys.is_empty() {
            return Err(refused("pin", "a prefix has no contract to be pinned to").fix("name the keys"));
        }
        let entry = |text: &String| {
            let found = snapshot.get(text).filter(|entry| caller.sees(entry.key()));
            let entry = found.ok_or_else(|| snapshot.unknown_key(caller, text))?;
            let pin = if self.pin { Some(contract(&entry.row.contract_hash)?) } else { None };
            Ok((entry.key().clone(), pin))
        };
        self.keys.iter().map(entry).collect()
    }
}

fn contract(hash: &str) -> Result<Digest> {
    Digest::parse(hash).ok_or_else(|| Fault::new(Reason::Internal, "a stored contract hash is none"))
}

/// A field that breaks a rule.
pub(crate) fn refused(field: &'static str, message: impl Into<String>) -> Fault {
    Fault::new(Reason::InvalidRequest, message).with("field", field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn source() -> Cap {
        Cap {
            keys: BTreeMap::from([(key("TEAM_ECHO"), Some(Digest::of("contract"))), (key("ALONE"), None)]),
            prefixes: BTreeSet::from([Prefix::parse("TEAM_").unwrap()]),
            risk: Risk::Low,
            effect: Effect::Write,
            body: None,
            max_bytes: Some(10),
            uses: Some(5),
            owner_gate: true,
            url: false,
        }
    }

    #[test]
    fn what_is_not_named_is_the_sources_and_pins_stay() {
        let snapshot = Snapshot::default();
        let whole = Scope::default().within(&source(), &Caller::Owner, &snapshot, false).unwrap();
        assert_eq!(whole, source());
        let prefixes = BTreeSet::from([Prefix::parse("TEAM_E").unwrap()]);
        let longer = Scope { prefixes, ..Scope::default() };
        let longer = longer.within(&source(), &Caller::Owner, &snapshot, false).unwrap();
        assert_eq!(longer.pin(&key("TEAM_ECHO")), Some(Digest::of("contract")));
        assert!(!longer.covers(&key("ALONE")) && longer.owner_gate);
    }

    #[test]
    fn what_the_source_does_not_cover_is_refused_before_anybody_asks_whether_it_exists() {
        let scope = |text: &str| Scope { keys: vec![text.into()], ..Scope::default() };
        let refusal = |text: &str| {
            let cap = scope(text).within(&source(), &Caller::Owner, &Snapshot::default(), false);
            cap.unwrap_err().error_text()
        };
        assert_eq!(refusal("OTHER"), "widened:keys");
        assert_eq!(refusal("TEAM_GONE"), "unknown_key");
        let nothing = Scope::default().root(&Caller::Owner, &Snapshot::default(), false).unwrap_err();
        assert_eq!(nothing.metadata(), [("field", "keys".to_owned())]);
    }
}
