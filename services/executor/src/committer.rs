//! The commit point as its callers see it: one at a time, in groups underneath.

use std::sync::Arc;

use callbook_domain::clock::Clock;
use sqlx::PgPool;
use tracing::Instrument as _;

use crate::group::{Grouped, Refused};
use crate::store;
pub use crate::store::commit::Candidate;
pub use crate::store::finish::{Finished, Part};

/// The three kinds of grouped transactions of an executor.
pub struct Committer {
    intents: Grouped<Candidate, bool>,
    results: Grouped<Finished, bool>,
    reads: Grouped<(Candidate, Finished), bool>,
}

impl Committer {
    /// Starts the lanes on a pool. The clock tells when a token is over.
    pub fn start(pool: &PgPool, clock: &Clock) -> Self {
        let (intents, results, reads) = (pool.clone(), pool.clone(), pool.clone());
        let clock = clock.clone();
        Committer {
            intents: Grouped::start("intent", Candidate::bytes, move |group: Arc<[Candidate]>| {
                let (pool, clock) = (intents.clone(), clock.clone());
                async move { store::commit::commit(&pool, &group, &clock).await }
            }),
            results: Grouped::start("result", Finished::bytes, move |group: Arc<[Finished]>| {
                let pool = results.clone();
                async move {
                    let stored = store::finish::finish(&pool, &group).await?;
                    Ok(group.iter().map(|finished| stored.contains(&finished.id)).collect())
                }
            }),
            reads: Grouped::start(
                "read",
                |(candidate, finished)| candidate.bytes() + finished.bytes(),
                move |group: Arc<[(Candidate, Finished)]>| {
                    let pool = reads.clone();
                    async move {
                        store::read::write(&pool, &group).await?;
                        Ok(vec![true; group.len()])
                    }
                },
            ),
        }
    }

    /// Brings a call past the commit point; false where it may not pass (any more).
    pub async fn admit(&self, candidate: Candidate) -> Result<bool, Refused> {
        self.intents.submit(candidate).instrument(tracing::info_span!("commit intent", db.system = "postgresql")).await
    }

    /// Commits what a call gave; false where another executor has called it unknown meanwhile.
    pub async fn finish(&self, finished: Finished) -> Result<bool, Refused> {
        self.results.submit(finished).instrument(tracing::info_span!("commit result", db.system = "postgresql")).await
    }

    /// Commits a call of read mode, which ran already.
    pub async fn record(&self, candidate: Candidate, finished: Finished) -> Result<bool, Refused> {
        let span = tracing::info_span!("commit read", db.system = "postgresql");
        self.reads.submit((candidate, finished)).instrument(span).await
    }
}
