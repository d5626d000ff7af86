//! The book in this process: one immutable snapshot for all roles, kept up with the database.
//!
//! A notice of Postgres is only a wake-up. The truth is `directory_history` after the revision that is held, read again
//! every 250 ms, so a lost notice or a paused process catches up by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use callbook_domain::compile::{self, Rules};
use callbook_domain::fault::Fault;
use callbook_domain::row::Row;
use sqlx::PgPool;
use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::{Mutex, Notify, Semaphore, watch};

use crate::fault::fault;
use crate::feed;
use crate::snapshot::{Change, Entry, Snapshot};

/// The channel of the wake-up.
pub const CHANNEL: &str = "callbook_directory";
/// How often the feed is read when nobody wakes us.
const POLL: Duration = Duration::from_millis(250);

/// How many writes wait for the lock at a time, each with a connection.
const WRITERS: usize = 4;
/// How long a look at the database may take before it counts as one that failed: a server that is frozen is as good as
/// none.
const LOOK: Duration = Duration::from_secs(1);

/// How long reading what changed may take; the whole of a large book takes seconds.
const READ: Duration = Duration::from_secs(60);

/// What is told of every change before the new snapshot is seen by anybody.
pub type Follower = Box<dyn Fn(&Change) + Send + Sync>;

/// A look at the database that ended.
#[derive(Default)]
struct Look {
    /// Its number.
    number: u64,
    /// Why it gave nothing.
    failed: Option<Fault>,
}

/// The process's view of the book.
pub struct Directory {
    pool: PgPool,
    rules: Rules,
    snapshot: ArcSwap<Snapshot>,
    followers: Vec<Follower>,
    /// Held while the feed is read; holds the last look that ended.
    reading: Mutex<Look>,
    checks: AtomicU64,
    stale: AtomicBool,
    wake: Notify,
    revisions: watch::Sender<i64>,
    writers: Semaphore,
}

impl Directory {
    /// Reads the whole book. Each follower is told of it as one change.
    ///
    /// # Errors
    /// `database_unavailable` where Postgres does not answer.
    pub async fn open(pool: PgPool, rules: Rules, followers: Vec<Follower>) -> Result<Arc<Directory>, Fault> {
        let directory = Arc::new(Directory {
            pool,
            rules,
            snapshot: ArcSwap::default(),
            followers,
            reading: Mutex::default(),
            checks: AtomicU64::new(0),
            stale: AtomicBool::new(false),
            wake: Notify::new(),
            revisions: watch::Sender::new(0),
            writers: Semaphore::new(WRITERS),
        });
        directory.catch_up().await?;
        Ok(directory)
    }

    /// The book as this process holds it. Never waits.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// The database that stands behind it.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// The places of those who wait for the lock of a write.
    pub(crate) fn writers(&self) -> &Semaphore {
        &self.writers
    }

    /// What rows are compiled against.
    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Whether the last look at the database failed, so that the snapshot may be old.
    pub fn is_stale(&self) -> bool {
        self.stale.load(Ordering::Relaxed)
    }

    /// Tells each new revision that this process has taken in.
    pub fn revisions(&self) -> watch::Receiver<i64> {
        self.revisions.subscribe()
    }

    /// A snapshot at least as new as the database was when this was called. Calls that come together share one look.
    ///
    /// # Errors
    /// `database_unavailable`; [`Directory::snapshot`] still gives what is held.
    pub async fn fresh(&self) -> Result<Arc<Snapshot>, Fault> {
        self.catch_up().await?;
        Ok(self.snapshot())
    }

    /// A snapshot that holds this revision.
    pub async fn at_least(&self, revision: i64) -> Result<Arc<Snapshot>, Fault> {
        let held = self.snapshot();
        if held.revision >= revision { Ok(held) } else { self.fresh().await }
    }

    /// A look that began after we came is as good as our own, so at most one waits behind the one that runs.
    async fn catch_up(&self) -> Result<(), Fault> {
        let came = self.checks.load(Ordering::SeqCst);
        let mut last = self.reading.lock().await;
        if last.number <= came {
            last.number = self.checks.fetch_add(1, Ordering::SeqCst) + 1;
            let outcome = self.read_feed().await.map_err(fault);
            self.stale.store(outcome.is_err(), Ordering::Relaxed);
            last.failed = outcome.err();
        }
        match &last.failed {
            None => Ok(()),
            Some(fault) => Err(fault.clone()),
        }
    }

    async fn read_feed(&self) -> sqlx::Result<()> {
        let held = self.snapshot();
        let look = async {
            let mut connection = self.pool.acquire().await?;
            let revision = feed::revision(&mut connection).await?;
            Ok::<_, sqlx::Error>((connection, revision))
        };
        let (mut connection, revision) =
            tokio::time::timeout(LOOK, look).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
        if revision == held.revision && held.revision > 0 {
            return Ok(());
        }
        let changes = feed::changes(&mut connection, held.revision);
        let changes = tokio::time::timeout(READ, changes).await.map_err(|_| sqlx::Error::PoolTimedOut)??;
        drop(connection);
        let rules = self.rules.clone();
        let change = tokio::task::spawn_blocking(move || Change {
            changed: changes.rows.into_iter().map(|row| Arc::new(compiled(row, &rules))).collect(),
            removed: changes.removed,
            recommended: changes.recommended.map(Arc::new),
        })
        .await
        .map_err(|_| sqlx::Error::WorkerCrashed)?;
        for follower in &self.followers {
            follower(&change);
        }
        self.snapshot.store(Arc::new(held.with(&change, changes.revision)));
        self.revisions.send_replace(changes.revision);
        Ok(())
    }

    /// Follows the database until `stop` resolves.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let listening = tokio::spawn(listen(self.clone()));
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                () = self.wake.notified() => {}
                () = tokio::time::sleep(POLL) => {}
            }
            // A failure is in `is_stale` and in the log; the next round tries again.
            let _ = self.catch_up().await;
        }
        listening.abort();
    }
}

/// Listens on a connection of its own: one of the pool's would be gone for the whole life of the process.
async fn listen(directory: Arc<Directory>) {
    let options = directory.pool.connect_options().as_ref().clone();
    let own = PgPoolOptions::new().max_connections(1).max_lifetime(None).idle_timeout(None).connect_lazy_with(options);
    loop {
        if let Ok(mut listener) = PgListener::connect_with(&own).await
            && listener.listen(CHANNEL).await.is_ok()
        {
            directory.wake.notify_one();
            while listener.recv().await.is_ok() {
                directory.wake.notify_one();
            }
            // a database that went away is noticed now and not at the next look
            directory.wake.notify_one();
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn compiled(row: Row, rules: &Rules) -> Entry {
    let compiled = compile::compile(&row.definition, rules);
    Entry { row, compiled }
}
