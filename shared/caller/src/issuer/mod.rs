//! Outside issuers: a JWT of one that the operator configured acts as a principal, with the grants of its scopes.

mod jwks;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use callbook_domain::caller::{Grant, Principal, unauthorized};
use callbook_domain::clock::Clock;
use callbook_domain::fault::Result;
use callbook_domain::token::Digest;
use jsonwebtoken::{Algorithm, Validation, decode, decode_header};
use quick_cache::sync::Cache;
use serde::Deserialize;
use uuid::Uuid;

use crate::lane::Lane;
use jwks::Jwks;

/// How far an issuer's clock may be from ours, in seconds.
const SKEW: f64 = 30.0;
/// The largest JWT, in bytes.
const MAX_BYTES: usize = 16 * 1_024;
/// How many are remembered.
const REMEMBERED: usize = 4_096;
/// The longest subject, in bytes.
const MAX_SUBJECT: usize = 256;
/// How long a connection to an issuer, and its whole answer, may take.
const CONNECT: Duration = Duration::from_secs(2);
const ANSWER: Duration = Duration::from_secs(3);

/// Somebody else whose JWTs are taken.
#[derive(Clone, Debug)]
pub struct Issuer {
    /// The name that it has here, in front of its subjects.
    pub name: String,
    /// The `iss` of its tokens.
    pub iss: String,
    /// The name of this deployment in `aud`.
    pub audience: String,
    /// Where its keys are.
    pub jwks_url: String,
    /// What each scope allows.
    pub scopes: BTreeMap<String, Vec<Grant>>,
}

/// The issuers of one deployment, by their `iss`.
pub(crate) struct Issuers {
    clock: Clock,
    by_iss: HashMap<String, (Issuer, Jwks)>,
    known: Cache<Digest, Seen>,
}

/// A JWT that was verified.
#[derive(Clone)]
struct Seen {
    principal: Principal,
    exp: f64,
    /// Whose key signed it.
    iss: String,
    kid: Option<String>,
    alg: Algorithm,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    exp: f64,
    #[serde(default)]
    nbf: Option<f64>,
    #[serde(default)]
    scope: Words,
    #[serde(default)]
    scp: Words,
}

/// Words in one text, or in a list.
#[derive(Deserialize)]
#[serde(untagged)]
enum Words {
    Text(String),
    List(Vec<String>),
}

impl Issuers {
    /// Nothing is read before a JWT comes.
    ///
    /// # Errors
    /// Those of a client that cannot be made.
    pub(crate) fn new(issuers: Vec<Issuer>, clock: Clock) -> reqwest::Result<Self> {
        let mut by_iss = HashMap::new();
        for issuer in issuers {
            let client = reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .no_proxy()
                .connect_timeout(CONNECT)
                .timeout(ANSWER)
                .build()?;
            let jwks = Jwks::new(issuer.jwks_url.clone(), client);
            by_iss.insert(issuer.iss.clone(), (issuer, jwks));
        }
        Ok(Issuers { clock, by_iss, known: Cache::new(REMEMBERED) })
    }

    pub(crate) fn none(clock: Clock) -> Self {
        Issuers { clock, by_iss: HashMap::new(), known: Cache::new(REMEMBERED) }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_iss.is_empty()
    }

    /// The principal that this JWT shows.
    ///
    /// # Errors
    /// `unauthorized`; `service_unavailable` where its issuer's keys cannot be read; `overloaded`.
    pub(crate) async fn principal(&self, text: &str, lane: &Lane) -> Result<Principal> {
        if text.len() > MAX_BYTES {
            return Err(unauthorized());
        }
        let hash = Digest::of(text);
        let seen = match self.known.get(&hash) {
            Some(seen) => {
                self.check_key(&seen).await?;
                seen
            }
            None => {
                let seen = self.verified(text, lane).await?;
                self.known.insert(hash, seen.clone());
                seen
            }
        };
        if seen.exp <= self.seconds() {
            return Err(unauthorized());
        }
        Ok(seen.principal)
    }

