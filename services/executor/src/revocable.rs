//! Running calls whose token is taken back. Those that only read are given up; a call that may have changed something
//! runs to its end and says what it did.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use callbook_domain::caller::Holder;
use callbook_domain::row::Effect;
use sqlx::PgPool;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::App;
use crate::store::commit::Candidate;
use crate::store::stopped;

/// How often the revocations are asked while such calls run.
const EVERY: Duration = Duration::from_secs(1);

type Calls = HashMap<Uuid, (Arc<Holder>, CancellationToken)>;

/// The calls that run now and may be given up.
#[derive(Default)]
pub struct Revocable(Arc<Mutex<Calls>>);

/// One of them, until it is dropped.
pub struct Held {
    id: Uuid,
    ended: CancellationToken,
    calls: Arc<Mutex<Calls>>,
}

impl Held {
    /// Comes when the call's token was taken back.
    pub async fn revoked(&self) {
        self.ended.cancelled().await;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        lock(&self.calls).remove(&self.id);
    }
}

impl Revocable {
    /// Watches a call that begins to run; nothing where it has no token or may change something.
    pub fn hold(&self, candidate: &Candidate) -> Option<Held> {
        let holder = candidate.holder.as_ref().filter(|_| candidate.effect == Effect::Read.as_str())?;
        let (id, ended) = (candidate.id.0, CancellationToken::new());
        lock(&self.0).insert(id, (holder.clone(), ended.clone()));
        Some(Held { id, ended, calls: self.0.clone() })
    }

    async fn give_up(&self, pool: &PgPool) -> sqlx::Result<()> {
        let names: BTreeSet<String> =
            lock(&self.0).values().flat_map(|(holder, _)| holder.names.iter().cloned()).collect();
        if names.is_empty() {
            return Ok(());
        }
        let revoked = stopped::revoked(pool, &names.into_iter().collect::<Vec<_>>()).await?;
        for (holder, ended) in lock(&self.0).values() {
            if holder.names.iter().any(|name| revoked.contains(name)) {
                ended.cancel();
            }
        }
        Ok(())
    }
}

fn lock(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks for revocations as long as the executor lives.
pub async fn run(app: &App) {
    let mut looks = tokio::time::interval(EVERY);
    looks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        if let Err(error) = app.revocable.give_up(app.directory.pool()).await {
            tracing::warn!(%error, "revocations of running calls cannot be read");
        }
    }
}
