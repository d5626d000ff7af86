//! Owns who may: the principals with their API keys and grants, the capability tokens, and the keys that sign them.

mod principal;
mod scope;
mod token;
mod target;
mod page;
pub mod signing;

mod create;
mod list;
mod revoke;
mod mint;
mod narrow;
mod explain;
mod tokens;
mod take_back;
mod rotate;

mod store;

pub mod grpc;

use std::sync::Arc;

use callbook_caller::{Callers, Deployment};
use callbook_domain::clock::Clock;
use callbook_store::directory::Directory;
use sqlx::PgPool;

pub use grpc::services;

use signing::Signer;

/// What the verbs work with.
pub struct App {
    /// Connections.
    pub pool: PgPool,
    /// Who calls.
    pub callers: Arc<Callers>,
    /// The time.
    pub clock: Clock,
    /// The book: which keys there are, and what they are pinned to.
    pub directory: Arc<Directory>,
    /// Whose tokens are minted, and how long they may live.
    pub deployment: Deployment,
    /// Who signs them.
    pub signer: Signer,
}