    /// What was verified once is good only as long as its issuer publishes the key.
    async fn check_key(&self, seen: &Seen) -> Result<()> {
        let (_, jwks) = self.by_iss.get(&seen.iss).ok_or_else(unauthorized)?;
        jwks.key(seen.kid.as_deref(), seen.alg).await?.map(drop).ok_or_else(unauthorized)
    }

    async fn verified(&self, text: &str, lane: &Lane) -> Result<Seen> {
        let header = decode_header(text).map_err(|_| unauthorized())?;
        if header.typ.as_deref().is_some_and(|typ| !matches!(typ.to_ascii_lowercase().as_str(), "jwt" | "at+jwt")) {
            return Err(unauthorized());
        }
        // said by nobody yet: it only chooses whose keys are asked
        let named: Claims = jsonwebtoken::dangerous::insecure_decode_claims(text).map_err(|_| unauthorized())?;
        let (issuer, jwks) = self.by_iss.get(&named.iss).ok_or_else(unauthorized)?;
        let trusted = jwks.key(header.kid.as_deref(), header.alg).await?.ok_or_else(unauthorized)?;
        let mut rules = Validation::new(header.alg);
        rules.algorithms.clone_from(&trusted.algorithms);
        rules.set_issuer(&[&issuer.iss]);
        rules.set_audience(&[&issuer.audience]);
        rules.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        // our clock decides, below
        rules.validate_exp = false;
        let claims = {
            let _turn = lane.turn().await?;
            decode::<Claims>(text, &trusted.key, &rules).map_err(|_| unauthorized())?.claims
        };
        let now = self.seconds();
        let is_named =
            !claims.sub.is_empty() && claims.sub.len() <= MAX_SUBJECT && !claims.sub.chars().any(char::is_control);
        let has_begun = claims.nbf.is_none_or(|nbf| nbf <= now + SKEW);
        // no leeway at the end: an end is an end on our clock
        if !is_named || !has_begun || !claims.exp.is_finite() || claims.exp <= now {
            return Err(unauthorized());
        }
        let principal = issuer.principal(&claims);
        Ok(Seen { exp: claims.exp, iss: claims.iss, kid: header.kid, alg: header.alg, principal })
    }

    #[expect(clippy::cast_precision_loss, reason = "seconds of this century are exact")]
    fn seconds(&self) -> f64 {
        self.clock.now().unix_timestamp() as f64
    }
}

impl Issuer {
    fn principal(&self, claims: &Claims) -> Principal {
        let mut scopes: Vec<&str> = claims.scope.iter().chain(claims.scp.iter()).collect();
        scopes.sort_unstable();
        scopes.dedup();
        let grants = scopes.into_iter().filter_map(|scope| self.scopes.get(scope)).flatten().cloned();
        Principal {
            id: id(&self.iss, &claims.sub),
            name: format!("{}:{}", self.name, claims.sub),
            grants: grants.collect(),
            vouched_until: Some(whole(claims.exp)),
        }
    }
}

impl Words {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let (text, list) = match self {
            Words::Text(text) => (text.as_str(), &[][..]),
            Words::List(list) => ("", list.as_slice()),
        };
        text.split(' ').filter(|word| !word.is_empty()).chain(list.iter().map(String::as_str))
    }
}

impl Default for Words {
    fn default() -> Self {
        Words::List(Vec::new())
    }
}

/// Whole seconds that have passed by this moment.
#[expect(clippy::cast_possible_truncation, reason = "a moment beyond the range of the type is its end")]
fn whole(seconds: f64) -> i64 {
    seconds.floor() as i64
}

/// The same for the same subject of the same issuer, whatever name it has here.
fn id(iss: &str, sub: &str) -> Uuid {
    let digest = Digest::of(serde_json::json!([iss, sub]).to_string());
    let mut bytes = [0u8; 16];
    bytes.copy_from_slice(&digest.as_bytes()[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
