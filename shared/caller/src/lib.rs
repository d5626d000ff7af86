//! From a credential to a caller. Every service verifies what it is given by this code; no identity header is trusted.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use callbook_domain::caller::{Caller, Grant, Principal, unauthorized};
use callbook_domain::clock::Clock;
use callbook_domain::fault::Result;
use callbook_store::fault::fault;
use http::HeaderMap;
use sha2::{Digest, Sha256};
use sqlx::PgPool;
use subtle::ConstantTimeEq;
use time::{Duration, OffsetDateTime};

/// The first characters of every API key.
pub const API_KEY_PREFIX: &str = "cbk_";
/// How long a principal that was looked up is believed. The commit point looks again, so a revoked key reads for at most
/// this long and fires nothing.
const BELIEVED: Duration = Duration::seconds(1);
/// How many principals are remembered.
const REMEMBERED: usize = 4_096;

type KeyHash = [u8; 32];

/// Tells callers apart.
pub struct Callers {
    owner: KeyHash,
    pool: PgPool,
    clock: Clock,
    known: Mutex<HashMap<KeyHash, (Principal, OffsetDateTime)>>,
    /// Whether anonymous callers may read the book.
    public_catalogue: bool,
}

impl Callers {
    /// Callers of one deployment. The owner key itself is not kept.
    pub fn new(owner_key: &str, pool: PgPool, clock: Clock, public_catalogue: bool) -> Self {
        Callers { owner: hash(owner_key), pool, clock, known: Mutex::default(), public_catalogue }
    }

    /// The caller that these headers (or this gRPC metadata) show. No credential is the anonymous caller; a credential
    /// that is not known is refused and never taken for none.
    ///
    /// # Errors
    /// `unauthorized`; `database_unavailable` where a key cannot be looked up.
    pub async fn identify(&self, headers: &HeaderMap) -> Result<Caller> {
        let Some(presented) = presented(headers)? else { return Ok(Caller::Anonymous) };
        let hashed = hash(presented);
        if bool::from(hashed.ct_eq(&self.owner)) {
            return Ok(Caller::Owner);
        }
        if !presented.starts_with(API_KEY_PREFIX) {
            return Err(unauthorized());
        }
        self.principal(hashed).await?.map(Caller::Principal).ok_or_else(unauthorized)
    }

    /// Refuses an anonymous caller where the catalogue is private.
    pub fn require_catalogue(&self, caller: &Caller) -> Result<()> {
        if self.public_catalogue { Ok(()) } else { caller.require_credential() }
    }

    async fn principal(&self, hashed: KeyHash) -> Result<Option<Principal>> {
        let now = self.clock.now();
        let remembered = self.lock().get(&hashed).cloned();
        if let Some((principal, until)) = &remembered
            && *until > now
        {
            return Ok(Some(principal.clone()));
        }
        let found = match self.look_up(&hashed).await {
            Ok(found) => found,
            // without a database reads go on; nothing fires without one
            Err(error) if callbook_store::fault::is_outage(&error) && remembered.is_some() => {
                return Ok(remembered.map(|(principal, _)| principal));
            }
            Err(error) => return Err(fault(error)),
        };
        let mut known = self.lock();
        match &found {
            None => {
                known.remove(&hashed);
            }
            Some(principal) => {
                if known.len() >= REMEMBERED {
                    known.clear();
                }
                known.insert(hashed, (principal.clone(), now + BELIEVED));
            }
        }
        Ok(found)
    }

    async fn look_up(&self, hashed: &KeyHash) -> sqlx::Result<Option<Principal>> {
        let record = sqlx::query!(
            "select id, name, grants from principal where key_hash = $1 and revoked_at is null",
            &hashed[..]
        )
        .fetch_optional(&self.pool)
        .await?;
        record
            .map(|record| {
                let grants: Vec<Grant> =
                    serde_json::from_str(&record.grants).map_err(|_| sqlx::Error::Decode("principal.grants".into()))?;
                Ok(Principal { id: record.id, name: record.name, grants, is_outside: false })
            })
            .transpose()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<KeyHash, (Principal, OffsetDateTime)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
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

/// The one credential in the headers. Two that differ are refused: nobody means that.
fn presented(headers: &HeaderMap) -> Result<Option<&str>> {
    let mut values = headers.get_all("x-terminal-key").iter().map(|value| value.to_str().ok());
    let terminal = values.next();
    if values.next().is_some() {
        return Err(unauthorized());
    }
    let mut values = headers.get_all("authorization").iter().map(|value| value.to_str().ok().and_then(bearer));
    let authorization = values.next();
    if values.next().is_some() {
        return Err(unauthorized());
    }
    match (terminal, authorization) {
        (None, None) => Ok(None),
        (Some(Some(key)), None) | (None, Some(Some(key))) if !key.is_empty() => Ok(Some(key)),
        (Some(Some(one)), Some(Some(other))) if one == other && !one.is_empty() => Ok(Some(one)),
        (_, _) => Err(unauthorized()),
    }
}

fn bearer(value: &str) -> Option<&str> {
    let (scheme, key) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| key.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        map
    }

    #[test]
    fn one_credential_is_taken_and_a_strange_one_is_not_taken_for_none() {
        assert_eq!(presented(&headers(&[])).unwrap(), None);
        assert_eq!(presented(&headers(&[("x-terminal-key", "k")])).unwrap(), Some("k"));
        assert_eq!(presented(&headers(&[("authorization", "bearer k")])).unwrap(), Some("k"));
        assert_eq!(presented(&headers(&[("x-terminal-key", "k"), ("authorization", "Bearer k")])).unwrap(), Some("k"));
        for odd in [
            &[("authorization", "Basic k")][..],
            &[("authorization", "Bearer")],
            &[("x-terminal-key", "")],
            &[("x-terminal-key", "a"), ("authorization", "Bearer b")],
            &[("x-terminal-key", "a"), ("x-terminal-key", "a")],
        ] {
            assert!(presented(&headers(odd)).is_err(), "{odd:?}");
        }
    }
}
