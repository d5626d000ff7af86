//! From a credential to a caller. Every service verifies what it is given by this code; no identity header is trusted.

mod credential;
mod principal;
mod token;
mod issuer;
mod lane;
mod presented;

use callbook_domain::caller::{Caller, unauthorized};
use callbook_domain::clock::Clock;
use callbook_domain::fault::Result;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use subtle::ConstantTimeEq;

use credential::Credential;
use issuer::Issuers;
use lane::Lane;
use principal::Principals;
use token::Tokens;

pub use issuer::Issuer;
pub use presented::Presented;
pub use token::Deployment;

/// The first characters of every API key.
pub const API_KEY_PREFIX: &str = "cbk_";

type KeyHash = [u8; 32];

/// Tells callers apart.
pub struct Callers {
    owner: KeyHash,
    principals: Principals,
    tokens: Tokens,
    issuers: Issuers,
    lane: Lane,
    clock: Clock,
    /// Whether anonymous callers may read the book.
    public_catalogue: bool,
}

impl Callers {
    /// Callers of one deployment, whose tokens are those of [`Deployment::default`]. The owner key itself is not kept.
    pub fn new(owner_key: &str, pool: PgPool, clock: Clock, public_catalogue: bool) -> Self {
        Callers {
            owner: hash(owner_key),
            principals: Principals::new(pool.clone(), clock.clone()),
            tokens: Tokens::new(pool, clock.clone(), Deployment::default()),
            issuers: Issuers::none(clock.clone()),
            lane: Lane::new(),
            clock,
            public_catalogue,
        }
    }

    /// The same where tokens are issued for another deployment.
    pub fn of(mut self, deployment: Deployment) -> Self {
        self.tokens.deployment = deployment;
        self
    }

    /// The same where JWTs of these issuers are taken.
    ///
    /// # Errors
    /// Those of a client that cannot be made.
    pub fn believing(mut self, issuers: Vec<Issuer>) -> reqwest::Result<Self> {
        self.issuers = Issuers::new(issuers, self.clock.clone())?;
        Ok(self)
    }

    /// The caller that these headers (or this gRPC metadata) show, for everything that is not a call of a row. No
    /// credential is the anonymous caller; a credential that is not known is refused and never taken for none.
    ///
    /// # Errors
    /// `unauthorized`; for a token the reasons of steps 1 to 8 and 10; `overloaded` where more tokens come that were
    /// never seen than can be looked at; `database_unavailable` where something cannot be looked up.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Caller> {
        self.identify_call(headers).await?.without_proof().await
    }

    /// The same for a call of a row. The call is needed for the rest: see [`Presented::prove`].
    ///
    /// # Errors
    /// As [`Callers::identify`], without step 10.
    pub async fn identify_call(&self, headers: &HeaderMap) -> Result<Presented<'_>> {
        match credential::presented(headers)? {
            None => Ok(Presented::known(Caller::Anonymous)),
            Some(Credential::Key(key)) => self.with_key(key).await.map(Presented::known),
            Some(Credential::Token { text, in_url }) => {
                let known = self.tokens.verified(text, &self.lane).await?;
                if in_url && !known.chain.cap().url {
                    return Err(unauthorized().fix("mint a token with `url` for use in an address"));
                }
                Ok(Presented::token(&self.tokens, known, credential::proof(headers)?))
            }
            // nobody else's are believed, so what is wrong with it is what makes it no token of ours
            Some(Credential::Signed(text)) if self.issuers.is_empty() => {
                let known = self.tokens.verified(text, &self.lane).await?;
                Ok(Presented::token(&self.tokens, known, credential::proof(headers)?))
            }
            Some(Credential::Signed(text)) => {
                let principal = self.issuers.principal(text, &self.lane).await?;
                Ok(Presented::known(Caller::Principal(principal)))
            }
        }
    }

    /// Refuses an anonymous caller where the catalogue is private.
    pub fn require_catalogue(&self, caller: &Caller) -> Result<()> {
        if self.public_catalogue { Ok(()) } else { caller.require_credential() }
    }

    async fn with_key(&self, key: &str) -> Result<Caller> {
        let hashed = hash(key);
        if bool::from(hashed.ct_eq(&self.owner)) {
            return Ok(Caller::Owner);
        }
        if !key.starts_with(API_KEY_PREFIX) {
            return Err(unauthorized());
        }
        self.principals.with_key(hashed).await?.map(Caller::Principal).ok_or_else(unauthorized)
    }
}

/// The SHA-256 under which a key is stored and compared.
pub fn hash(key: &str) -> KeyHash {
    Sha256::digest(key.as_bytes()).into()
}

/// A new API key: `cbk_` and 32 random bytes in URL-safe base64.
pub fn new_api_key() -> String {
    let mut bytes = [0u8; 32];
    getrandom::fill(&mut bytes).expect("the system gives randomness");
    format!("{API_KEY_PREFIX}{}", data_encoding::BASE64URL_NOPAD.encode(&bytes))
}
