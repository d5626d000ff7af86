//! Rates and sizes. 0 turns a limit off.

use std::num::{NonZeroU32, NonZeroUsize};

use super::error::SettingsError;
use super::file::LimitsTable;

/// How much is taken at once and per second. `None`: no limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Requests a second from one address without a credential. Default 1,000.
    pub anonymous_per_second: Option<NonZeroU32>,
    /// Requests a second from one caller with a credential. Default 5,000.
    pub principal_per_second: Option<NonZeroU32>,
    /// Requests of one caller or address at the same time. Default 256.
    pub concurrency: Option<NonZeroUsize>,
    /// Bytes of a request body. Default 1 MiB.
    pub request_bytes: Option<NonZeroUsize>,
    /// Bytes of an import. Default 64 MiB.
    pub import_bytes: Option<NonZeroUsize>,
    /// Bytes of a URL. Default 8 KiB.
    pub url_bytes: Option<NonZeroUsize>,
    /// Invocations that one executor runs at the same time. Default 1,024.
    pub in_flight: Option<NonZeroUsize>,
    /// Calls that one executor holds to one upstream at the same time, so that one that hangs cannot hold them all.
    /// Default 256.
    pub per_origin: Option<NonZeroUsize>,
    /// Connections to Postgres that one process holds; there is always a limit. Default 32.
    pub database_connections: NonZeroU32,
}

pub(super) fn limits(table: LimitsTable) -> Result<Limits, SettingsError> {
    let rate = |set: Option<u32>, default| NonZeroU32::new(set.unwrap_or(default));
    let size = |set: Option<u32>, default| NonZeroUsize::new(set.unwrap_or(default) as usize);
    let connections = rate(table.database_connections, 32).ok_or_else(|| {
        SettingsError::refused("limits.database_connections", "must be at least 1, a process cannot do without")
    })?;
    Ok(Limits {
        anonymous_per_second: rate(table.anonymous_per_second, 1_000),
        principal_per_second: rate(table.principal_per_second, 5_000),
        concurrency: size(table.concurrency, 256),
        request_bytes: size(table.request_bytes, 1024 * 1024),
        import_bytes: size(table.import_bytes, 64 * 1024 * 1024),
        url_bytes: size(table.url_bytes, 8 * 1024),
        in_flight: size(table.in_flight, 1_024),
        per_origin: size(table.per_origin, 256),
        database_connections: connections,
    })
}
