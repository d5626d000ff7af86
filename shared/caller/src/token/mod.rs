//! Capability tokens: steps 1 to 10 of their check order, with what is known already remembered.
//!
//! A token that was verified costs one look at a hash afterwards, and once a second one query. One that was never seen
//! costs signatures; a bounded number of such waits for few processors, so that a flood of bad tokens takes nothing from
//! tokens that are known.

mod keys;
mod standing;

use std::sync::Arc;

use callbook_domain::arguments::Sent;
use callbook_domain::caller::Holder;
use callbook_domain::clock::Clock;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::token::{self, Chain, Digest, Expect, ProofInput, argument_hash};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use sqlx::PgPool;
use time::Duration;

use crate::lane::Lane;
use keys::IssuerKeys;
use standing::Standings;

/// Bytes of token text whose chains are remembered.
const REMEMBERED_BYTES: u64 = 16 << 20;
/// The chains that we expect to remember.
const REMEMBERED: usize = 16_384;

/// Whose tokens are taken.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// The name of this deployment's executors in `aud`.
    pub audience: String,
    /// The name of its issuer in `iss`.
    pub issuer: String,
    /// The longest life of a root.
    pub max_ttl: Duration,
}

impl Default for Deployment {
    /// What the settings say where nothing is set.
    fn default() -> Self {
        Deployment { audience: "callbook".into(), issuer: "callbook".into(), max_ttl: Duration::days(7) }
    }
}

/// A token whose links hold.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    /// The SHA-256 of its text.
    hash: Digest,
    /// What it says.
    pub(crate) chain: Arc<Chain>,
    /// Bytes of its text.
    bytes: u64,
}

/// Verifies tokens of one deployment.
pub(crate) struct Tokens {
    pub(crate) deployment: Deployment,
    clock: Clock,
    keys: IssuerKeys,
    standings: Standings,
    known: Cache<Digest, Arc<Known>, Bytes>,
}

impl Tokens {
    pub(crate) fn new(pool: PgPool, clock: Clock, deployment: Deployment) -> Self {
        Tokens {
            deployment,
            keys: IssuerKeys::new(pool.clone(), clock.clone()),
            clock,
            standings: Standings::new(pool),
            known: Cache::with_weighter(REMEMBERED, REMEMBERED_BYTES, Bytes),
        }
    }

    /// Steps 1 to 8.
    pub(crate) async fn verified(&self, text: &str, lane: &Lane) -> Result<Arc<Known>> {
        let hash = Digest::of(text);
        match self.known.get(&hash) {
            Some(known) => self.still_good(known).await,
            None => self.first_seen(hash, text, lane).await,
        }
    }

    /// What can have changed since the token was verified: the issuer's keys, and the time.
    async fn still_good(&self, known: Arc<Known>) -> Result<Arc<Known>> {
        let kid = known.chain.root().header.kid.as_deref().unwrap_or_default();
        if self.keys.believed().await?.named(kid).is_none() {
            self.known.remove(&known.hash);
            return Err(Fault::new(Reason::KidUnknown, "the key that signed the token is no longer believed"));
        }
        token::check_time(&known.chain, &self.expect())?;
        Ok(known)
    }

    async fn first_seen(&self, hash: Digest, text: &str, lane: &Lane) -> Result<Arc<Known>> {
        let mut keys = self.keys.believed().await?;
        if matches!(token::inspect_headers(text, &keys), Err(fault) if fault.reason() == Reason::KidUnknown) {
            keys = self.keys.looked_again().await?;
        }
        token::inspect_headers(text, &keys)?;
        let _turn = lane.turn().await?;
        let chain = Arc::new(token::inspect(text, &keys, &self.expect())?);
        let known = Arc::new(Known { hash, chain, bytes: text.len() as u64 });
        self.known.insert(hash, known.clone());
        Ok(known)
    }

    /// Step 9: the id of the proof.
    pub(crate) fn prove(&self, known: &Known, proof: Option<&str>, key: &str, sent: &Sent) -> Result<Option<String>> {
        let input = match (proof, &known.chain.leaf().claims.cnf) {
            (Some(text), Some(_)) => Some(ProofInput { text, key, arg: argument_hash(sent)? }),
            // of a bearer token's proof only that there is one is looked at
            (Some(text), None) => Some(ProofInput { text, key, arg: Digest::of("") }),
            (None, _) => None,
        };
        token::prove(&known.chain, &self.expect(), input.as_ref())
    }

    /// Step 10: the holder, of whom nothing is known to be taken back.
    pub(crate) async fn standing(&self, known: &Known) -> Result<Arc<Holder>> {
        self.standings.of(known.hash, &known.chain).await
    }

    fn expect(&self) -> Expect<'_> {
        Expect {
            audience: &self.deployment.audience,
            iss: &self.deployment.issuer,
            now: self.clock.now(),
            max_ttl: self.deployment.max_ttl,
        }
    }
}

/// The size of a chain, by its text.
#[derive(Clone)]
struct Bytes;

impl Weighter<Digest, Arc<Known>> for Bytes {
    fn weight(&self, _: &Digest, known: &Arc<Known>) -> u64 {
        known.bytes
    }
}
