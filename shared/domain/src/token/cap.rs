//! What a link allows.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::Digest;
use super::fields::Fields;
use crate::fault::Result;
use crate::key::{Key, MAX_KEY};
use crate::row::{Effect, Risk};

/// What a link allows. Absent limits are no limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cap {
    /// Keys that it covers, each with the contract hash that it is pinned to, if any. A pin holds also where a prefix
    /// covers the key.
    pub keys: BTreeMap<Key, Option<Digest>>,
    /// Prefixes whose keys it covers.
    pub prefixes: BTreeSet<Prefix>,
    /// The highest risk of a row.
    pub risk: Risk,
    /// The gravest effect of a row.
    pub effect: Effect,
    /// The hash of the only arguments that it may be used with.
    pub body: Option<Digest>,
    /// The most bytes of a call's arguments.
    pub max_bytes: Option<u64>,
    /// The most calls under it and everything derived from it, at least 1.
    pub uses: Option<u64>,
    /// Every call waits for a person.
    pub owner_gate: bool,
    /// It may travel in a URL.
    pub url: bool,
}

/// The beginning of keys; the empty one is that of all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix(String);

impl Prefix {
    /// Reads a prefix: at most 128 of the characters that a key may have.
    pub fn parse(text: &str) -> Option<Prefix> {
        let fits =
            text.len() <= MAX_KEY && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'));
        fits.then(|| Prefix(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the key begins with it.
    pub fn covers(&self, key: &Key) -> bool {
        key.as_str().starts_with(&self.0)
    }
}

impl Cap {
    /// Whether it reaches rows of this key, by name or by prefix.
    pub fn covers(&self, key: &Key) -> bool {
        self.keys.contains_key(key) || self.prefixes.iter().any(|prefix| prefix.covers(key))
    }

    /// The contract hash that the key is pinned to.
    pub fn pin(&self, key: &Key) -> Option<Digest> {
        self.keys.get(key).copied().flatten()
    }

    /// Whether it reaches more than what only reads and is not sensitive.
    pub(super) fn is_grave(&self) -> bool {
        self.effect != Effect::Read || self.risk != Risk::Low
    }

    pub(super) fn read(value: Value) -> Result<Cap> {
        let mut fields = Fields::new("cap.", value)?;
        let cap = Cap {
            keys: keys(&mut fields)?,
            prefixes: prefixes(&mut fields)?,
            risk: fields.text("risk", Risk::parse)?,
            effect: fields.text("effect", Effect::parse)?,
            body: fields.optional_text("body", Digest::parse)?,
            max_bytes: fields.optional_whole("max_bytes")?,
            uses: fields.optional_whole("uses")?,
            owner_gate: fields.flag("owner_gate")?,
            url: fields.flag("url")?,
        };
        fields.finish()?;
        Ok(cap)
    }

    pub(super) fn to_json(&self) -> Value {
        let mut cap = Map::new();
        if !self.keys.is_empty() {
            let pin = |pin: &Option<Digest>| pin.map_or(Value::Null, |pin| pin.to_string().into());
            let keys = self.keys.iter().map(|(key, pinned)| (key.to_string(), pin(pinned)));
            cap.insert("keys".into(), Value::Object(keys.collect()));
        }
        if !self.prefixes.is_empty() {
            cap.insert("prefixes".into(), self.prefixes.iter().map(Prefix::as_str).collect());
        }
        cap.insert("risk".into(), self.risk.as_str().into());
        cap.insert("effect".into(), self.effect.as_str().into());
        let limits = [("max_bytes", self.max_bytes), ("uses", self.uses)];
        cap.extend(limits.into_iter().filter_map(|(name, limit)| Some((name.to_owned(), limit?.into()))));
        cap.extend(self.body.map(|body| ("body".to_owned(), body.to_string().into())));
        let flags = [("owner_gate", self.owner_gate), ("url", self.url)];
        cap.extend(flags.into_iter().filter(|(_, on)| *on).map(|(name, _)| (name.to_owned(), true.into())));
        Value::Object(cap)
    }
}

fn keys(fields: &mut Fields) -> Result<BTreeMap<Key, Option<Digest>>> {
    let members = match fields.optional("keys") {
        None => return Ok(BTreeMap::new()),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(fields.wrong("keys", "must be an object of key and pin")),
    };
    let entry = |(key, pin): (String, Value)| {
        let pin = match pin {
            Value::Null => None,
            pin => Some(pin.as_str().and_then(Digest::parse)?),
        };
        Some((Key::parse(&key).ok()?, pin))
    };
    let keys: Option<BTreeMap<_, _>> = members.into_iter().map(entry).collect();
    keys.ok_or_else(|| fields.wrong("keys", "must be an object of key and pin"))
}

fn prefixes(fields: &mut Fields) -> Result<BTreeSet<Prefix>> {
    let items = match fields.optional("prefixes") {
        None => return Ok(BTreeSet::new()),
        Some(Value::Array(items)) => items,
        Some(_) => return Err(fields.wrong("prefixes", "must be a list")),
    };
    let prefixes: Option<BTreeSet<Prefix>> = items.iter().map(|item| item.as_str().and_then(Prefix::parse)).collect();
    prefixes.ok_or_else(|| fields.wrong("prefixes", "must be beginnings of keys"))
}
