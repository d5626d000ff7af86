//! What a token is asked to cover.

use callbook_domain::fault::Result;
use callbook_wire::gate::v1 as wire;

use super::{invalid, text};
use crate::answer::{Effect, Raw, Risk, Word};

/// The fields of a scope, as a body had them.
#[derive(Default)]
pub(super) struct Scope {
    pub(super) keys: Option<Vec<String>>,
    pub(super) prefixes: Option<Vec<String>>,
    pub(super) pin: Option<bool>,
    pub(super) risk: Option<Risk>,
    pub(super) effect: Option<Effect>,
    pub(super) max_bytes: Option<u64>,
    pub(super) uses: Option<u64>,
    pub(super) body: Option<Raw>,
    pub(super) owner_gate: Option<bool>,
}

impl Scope {
    /// The scope of the wire. What covers nothing or allows no use is refused here: on the wire it would
    /// read as no limit.
    pub(super) fn into_wire(self) -> Result<wire::TokenScope> {
        if self.uses == Some(0) {
            return Err(invalid("uses", "`uses` is a whole number from 1"));
        }
        let named = [&self.keys, &self.prefixes];
        let covers_nothing = named.iter().all(|list| list.as_ref().is_none_or(Vec::is_empty));
        if covers_nothing && named.iter().any(|list| list.is_some()) {
            return Err(invalid("keys", "`keys` and `prefixes` are empty; name what the token covers"));
        }
        let body = self.body;
        if body.as_ref().is_some_and(|body| !body.get().starts_with(['{', '[', '"'])) {
            return Err(invalid("body", "`body` is an object or list of arguments, or text"));
        }
        Ok(wire::TokenScope {
            keys: self.keys.unwrap_or_default(),
            prefixes: self.prefixes.unwrap_or_default(),
            pin: self.pin.unwrap_or_default(),
            risk: self.risk.map(|risk| risk.as_str().to_owned()),
            effect: self.effect.map(|effect| effect.as_str().to_owned()),
            max_bytes: self.max_bytes,
            uses: self.uses,
            body_json: body.map(text),
            owner_gate: self.owner_gate.unwrap_or_default(),
        })
    }
}
