//! What Postgres said, as a fault.

use callbook_domain::fault::{Fault, Reason};

/// The fault that an SQL error is: a database that does not answer, or a mistake of ours. The cause goes to the log and
/// not to the caller.
pub fn fault(error: sqlx::Error) -> Fault {
    if is_outage(&error) {
        tracing::warn!(%error, "postgres does not answer");
        return Fault::new(Reason::DatabaseUnavailable, "the database does not answer").retry_after_ms(1_000);
    }
    tracing::error!(%error, "postgres refused");
    Fault::new(Reason::Internal, "the database refused, the log has the cause")
}

/// Whether the error says that there is no database rather than that it refused.
pub fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Tls(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed => true,
        // 08 connection, 57P shutdown, 53 out of resources, 25006 a standby, 40 rolled back for others
        sqlx::Error::Database(error) => error.code().is_some_and(|code| {
            ["08", "57P", "53", "40"].iter().any(|class| code.starts_with(class)) || matches!(&*code, "25006" | "55P03")
        }),
        _ => false,
    }
}

/// The name of the constraint that an SQL error names.
pub fn constraint(error: &sqlx::Error) -> Option<&str> {
    error.as_database_error().and_then(|error| error.constraint())
}
