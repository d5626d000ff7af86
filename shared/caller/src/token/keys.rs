//! The issuer's public keys, as the gate publishes them in the database.

use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use callbook_domain::clock::Clock;
use callbook_domain::fault::Result;
use callbook_domain::token::{Keys, PublicKey};
use callbook_store::fault::{fault, is_outage};
use sqlx::PgPool;
use tokio::sync::Mutex;

/// How long keys are believed.
const BELIEVED: Duration = Duration::from_secs(1);
/// Between two looks, so that a flood of names that no key has costs five queries a second.
const PACE: Duration = Duration::from_millis(200);

/// The keys of all signatures that are believed.
pub(super) struct IssuerKeys {
    pool: PgPool,
    clock: Clock,
    held: ArcSwapOption<Held>,
    looking: Mutex<()>,
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

    /// The keys, at most a second old; older where the database does not answer.
    pub(super) async fn believed(&self) -> Result<Arc<Keys>> {
        let now = Instant::now();
        let is_young = |held: &Held| now.duration_since(held.at) < BELIEVED;
        if let Some(held) = self.held.load().as_ref().filter(|held| is_young(held)) {
            return Ok(held.keys.clone());
        }
        let _turn = self.looking.lock().await;
        match self.held.load_full() {
            Some(held) if held.at >= now => Ok(held.keys.clone()),
            held => match (self.look().await, held) {
                (Ok(keys), _) => Ok(keys),
                (Err(error), Some(held)) if is_outage(&error) => Ok(held.keys.clone()),
                (Err(error), _) => Err(fault(error)),
            },
        }
    }

    /// The keys after a look that began after now. Looks are paced and shared by all who wait for one.
    pub(super) async fn looked_again(&self) -> Result<Arc<Keys>> {
        let came = Instant::now();
        let _turn = self.looking.lock().await;
        if let Some(held) = self.held.load_full() {
            if held.at >= came {
                return Ok(held.keys.clone());
            }
            tokio::time::sleep(PACE.saturating_sub(held.at.elapsed())).await;
        }
        self.look().await.map_err(fault)
    }

    async fn look(&self) -> sqlx::Result<Arc<Keys>> {
        let at = Instant::now();
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
        let keys = Arc::new(keys);
        self.held.store(Some(Arc::new(Held { keys: keys.clone(), at })));
        Ok(keys)
    }
}
