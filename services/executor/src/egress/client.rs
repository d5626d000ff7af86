//! The connections: one client for each pair of secret and origin, so that two credentials never share one.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::Client;
use reqwest::redirect;

use super::address::{Origin, Policy};
use super::dns::{self, Lookup, Vetted};
use super::failure::{Failed, Phase};

/// How many clients are kept; the one that was used longest ago goes first, with its idle connections.
const MAX_CLIENTS: usize = 256;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Shorter than what most servers keep an idle connection, so that a request seldom meets one that is just closing.
const POOL_IDLE: Duration = Duration::from_secs(30);
const POOL_IDLE_PER_CLIENT: usize = 16;
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// The way out of one process. Cheap to share behind an `Arc`.
pub struct Egress {
    policy: Policy,
    lookup: Lookup,
    user_agent: String,
    connect_timeout: Duration,
    pool: Mutex<Pool>,
}

impl Egress {
    /// A way out under a policy. `version` is the build's, for `User-Agent: callbook/<version>`.
    ///
    /// Installs the ring provider for the process when none is installed: without one the client would panic.
    pub fn new(policy: Policy, version: &str) -> Self {
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // An error means that another thread was faster, which is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        Egress {
            policy,
            lookup: dns::system(),
            user_agent: format!("callbook/{version}"),
            connect_timeout: CONNECT_TIMEOUT,
            pool: Mutex::new(Pool::new(MAX_CLIENTS)),
        }
    }

    /// The same with another source of addresses.
    pub fn with_lookup(mut self, lookup: Lookup) -> Self {
        self.lookup = lookup;
        self
    }

    /// The same with another bound for lookup, connection and TLS together (3 s unless said).
    pub fn with_connect_timeout(mut self, limit: Duration) -> Self {
        self.connect_timeout = limit;
        self
    }

    /// The operator's policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The client of a secret and an origin, made when there is none.
    pub(super) fn client(&self, secret: Option<&str>, origin: &Origin) -> Result<Client, Failed> {
        let key = (secret.map(str::to_owned), origin.clone());
        if let Some(client) = self.pool().take(&key) {
            return Ok(client);
        }
        // Made outside the lock: reading the system's root certificates takes milliseconds.
        let client = self.build(origin).map_err(|_| {
            Failed::before(Phase::Tls, format!("no client for {origin}: are root certificates installed?"))
        })?;
        Ok(self.pool().put(key, client))
    }

    fn pool(&self) -> std::sync::MutexGuard<'_, Pool> {
        // The pool is whole between any two statements, so a panic elsewhere leaves nothing to repair.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn build(&self, origin: &Origin) -> reqwest::Result<Client> {
        let exempt = self.policy.allows(origin).then(|| origin.host().to_owned());
        let builder = Client::builder()
            .user_agent(&self.user_agent)
            .dns_resolver(Arc::new(Vetted { lookup: Arc::clone(&self.lookup), exempt }))
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(reqwest::retry::never())
            .referer(false)
            // Another crate of the build may switch these features on; the bounds need the bytes as they came.
            .no_gzip()
            .no_deflate()
            .no_brotli()
            .no_zstd()
            .connect_timeout(self.connect_timeout)
            .tcp_nodelay(true)
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(POOL_IDLE_PER_CLIENT)
            .http2_keep_alive_interval(PING_INTERVAL)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true);
        if origin.is_https() {
            return builder.https_only(true).build();
        }
        // Plain http needs no root certificates, and must work where none are installed.
        builder.tls_certs_only([]).build()
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Egress").field("policy", &self.policy).finish_non_exhaustive()
    }
}

type Key = (Option<String>, Origin);

/// Clients, and when each was used last, counted in uses.
struct Pool {
    clients: HashMap<Key, (Client, u64)>,
    uses: u64,
    bound: usize,
}

impl Pool {
    fn new(bound: usize) -> Self {
        Pool { clients: HashMap::new(), uses: 0, bound }
    }

    fn take(&mut self, key: &Key) -> Option<Client> {
        self.uses += 1;
        let (client, used) = self.clients.get_mut(key)?;
        *used = self.uses;
        Some(client.clone())
    }

    /// Keeps a client, unless another call was faster; gives the one that is kept.
    fn put(&mut self, key: Key, client: Client) -> Client {
        if let Some(kept) = self.take(&key) {
            return kept;
        }
        if self.clients.len() >= self.bound {
            let oldest = self.clients.iter().min_by_key(|(_, (_, used))| *used).map(|(key, _)| key.clone());
            oldest.and_then(|key| self.clients.remove(&key));
        }
        self.clients.insert(key, (client.clone(), self.uses));
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_that_was_used_longest_ago_leaves_the_pool() {
        let egress = Egress { pool: Mutex::new(Pool::new(2)), ..Egress::new(Policy::default(), "0") };
        let origins: Vec<Origin> = ["http://a.b", "http://c.d", "http://e.f"].map(|o| o.parse().unwrap()).to_vec();
        egress.client(None, &origins[0]).unwrap();
        egress.client(None, &origins[1]).unwrap();
        egress.client(None, &origins[0]).unwrap();
        egress.client(None, &origins[2]).unwrap();
        let mut kept: Vec<Origin> = egress.pool().clients.keys().map(|key| key.1.clone()).collect();
        kept.sort();
        assert_eq!(kept, [origins[0].clone(), origins[2].clone()]);
    }

    #[test]
    fn two_secrets_never_share_a_client() {
        let egress = Egress::new(Policy::default(), "0");
        let origin = "http://a.b".parse().unwrap();
        for secret in [None, Some("ONE"), Some("TWO"), Some("ONE")] {
            egress.client(secret, &origin).unwrap();
        }
        assert_eq!(egress.pool().clients.len(), 3);
    }
}
