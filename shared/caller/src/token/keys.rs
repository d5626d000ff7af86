//! The issuer's public keys, as the gate publishes them in the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use callbook_domain::clock::Clock;
use callbook_domain::fault::Result;
use callbook_domain::token::{Keys, PublicKey};
use callbook_store::fault::fault;
use sqlx::PgPool;
use tokio::sync::Mutex;

/// How long keys are believed.
const BELIEVED: Duration = Duration::from_secs(1);
/// Between two looks, so that a flood of names that no key has costs five queries a second.
const PACE: Duration = Duration::from_millis(200);

/// How long a look may take.
const LOOK: Duration = Duration::from_secs(2);

/// The keys of all signatures that are believed.
pub(super) struct IssuerKeys {
    pool: PgPool,
    clock: Clock,
    held: ArcSwapOption<Held>,
    /// When the last look began, whatever it gave.
    looking: Mutex<Option<Instant>>,
}

struct Held {
    keys: Arc<Keys>,
    /// When the look began that found them.
    at: Instant,
}

impl IssuerKeys {
    pub(super) fn new(pool: PgPool, clock: Clock) -> Self {
        IssuerKeys { pool, clock, held: ArcSwapOption::empty(), looking: Mutex::default() }
    }

    /// The keys, a second old at most and as old as the look that somebody else takes just now; older where the
    /// database does not answer.
    pub(super) async fn believed(&self) -> Result<Arc<Keys>> {
        let held = self.held.load_full();
        let Some(held) = held else { return self.looked_again().await };
        if held.at.elapsed() < BELIEVED {
            return Ok(held.keys.clone());
        }
        match self.looking.try_lock() {
            Ok(mut last) if last.is_none_or(|last| last.elapsed() >= PACE) => {
                Ok(self.look(&mut last).await.unwrap_or_else(|_| held.keys.clone()))
            }
            Ok(_) | Err(_) => Ok(held.keys.clone()),
        }
    }

    /// The keys after a look that began after now. Looks are paced and shared by all who wait for one.
    ///
    /// # Errors
    /// `database_unavailable` where there was no such look and never one before.
    pub(super) async fn looked_again(&self) -> Result<Arc<Keys>> {
        let came = Instant::now();
        let mut last = self.looking.lock().await;
        if let Some(began) = *last {
            if began >= came {
                let held = self.held.load_full().map(|held| held.keys.clone());
                return held.ok_or_else(|| fault(sqlx::Error::PoolTimedOut));
            }
            tokio::time::sleep(PACE.saturating_sub(began.elapsed())).await;
        }
        self.look(&mut last).await
    }

    async fn look(&self, last: &mut Option<Instant>) -> Result<Arc<Keys>> {
        let at = Instant::now();
        *last = Some(at);
        let read = tokio::time::timeout(LOOK, self.read()).await;
        let keys = Arc::new(read.map_err(|_| sqlx::Error::PoolTimedOut).flatten().map_err(fault)?);
        self.held.store(Some(Arc::new(Held { keys: keys.clone(), at })));
        Ok(keys)
    }

    async fn read(&self) -> sqlx::Result<Keys> {
        // a key that signs no more is believed until its last token has ended
        let found = sqlx::query!(
            r#"select kid, public_key from issuer_key k where state in ('next', 'active') or (state = 'retiring'
               and exists (select from token t where t.kid = k.kid and t.expires_at > $1))"#,
            self.clock.now()
        )
        .fetch_all(&self.pool)
        .await?;
        let mut keys = Keys::default();
        for key in found {
            let bytes: Option<[u8; 32]> = key.public_key.try_into().ok();
            let public = bytes.and_then(|bytes| PublicKey::from_bytes(&bytes));
            keys.insert(key.kid, public.ok_or_else(|| sqlx::Error::Decode("issuer_key.public_key".into()))?);
        }
        Ok(keys)
    }
}
