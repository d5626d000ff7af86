//! One process of a service.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use http::Uri;
use tonic::transport::ClientTlsConfig;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;

use super::Wire;
use crate::config::{Config, ConfigError};

/// How long a connection may be silent before it is asked whether it still lives.
const PING_EVERY: Duration = Duration::from_secs(10);
/// How long the answer to that may take.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// One process of a service, with a few ways to it.
pub(super) struct Endpoint {
    /// `host:port`, where its name was resolved: an IP address.
    pub(super) at: String,
    lanes: Box<[Wire]>,
    next: AtomicUsize,
    in_flight: AtomicUsize,
    born: Instant,
    /// Milliseconds since `born`; 0 where it was never out of reach.
    avoided_until: AtomicU64,
}

impl Endpoint {
    /// Describes the connections. `at` stands for the URI's host and port where the name was resolved.
    pub(super) fn new(uri: &Uri, at: Option<String>, config: &Config) -> Result<Self, ConfigError> {
        let named = authority(uri)?;
        let at = at.unwrap_or_else(|| named.clone());
        if let Some(near) = config.near.as_ref().filter(|near| near.at == *uri) {
            return Ok(Endpoint::of(at, [Wire::Near(near.clone())]));
        }
        let scheme = uri.scheme_str().unwrap_or("http");
        let endpoint = tonic::transport::Endpoint::from_shared(format!("{scheme}://{at}"))
            .map_err(|_| ConfigError::Address(uri.to_string()))?
            .connect_timeout(config.connect_timeout)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(PING_EVERY)
            .keep_alive_timeout(PING_TIMEOUT)
            .keep_alive_while_idle(true)
            .user_agent(concat!("callbook-gateway/", env!("CARGO_PKG_VERSION")))
            .map_err(|_| ConfigError::Address(uri.to_string()))?;
        let origin = format!("{scheme}://{named}").parse().map_err(|_| ConfigError::Address(uri.to_string()))?;
        let tls = || config.tls.clone().unwrap_or_else(|| ClientTlsConfig::new().with_enabled_roots());
        let endpoint = match scheme {
            "https" => endpoint.tls_config(tls().domain_name(uri.host().unwrap_or_default()))?,
            _ => endpoint,
        };
        let endpoint = endpoint.origin(origin);
        Ok(Endpoint::of(at, (0..config.connections.get()).map(|_| Wire::Far(endpoint.connect_lazy()))))
    }

    fn of(at: String, lanes: impl IntoIterator<Item = Wire>) -> Self {
        Endpoint {
            at,
            lanes: lanes.into_iter().collect(),
            next: AtomicUsize::new(0),
            in_flight: AtomicUsize::new(0),
            born: Instant::now(),
            avoided_until: AtomicU64::new(0),
        }
    }

    /// How good a choice it is, lowest first.
    pub(super) fn load(&self) -> (bool, usize) {
        let avoided = self.now() < self.avoided_until.load(Ordering::Relaxed);
        (avoided, self.in_flight.load(Ordering::Relaxed))
    }

    /// Asks it whether it serves. Where it does not say so in time it is passed over for `avoid`; where it does, it is
    /// a choice again.
    pub(super) async fn probe(&self, patience: Duration, avoid: Duration) {
        let mut health = super::health(self.lanes[0].clone());
        let asked = tokio::time::timeout(patience, health.check(HealthCheckRequest::default())).await;
        let serves = matches!(asked, Ok(Ok(answer)) if answer.get_ref().status == ServingStatus::Serving as i32);
        self.avoid(if serves { Duration::ZERO } else { avoid });
    }

    fn avoid(&self, time: Duration) {
        let until = self.now() + u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.avoided_until.store(until, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        u64::try_from(self.born.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// `host:port` of a URI, with the port that its scheme implies.
pub(super) fn authority(uri: &Uri) -> Result<String, ConfigError> {
    let host = uri.host().ok_or_else(|| ConfigError::Address(uri.to_string()))?;
    let implied = if uri.scheme_str() == Some("https") { 443 } else { 80 };
    Ok(format!("{host}:{}", uri.port_u16().unwrap_or(implied)))
}

/// A way for one call. While it lives the call counts as the process's load.
pub(crate) struct Lane {
    endpoint: Arc<Endpoint>,
    /// The way to it.
    pub(crate) wire: Wire,
}

impl Lane {
    pub(super) fn of(endpoint: Arc<Endpoint>) -> Self {
        endpoint.in_flight.fetch_add(1, Ordering::Relaxed);
        let turn = endpoint.next.fetch_add(1, Ordering::Relaxed);
        let wire = endpoint.lanes[turn % endpoint.lanes.len()].clone();
        Lane { endpoint, wire }
    }

    /// The process that it leads to.
    pub(crate) fn at(&self) -> &str {
        &self.endpoint.at
    }

    /// Passes the process over for a while.
    pub(super) fn avoid(&self, time: Duration) {
        self.endpoint.avoid(time);
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.endpoint.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}
