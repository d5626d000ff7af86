//! Owns who may: the principals, their API keys and their grants.

mod principal;

mod create;
mod list;
mod revoke;

mod store;

pub mod grpc;

use std::sync::Arc;

use callbook_caller::Callers;
use callbook_domain::clock::Clock;
use sqlx::PgPool;

pub use grpc::services;

/// What the verbs work with.
pub struct App {
    /// Connections.
    pub pool: PgPool,
    /// Who calls.
    pub callers: Arc<Callers>,
    /// The time.
    pub clock: Clock,
}
