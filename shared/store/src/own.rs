//! Connections that belong to one worker each.
//!
//! A pool asks a connection whether it lives each time that it is given back, which is as much as many a transaction of
//! the commit point costs by itself.

use std::time::{Duration, Instant};

use sqlx::postgres::PgConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Executor as _, PgConnection, PgPool};

use crate::pool::{PREPARE, RESTED};

/// How long a connection may take to come about, so that a lost database is an answer and not a hang.
const CONNECT: Duration = Duration::from_secs(2);

/// Its statements are few, come in groups of any size and have one good plan each; planned anew they cost more than they
/// do.
const PLANS: &str = "set plan_cache_mode = force_generic_plan";

/// A connection of one worker, open while it is used.
#[derive(Debug)]
pub struct OwnConnection {
    options: PgConnectOptions,
    rests: Option<(PgConnection, Instant)>,
}

impl OwnConnection {
    /// A connection to where the pool's lead. Nothing is opened before it is needed.
    pub fn beside(pool: &PgPool) -> Self {
        OwnConnection { options: pool.connect_options().as_ref().clone(), rests: None }
    }

    /// The connection, which its user has from now on: one that is not given back is closed, and with it ends what it was
    /// doing.
    ///
    /// # Errors
    /// A database that does not answer.
    pub async fn take(&mut self) -> sqlx::Result<PgConnection> {
        if let Some((mut connection, since)) = self.rests.take()
            && (since.elapsed() < RESTED || connection.ping().await.is_ok())
        {
            return Ok(connection);
        }
        let open = async {
            let mut connection = self.options.connect().await?;
            connection.execute(PREPARE).await?;
            connection.execute(PLANS).await?;
            Ok(connection)
        };
        tokio::time::timeout(CONNECT, open).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
    }

    /// Gives it back after all went well.
    pub fn give_back(&mut self, connection: PgConnection) {
        self.rests = Some((connection, Instant::now()));
    }
}
