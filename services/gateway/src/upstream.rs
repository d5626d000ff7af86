//! The services behind the gateway: who they are, which process gets a call, and what is tried again.

mod client;
mod endpoint;
mod pool;
mod send;
mod wire;

use std::collections::BTreeMap;

use callbook_domain::row::DEFAULT_POOL;
use http::Uri;

pub(crate) use self::client::{contract, directory, executor, gate, health, receipt, resolver, rpc};
pub(crate) use self::endpoint::Lane;
pub(crate) use self::pool::Pool;
pub(crate) use self::send::{fault_of_read, fault_of_write};
pub use self::wire::Near;
pub(crate) use self::wire::{Wire, Within};
use crate::config::{Config, ConfigError};

/// One pool of connections for each service.
pub(crate) struct Upstreams {
    /// The resolvers.
    pub(crate) resolver: Pool,
    /// The contract services.
    pub(crate) contract: Pool,
    /// The gates.
    pub(crate) gate: Pool,
    /// All executors, for receipts: these can be read at any of them.
    pub(crate) receipts: Pool,
    executors: BTreeMap<String, Pool>,
}

impl Upstreams {
    /// Makes the connections' descriptions; nothing is connected before the first call. Needs a runtime.
    pub(crate) fn new(config: &Config) -> Result<Self, ConfigError> {
        let pool = |uris: Vec<Uri>| Pool::new(uris, config);
        let mut by_pool: BTreeMap<String, Vec<Uri>> = BTreeMap::new();
        for (name, uri) in &config.executors {
            by_pool.entry(name.clone()).or_default().push(uri.clone());
        }
        let mut every: Vec<Uri> = config.executors.iter().map(|(_, uri)| uri.clone()).collect();
        every.sort_by_key(Uri::to_string);
        every.dedup();
        Ok(Upstreams {
            resolver: pool(config.resolver.clone())?,
            contract: pool(config.contract.clone())?,
            gate: pool(config.gate.clone())?,
            receipts: pool(every)?,
            executors: by_pool
                .into_iter()
                .map(|(name, uris)| Ok((name, pool(uris)?)))
                .collect::<Result<_, ConfigError>>()?,
        })
    }

    /// The executors that a call goes to first; rows say only in their refusal that they need others.
    pub(crate) fn executor(&self) -> Option<&Pool> {
        self.executors.get(DEFAULT_POOL).or_else(|| self.executors.values().next())
    }

    /// The executors of a pool that is not the first choice.
    pub(crate) fn executor_of(&self, pool: &str) -> Option<&Pool> {
        self.executors.get(pool).filter(|other| self.executor().is_none_or(|first| !std::ptr::eq(first, *other)))
    }

    /// Every pool, for the upkeep.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Pool> {
        [&self.resolver, &self.contract, &self.gate, &self.receipts].into_iter().chain(self.executors.values())
    }
}
