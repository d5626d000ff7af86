//! The commit point as its callers see it: one at a time, in groups underneath.

use callbook_domain::clock::Clock;
use callbook_store::own::OwnConnection;
use sqlx::PgPool;
use tracing::Instrument as _;

use crate::group::{Grouped, Refused, Work};
use crate::store;
pub use crate::store::commit::Candidate;
pub use crate::store::finish::{Finished, Part};

/// The three kinds of grouped transactions of an executor.
pub struct Committer {
    intents: Grouped<Intents>,
    results: Grouped<Results>,
    reads: Grouped<Reads>,
}

#[derive(Clone)]
struct Intents {
    pool: PgPool,
    clock: Clock,
}

#[derive(Clone)]
struct Results(PgPool);

#[derive(Clone)]
struct Reads(PgPool);

impl Work for Intents {
    type Member = Candidate;
    type Answer = bool;
    type Lane = OwnConnection;
    const KIND: &'static str = "intent";

    fn weigh(candidate: &Candidate) -> usize {
        candidate.bytes()
    }

    fn lane(&self) -> OwnConnection {
        OwnConnection::beside(&self.pool)
    }

    async fn settle(&self, own: &mut OwnConnection, group: &[Candidate]) -> sqlx::Result<Vec<bool>> {
        let mut connection = own.take().await?;
        let passed = store::commit::commit(&mut connection, group, &self.clock).await?;
        own.give_back(connection);
        Ok(passed)
    }
}

impl Work for Results {
    type Member = Finished;
    type Answer = bool;
    type Lane = OwnConnection;
    const KIND: &'static str = "result";

    fn weigh(finished: &Finished) -> usize {
        finished.bytes()
    }

    fn lane(&self) -> OwnConnection {
        OwnConnection::beside(&self.0)
    }

    async fn settle(&self, own: &mut OwnConnection, group: &[Finished]) -> sqlx::Result<Vec<bool>> {
        let mut connection = own.take().await?;
        let stored = store::finish::finish(&mut connection, group).await?;
        own.give_back(connection);
        Ok(group.iter().map(|finished| stored.contains(&finished.id)).collect())
    }
}

impl Work for Reads {
    type Member = (Candidate, Finished);
    type Answer = bool;
    type Lane = OwnConnection;
    const KIND: &'static str = "read";

    fn weigh((candidate, finished): &(Candidate, Finished)) -> usize {
        candidate.bytes() + finished.bytes()
    }

    fn lane(&self) -> OwnConnection {
        OwnConnection::beside(&self.0)
    }

    async fn settle(&self, own: &mut OwnConnection, group: &[(Candidate, Finished)]) -> sqlx::Result<Vec<bool>> {
        let mut connection = own.take().await?;
        store::read::write(&mut connection, group).await?;
        own.give_back(connection);
        Ok(vec![true; group.len()])
    }
}

impl Committer {
    /// Starts the lanes, each with a connection of its own beside the pool's. The clock tells when a token is over.
    pub fn start(pool: &PgPool, clock: &Clock) -> Self {
        Committer {
            intents: Grouped::start(&Intents { pool: pool.clone(), clock: clock.clone() }),
            results: Grouped::start(&Results(pool.clone())),
            reads: Grouped::start(&Reads(pool.clone())),
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
