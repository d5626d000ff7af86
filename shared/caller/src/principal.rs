//! Principals by their API keys.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use callbook_domain::caller::{Grant, Principal};
use callbook_domain::clock::Clock;
use callbook_domain::fault::Result;
use callbook_store::fault::fault;
use sqlx::PgPool;
use time::{Duration, OffsetDateTime};

use crate::KeyHash;

/// How long a principal that was looked up is believed. The commit point looks again, so a revoked key reads for at most
/// this long and fires nothing.
const BELIEVED: Duration = Duration::seconds(1);
/// How many principals are remembered.
const REMEMBERED: usize = 4_096;

/// Those who were seen lately.
pub(crate) struct Principals {
    pool: PgPool,
    clock: Clock,
    known: Mutex<HashMap<KeyHash, (Principal, OffsetDateTime)>>,
}

impl Principals {
    pub(crate) fn new(pool: PgPool, clock: Clock) -> Self {
        Principals { pool, clock, known: Mutex::default() }
    }

    /// The living principal whose key has this hash.
    pub(crate) async fn with_key(&self, hashed: KeyHash) -> Result<Option<Principal>> {
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
                Ok(Principal { id: record.id, name: record.name, grants, vouched_until: None })
            })
            .transpose()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<KeyHash, (Principal, OffsetDateTime)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
