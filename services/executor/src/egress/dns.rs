//! Names become addresses here, once for each connection, and only as a whole: one bad address refuses the answer.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::address::{Refusal, check_address};

/// How a name is looked up. A seam because the network's DNS is not ours: tests script its answers.
pub type Lookup = Arc<dyn Fn(String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> + Send + Sync>;

/// The operating system's lookup: hosts file, search list and resolver as configured for this machine.
pub fn system() -> Lookup {
    Arc::new(|name| {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|socket| socket.ip()).collect())
        })
    })
}

/// The lookup itself failed: no such name, or no resolver that answers.
#[derive(Debug)]
pub(super) struct LookupFailed;

impl std::fmt::Display for LookupFailed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the name cannot be looked up")
    }
}

impl std::error::Error for LookupFailed {}

/// A resolver for one client, thus for one origin. The connector uses the very addresses that were judged, so a name
/// that answers differently the next time gains nothing.
pub(super) struct Vetted {
    pub(super) lookup: Lookup,
    /// The host of the allowed origin that the client is for; its addresses may be private.
    pub(super) exempt: Option<String>,
}

impl Resolve for Vetted {
    fn resolve(&self, name: Name) -> Resolving {
        let exempt = self.exempt.as_deref().is_some_and(|host| host.eq_ignore_ascii_case(name.as_str()));
        let answer = (self.lookup)(name.as_str().to_owned());
        Box::pin(async move {
            let addresses = answer.await.map_err(|_| LookupFailed)?;
            if addresses.is_empty() {
                return Err(Refusal::Dns.into());
            }
            if !exempt && !addresses.iter().copied().all(check_address) {
                return Err(Refusal::Address.into());
            }
            // Port 0 lets the connector put in the port of the URL.
            let sockets = addresses.into_iter().map(|address| SocketAddr::new(address, 0));
            Ok(Box::new(sockets) as Addrs)
        })
    }
}
