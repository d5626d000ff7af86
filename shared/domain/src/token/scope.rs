//! What a verified token may do. The last link decides: every other allows at least as much.

use uuid::Uuid;

use super::{Cap, Chain, Digest};
use crate::fault::{Fault, Reason, Result};
use crate::key::Key;
use crate::row::{Effect, Risk};

/// What a revocation can name of a token, and what its uses are counted under.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lineage<'a> {
    /// The issuer's key that signed the root.
    pub kid: &'a str,
    /// For whom the root was issued.
    pub sub: &'a str,
    /// The links, root first.
    pub links: Vec<LineageLink>,
}

/// One link of a lineage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineageLink {
    /// The id that it gives itself.
    pub jti: Uuid,
    /// The SHA-256 of its signing input. Count uses under this one: a holder chooses the `jti` of what it derives and
    /// could take somebody else's.
    pub id: Digest,
    /// The thumbprint of its holder's key.
    pub holder: Option<String>,
    /// How many calls it allows.
    pub uses: Option<u64>,
    /// The first second in which it is no longer good.
    pub exp: i64,
}

impl Chain {
    /// What it allows.
    pub fn cap(&self) -> &Cap {
        &self.leaf().claims.cap
    }

    /// Whether it reaches rows of this key. Others do not exist for its holder.
    pub fn covers(&self, key: &Key) -> bool {
        self.cap().covers(key)
    }

    /// The contract hash that the key is pinned to.
    pub fn pin(&self, key: &Key) -> Option<Digest> {
        self.cap().pin(key)
    }

    /// Whether every call waits for a person.
    pub fn owner_gate(&self) -> bool {
        self.cap().owner_gate
    }

    /// Step 11, before anybody asks whether there is such a row.
    ///
    /// # Errors
    /// `scope_mismatch`.
    pub fn check_scope(&self, key: &Key) -> Result<()> {
        if self.covers(key) {
            return Ok(());
        }
        Err(Fault::new(Reason::ScopeMismatch, "the token does not cover this key"))
    }

    /// Steps 11, 13 and the ceilings of 14, on a row as it is now.
    ///
    /// # Errors
    /// `scope_mismatch`, `contract_changed`, `risk_ceiling`, `effect_ceiling`, in this order.
    pub fn check_row(&self, key: &Key, contract_hash: &str, risk: Risk, effect: Effect) -> Result<()> {
        self.check_scope(key)?;
        let pin = self.pin(key).map(|pin| pin.to_string());
        if let Some(pin) = pin.filter(|pin| pin != contract_hash) {
            return Err(Fault::new(Reason::ContractChanged, "the row is not the one that the token is pinned to")
                .detail(format!("{pin}!={contract_hash}"))
                .fix("read the contract again and ask for a new token"));
        }
        self.check_ceilings(risk, effect)
    }

    /// The ceilings of 14 alone, for a row that the scope need not cover: a step that a flow has written.
    ///
    /// # Errors
    /// `risk_ceiling`, `effect_ceiling`, in this order.
    pub fn check_ceilings(&self, risk: Risk, effect: Effect) -> Result<()> {
        let cap = self.cap();
        if risk > cap.risk {
            return Err(Fault::new(Reason::RiskCeiling, "the row is more sensitive than the token allows")
                .detail(format!("{}<row:{risk}", cap.risk)));
        }
        if effect > cap.effect {
            return Err(Fault::new(Reason::EffectCeiling, "the row does more than the token allows")
                .detail(format!("{}<row:{effect}", cap.effect)));
        }
        Ok(())
    }

    /// The rest of step 14, on what the caller sent: its hash and its size in bytes.
    ///
    /// # Errors
    /// `body_not_allowed`, `payload_ceiling`, in this order.
    pub fn check_call(&self, arg: Digest, payload_bytes: u64) -> Result<()> {
        if self.cap().body.is_some_and(|body| body != arg) {
            return Err(Fault::new(Reason::BodyNotAllowed, "the token is for one call with fixed arguments")
                .detail("fixed_body_only"));
        }
        self.check_size(payload_bytes)
    }

    /// The size of what is sent alone, for calls that the caller did not word: those that a call makes.
    ///
    /// # Errors
    /// `payload_ceiling`.
    pub fn check_size(&self, payload_bytes: u64) -> Result<()> {
        match self.cap().max_bytes.filter(|most| payload_bytes > *most) {
            None => Ok(()),
            Some(most) => Err(Fault::new(Reason::PayloadCeiling, "the arguments are larger than the token allows")
                .detail(format!("{payload_bytes}>{most}"))),
        }
    }

    /// What a revocation can name of it.
    pub fn lineage(&self) -> Lineage<'_> {
        let links = self.links().iter().map(|link| LineageLink {
            jti: link.claims.jti,
            id: link.id,
            holder: link.claims.cnf.map(|key| key.thumbprint()),
            uses: link.claims.cap.uses,
            exp: link.claims.exp,
        });
        let root = self.root();
        let kid = root.header.kid.as_deref().expect("a verified root has a kid");
        Lineage { kid, sub: &root.claims.sub, links: links.collect() }
    }

    /// The name under which idempotency keys and limits are kept apart: the root and the holder of the leaf.
    pub fn identity(&self) -> String {
        let holder = self.leaf().claims.cnf.map_or_else(|| "bearer".to_owned(), |key| key.thumbprint());
        format!("token:{}:{holder}", self.root().claims.jti)
    }
}
