//! What the handlers share.

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use crate::config::{Config, ConfigError};
use crate::door::Limiter;
use crate::health::Health;
use crate::upstream::{Pool, Upstreams};

/// After what time quiet callers are forgotten.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// One gateway.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) upstreams: Upstreams,
    pub(crate) limiter: Arc<Limiter>,
    pub(crate) health: Health,
}

impl App {
    /// A gateway that has not called anybody yet. Needs a runtime.
    pub(crate) fn new(config: Config) -> Result<Self, ConfigError> {
        let upstreams = Upstreams::new(&config)?;
        let limiter = Arc::new(Limiter::new(&config));
        Ok(App { config, upstreams, limiter, health: Health::default() })
    }

    /// Resolves the names of services again, asks their processes whether they serve and forgets quiet callers, until it
    /// is told to stop.
    pub(crate) async fn upkeep(self: Arc<Self>, stop: CancellationToken) {
        let mut resolve = tokio::time::interval(self.config.resolve_every);
        let mut probe = tokio::time::interval(self.config.probe_every);
        probe.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tidy = tokio::time::interval(TIDY_EVERY);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = resolve.tick() => {
                    for pool in self.upstreams.all().filter(|pool| pool.has_names()) {
                        pool.resolve().await;
                    }
                }
                _ = probe.tick() => drop(join_all(self.upstreams.all().map(Pool::probe)).await),
                _ = tidy.tick() => self.limiter.tidy(),
            }
        }
    }
}
