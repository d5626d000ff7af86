//! The processes of one service: the least busy one that can be reached gets the call.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures::future::join_all;
use http::Uri;

use super::endpoint::{Endpoint, Lane, authority};
use crate::config::{Config, ConfigError};

/// The processes of one service.
pub(crate) struct Pool {
    sources: Vec<Uri>,
    /// For each source the processes that it stands for.
    endpoints: ArcSwap<Vec<Vec<Arc<Endpoint>>>>,
    turn: AtomicUsize,
    config: Config,
}

impl Pool {
    pub(super) fn new(sources: Vec<Uri>, config: &Config) -> Result<Self, ConfigError> {
        let endpoints = sources.iter().map(|uri| Ok(vec![Arc::new(Endpoint::new(uri, None, config)?)]));
        let endpoints = endpoints.collect::<Result<Vec<_>, ConfigError>>()?;
        Ok(Pool {
            sources,
            endpoints: ArcSwap::from_pointee(endpoints),
            turn: AtomicUsize::new(0),
            config: config.clone(),
        })
    }

    /// The best process that was not tried yet.
    pub(super) fn pick(&self, tried: &[String]) -> Option<Lane> {
        let endpoints = self.endpoints.load();
        let open: Vec<_> = endpoints.iter().flatten().filter(|endpoint| !tried.contains(&endpoint.at)).collect();
        // Equal ones take turns: the search begins at another one each time.
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % open.len().max(1);
        let (before, after) = open.split_at(first);
        let best = after.iter().chain(before).min_by_key(|endpoint| endpoint.load())?;
        Some(Lane::of(Arc::clone(best)))
    }

    pub(super) fn avoid(&self) -> Duration {
        self.config.avoid
    }

    /// Asks its processes whether they serve, where there are several to choose from: one that hangs is passed over
    /// before more calls wait for it.
    pub(crate) async fn probe(&self) {
        let endpoints = self.endpoints.load_full();
        let endpoints: Vec<_> = endpoints.iter().flatten().collect();
        if endpoints.len() > 1 {
            // the next answer comes an interval and the patience later
            let avoid = self.config.probe_every + 2 * self.config.probe_timeout;
            join_all(endpoints.into_iter().map(|endpoint| endpoint.probe(self.config.probe_timeout, avoid))).await;
        }
    }

    /// Whether a process of it is known by a name that has to be resolved.
    pub(crate) fn has_names(&self) -> bool {
        self.sources.iter().any(is_name)
    }

    /// Resolves the names again: new processes come in, lost ones go, calls that run are not touched. A name that
    /// cannot be resolved keeps what it stood for.
    pub(crate) async fn resolve(&self) {
        let known = self.endpoints.load_full();
        let mut endpoints = Vec::with_capacity(known.len());
        for (uri, known) in self.sources.iter().zip(known.iter()) {
            endpoints.push(match is_name(uri) {
                true => self.look_up(uri, known).await.unwrap_or_else(|| known.clone()),
                false => known.clone(),
            });
        }
        self.endpoints.store(Arc::new(endpoints));
    }

    async fn look_up(&self, uri: &Uri, known: &[Arc<Endpoint>]) -> Option<Vec<Arc<Endpoint>>> {
        let found = tokio::net::lookup_host(authority(uri).ok()?).await.ok()?;
        let mut addresses: Vec<String> = found.map(|address| address.to_string()).collect();
        addresses.sort_unstable();
        addresses.dedup();
        let endpoints = addresses.into_iter().map(|at| match known.iter().find(|endpoint| endpoint.at == at) {
            Some(endpoint) => Some(Arc::clone(endpoint)),
            None => Endpoint::new(uri, Some(at), &self.config).ok().map(Arc::new),
        });
        endpoints.collect::<Option<Vec<_>>>().filter(|endpoints| !endpoints.is_empty())
    }
}

fn is_name(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default();
    host.trim_matches(['[', ']']).parse::<std::net::IpAddr>().is_err()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(uris: &[&str]) -> Pool {
        let uris = uris.iter().map(|uri| uri.parse().unwrap()).collect();
        Pool::new(uris, &Config::at("http://127.0.0.1:1".parse().unwrap())).unwrap()
    }

    #[tokio::test]
    async fn a_name_stands_for_every_address_that_it_has_now() {
        let pool = pool(&["http://localhost:7", "http://127.0.0.2:7"]);
        assert!(pool.has_names());
        assert_eq!(pool.pick(&["127.0.0.2:7".into()]).unwrap().at(), "localhost:7");
        pool.resolve().await;
        let first = Arc::clone(&pool.endpoints.load()[0][0]);
        assert!(first.at.parse::<std::net::SocketAddr>().unwrap().ip().is_loopback());
        pool.resolve().await;
        assert!(Arc::ptr_eq(&first, &pool.endpoints.load()[0][0]), "what is known is kept");
    }

    #[tokio::test]
    async fn the_least_busy_process_that_can_be_reached_is_chosen() {
        let pool = pool(&["http://127.0.0.1:1", "http://127.0.0.2:1"]);
        let first = pool.pick(&[]).unwrap();
        let second = pool.pick(&[]).unwrap();
        assert_ne!(first.at(), second.at());
        let tired = first.at().to_owned();
        first.avoid(Duration::from_secs(60));
        drop(first);
        assert_ne!(pool.pick(&[]).unwrap().at(), tired, "busy is better than out of reach");
        assert_eq!(pool.pick(&[second.at().to_owned()]).unwrap().at(), tired, "out of reach is better than nobody");
        assert!(pool.pick(&[tired, second.at().to_owned()]).is_none());
    }
}
