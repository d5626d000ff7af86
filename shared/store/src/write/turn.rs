//! The transaction of a write: it holds the lock. A few writes of a process wait for the lock at a time and the others
//! wait in line without a connection, so that many writers leave calls and reads theirs.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use callbook_domain::fault::{Fault, Reason, Result};
use sqlx::{PgConnection, Postgres, Transaction};
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::Writer;
use crate::fault::fault;
use crate::{feed, lock, principal};

/// How long a write waits in line; a writer that stands longer than the lock's own time is better told.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open transaction under the exclusive lock. Dropped, it changes nothing.
pub(super) struct Turn<'a> {
    transaction: Transaction<'static, Postgres>,
    _place: SemaphorePermit<'a>,
}

impl<'a> Turn<'a> {
    /// Waits in line, opens the transaction, takes the lock and names the next revision.
    pub async fn begin(writer: &'a Writer) -> Result<(Turn<'a>, i64)> {
        let place = timeout(PATIENCE, writer.directory.writers().acquire()).await;
        let place = place.ok().and_then(std::result::Result::ok).ok_or_else(|| {
            Fault::new(Reason::Overloaded, "more writes wait than can be written").retry_after_ms(1_000)
        })?;
        let mut transaction = writer.directory.pool().begin().await.map_err(fault)?;
        lock::exclusive(&mut transaction).await.map_err(fault)?;
        principal::check_alive(&mut transaction, &writer.caller).await?;
        let revision = feed::revision(&mut transaction).await.map_err(fault)? + 1;
        Ok((Turn { transaction, _place: place }, revision))
    }

    /// Makes the write true.
    pub async fn commit(self) -> Result<()> {
        self.transaction.commit().await.map_err(fault)
    }
}

impl Deref for Turn<'_> {
    type Target = PgConnection;
    fn deref(&self) -> &PgConnection {
        &self.transaction
    }
}

impl DerefMut for Turn<'_> {
    fn deref_mut(&mut self) -> &mut PgConnection {
        &mut self.transaction
    }
}
