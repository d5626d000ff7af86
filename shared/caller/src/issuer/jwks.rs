//! The keys of an outside issuer, as it publishes them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use callbook_domain::fault::{Fault, Reason, Result};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use tokio::sync::Mutex;

/// How long keys are believed without another look.
const BELIEVED: Duration = Duration::from_secs(300);
/// How long they are believed where the issuer does not answer.
const BELIEVED_AT_MOST: Duration = Duration::from_secs(3_600);
/// Between two looks, however many unknown keys are named, and whether or not the issuer answers.
const PACE: Duration = Duration::from_secs(5);
/// The largest set of keys, in bytes.
const MAX_BYTES: usize = 256 * 1_024;
/// The smallest modulus of an RSA key, in characters of base64url: 2,048 bits.
const MIN_RSA: usize = 342;

/// A key that may sign.
pub(super) struct Trusted {
    kid: Option<String>,
    /// The algorithms that it may be used with, decided by its type and never by a token.
    pub(super) algorithms: Vec<Algorithm>,
    pub(super) key: DecodingKey,
}

/// The keys of one issuer.
pub(super) struct Jwks {
    url: String,
    client: reqwest::Client,
    held: ArcSwapOption<Held>,
    /// When the last look began.
    looking: Mutex<Option<Instant>>,
}

struct Held {
    keys: Vec<Arc<Trusted>>,
    at: Instant,
}

impl Jwks {
    pub(super) fn new(url: String, client: reqwest::Client) -> Self {
        Jwks { url, client, held: ArcSwapOption::empty(), looking: Mutex::default() }
    }

    /// The key of this name that takes this algorithm; without a name the only one that takes it.
    ///
    /// # Errors
    /// `service_unavailable` where no keys are known and the issuer does not give any.
    pub(super) async fn key(&self, kid: Option<&str>, algorithm: Algorithm) -> Result<Option<Arc<Trusted>>> {
        let held = self.held.load_full();
        let is_young = held.as_ref().is_some_and(|held| held.at.elapsed() < BELIEVED);
        let found = held.and_then(|held| held.find(kid, algorithm));
        if is_young && found.is_some() {
            return Ok(found);
        }
        self.look().await;
        match self.held.load_full() {
            Some(held) if held.at.elapsed() < BELIEVED_AT_MOST => Ok(held.find(kid, algorithm)),
            Some(_) | None => Err(Fault::new(Reason::ServiceUnavailable, "the issuer's keys cannot be read now")
                .retry_after_ms(u64::try_from(PACE.as_millis()).unwrap_or(u64::MAX))),
        }
    }

    /// Reads the keys anew, unless that was tried a moment ago. Those who come together share one look.
    async fn look(&self) {
        let mut last = self.looking.lock().await;
        if last.is_some_and(|last| last.elapsed() < PACE) {
            return;
        }
        let at = Instant::now();
        *last = Some(at);
        match self.fetch().await {
            Ok(keys) => self.held.store(Some(Arc::new(Held { keys, at }))),
            Err(error) => tracing::warn!(%error, url = self.url, "the keys of an outside issuer cannot be read"),
        }
    }

    async fn fetch(&self) -> Result<Vec<Arc<Trusted>>, String> {
        let mut answer = self.client.get(&self.url).send().await.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("status {}", answer.status()));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|error| error.to_string())? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > MAX_BYTES {
                return Err(format!("more than {MAX_BYTES} bytes"));
            }
        }
        let set: JwkSet = serde_json::from_slice(&bytes).map_err(|error| error.to_string())?;
        Ok(set.keys.iter().filter_map(trusted).map(Arc::new).collect())
    }
}

impl Held {
    fn find(&self, kid: Option<&str>, algorithm: Algorithm) -> Option<Arc<Trusted>> {
        let mut fitting = self.keys.iter().filter(|key| key.algorithms.contains(&algorithm));
        match kid {
            Some(kid) => fitting.find(|key| key.kid.as_deref() == Some(kid)).cloned(),
            None => fitting.next().filter(|_| fitting.next().is_none()).cloned(),
        }
    }
}

/// The key, where it is one that signs, public and strong enough.
fn trusted(jwk: &Jwk) -> Option<Trusted> {
    if matches!(jwk.common.public_key_use, Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_))) {
        return None;
    }
    let of_type: &[Algorithm] = match &jwk.algorithm {
        AlgorithmParameters::RSA(key) if key.n.len() >= MIN_RSA => &[
            Algorithm::RS256,
            Algorithm::RS384,
            Algorithm::RS512,
            Algorithm::PS256,
            Algorithm::PS384,
            Algorithm::PS512,
        ],
        AlgorithmParameters::EllipticCurve(key) => match key.curve {
            EllipticCurve::P256 => &[Algorithm::ES256],
            EllipticCurve::P384 => &[Algorithm::ES384],
            _ => return None,
        },
        AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => &[Algorithm::EdDSA],
        _ => return None,
    };
    let named = jwk.common.key_algorithm.map(|algorithm| algorithm.to_string());
    let may = |algorithm: &Algorithm| named.as_ref().is_none_or(|named| *named == format!("{algorithm:?}"));
    Some(Trusted {
        kid: jwk.common.key_id.clone(),
        algorithms: of_type.iter().copied().filter(may).collect(),
        key: DecodingKey::from_jwk(jwk).ok()?,
    })
}
