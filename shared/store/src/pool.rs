//! Connections: the owner's for migrations, the application role's for everything else.

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, Executor, PgPool};

/// A connection that was idle for longer is tried before it is used: after a restart of Postgres all of them are dead,
/// and each would cost a caller its request. Those in steady use pay nothing.
pub(crate) const RESTED: Duration = Duration::from_secs(1);

/// What every connection does first. The commit point stands on statements that see what was committed before they began,
/// whatever a database's default.
pub(crate) const PREPARE: &str = "set role callbook_app; set timezone to 'UTC'; \
    set default_transaction_isolation to 'read committed'; set lock_timeout to '10s'; \
    set idle_in_transaction_session_timeout to '30s'";

/// Brings the schema to this build's version, as the role that owns it.
///
/// # Errors
/// Whatever Postgres or the migrator says: a server older than 15, a migration that was changed after it ran.
pub async fn migrate(options: &PgConnectOptions) -> Result<(), MigrateError> {
    let mut connection = options.clone().connect().await?;
    let version: i32 =
        sqlx::query_scalar("select current_setting('server_version_num')::int").fetch_one(&mut connection).await?;
    if version < 150_000 {
        return Err(MigrateError::TooOld(version / 10_000));
    }
    sqlx::migrate!("./migrations").run(&mut connection).await?;
    check_locks(options, &mut connection).await?;
    connection.close().await?;
    Ok(())
}

/// Why the schema could not be brought up.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// A server without what the schema needs.
    #[error("postgres {0} is too old, 15 or newer is needed")]
    TooOld(i32),
    /// The address leads through something that breaks session locks.
    #[error("advisory locks do not exclude on this address, connect to the primary without a statement pooler")]
    LocksDoNotExclude,
    /// The server refused.
    #[error("postgres refused: {0}")]
    Sql(#[from] sqlx::Error),
    /// A migration failed.
    #[error("migration failed: {0}")]
    Migration(#[from] sqlx::migrate::MigrateError),
}

/// The commit point stands on advisory locks. Behind a wrong pooler or on a replica they would not exclude, so a
/// second connection must fail to take what the first one holds.
async fn check_locks(options: &PgConnectOptions, first: &mut sqlx::PgConnection) -> Result<(), MigrateError> {
    let probe = i64::from(std::process::id()) | 0x63_6265_0000_0000;
    let mut transaction = first.begin().await?;
    sqlx::query("select pg_advisory_xact_lock($1)").bind(probe).execute(&mut *transaction).await?;
    let mut second = options.clone().connect().await?;
    let taken: bool = sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(probe).fetch_one(&mut second).await?;
    second.close().await?;
    transaction.rollback().await?;
    if taken { Err(MigrateError::LocksDoNotExclude) } else { Ok(()) }
}

/// A pool whose connections act as the application role.
///
/// Acquiring waits at most two seconds, so that a lost database is an answer and not a hang.
pub fn connect(options: &PgConnectOptions, max_connections: u32) -> PgPool {
    PgPoolOptions::new()
        .max_connections(max_connections)
        .min_connections(2.min(max_connections))
        .acquire_timeout(Duration::from_secs(2))
        .test_before_acquire(false)
        .before_acquire(|connection, about| {
            Box::pin(async move {
                if about.idle_for > RESTED {
                    connection.ping().await?;
                }
                Ok(true)
            })
        })
        .after_connect(|connection, _| {
            Box::pin(async move {
                connection.execute(PREPARE).await?;
                Ok(())
            })
        })
        .connect_lazy_with(options.clone().disable_statement_logging())
}
