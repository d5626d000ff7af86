//! Every setting of the gateway, with its unit and its default.

use std::collections::BTreeSet;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use callbook_domain::row::DEFAULT_POOL;
use callbook_runtime::settings::{Limits, ServiceAddress, Settings, Tls};
use http::Uri;
use tonic::transport::{Certificate, ClientTlsConfig, Identity};

use crate::upstream::Near;

/// A setting that does not do.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// An address that is no URI.
    #[error("`{0}` is not an address of a service")]
    Address(String),
    /// A certificate or key that cannot be read.
    #[error("{} cannot be read ({source})", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// TLS settings that do not fit together.
    #[error("TLS between services cannot be set up ({0})")]
    Tls(#[from] tonic::transport::Error),
}

/// Where the services are, and how much of everything the gateway takes.
#[derive(Clone, Debug)]
pub struct Config {
    /// The resolvers. A DNS name may stand for several processes.
    pub resolver: Vec<Uri>,
    /// The contract services.
    pub contract: Vec<Uri>,
    /// The gates.
    pub gate: Vec<Uri>,
    /// The executors, each with the pool that it serves.
    pub executors: Vec<(String, Uri)>,
    /// The services of the gateway's own process: calls to their address need no connection. Default: none.
    pub near: Option<Near>,
    /// TLS to the services whose address is `https`. Default: the roots that are built in.
    pub tls: Option<ClientTlsConfig>,
    /// `scheme://host[:port]` for the addresses in answers. Default: what the request's `Host` says.
    pub public_url: Option<String>,
    /// Whether only this machine reaches it: then it answers MCP clients to no other name. Default off.
    pub local_only: bool,
    /// The MAC key of what clients carry between rounds of a request: the deployment's internal key, the same for all
    /// replicas. Default: one of this process alone.
    pub state_key: Vec<u8>,
    /// Whose JWTs the services take as credentials (`iss`). Default none.
    pub issuers: Vec<String>,
    /// The scopes that those issuers' tokens may have.
    pub scopes: Vec<String>,
    /// Rates a caller and sizes of a request; 0 in the settings, `None` here, turns one off.
    pub limits: Limits,
    /// Requests that the process answers at the same time. Default 4,096; `None`: no limit.
    pub in_flight: Option<NonZeroUsize>,
    /// Headers a request may have. Default 64.
    pub header_count: usize,
    /// Bytes of one header's value, other than `authorization`. Default 8 KiB.
    pub header_bytes: usize,
    /// Bytes of `authorization`. Default 40 KiB.
    pub authorization_bytes: usize,
    /// How long a call may take where the caller does not say. Default 30 s.
    pub deadline: Duration,
    /// The longest deadline that a caller may ask for. Default 10 min.
    pub longest_deadline: Duration,
    /// How long an import may take where the caller does not say. Default 10 min.
    pub import_deadline: Duration,
    /// How long the body of a request may take to arrive. Default 30 s.
    pub body_timeout: Duration,
    /// How long a connection to a service may take to come about. Default 1 s.
    pub connect_timeout: Duration,
    /// Connections to each process of a service. Default 2.
    pub connections: NonZeroUsize,
    /// How long a process that could not be reached is passed over. Default 1 s.
    pub avoid: Duration,
    /// How often the processes of a service that has several are asked whether they serve. Default 1 s.
    pub probe_every: Duration,
    /// How long one may take to say so before it is passed over. Default 1 s.
    pub probe_timeout: Duration,
    /// After what time DNS names of services are resolved again. Default 5 s.
    pub resolve_every: Duration,
    /// Bytes of one message of a service. Default 128 MiB.
    pub message_bytes: usize,
    /// How long open requests may go on after the process was told to stop. Default 30 s.
    pub drain: Duration,
}

impl Config {
    /// The defaults, for services at one address.
    pub fn at(uri: Uri) -> Self {
        Config {
            resolver: vec![uri.clone()],
            contract: vec![uri.clone()],
            gate: vec![uri.clone()],
            executors: vec![(DEFAULT_POOL.to_owned(), uri)],
            near: None,
            tls: None,
            public_url: None,
            local_only: false,
            state_key: [uuid::Uuid::new_v4(), uuid::Uuid::new_v4()].map(uuid::Uuid::into_bytes).concat(),
            issuers: Vec::new(),
            scopes: Vec::new(),
            limits: limits(),
            in_flight: NonZeroUsize::new(4_096),
            header_count: 64,
            header_bytes: 8 * 1024,
            authorization_bytes: 40 * 1024,
            deadline: Duration::from_secs(30),
            longest_deadline: Duration::from_secs(600),
            import_deadline: Duration::from_secs(600),
            body_timeout: Duration::from_secs(30),
            connect_timeout: Duration::from_secs(1),
            connections: NonZeroUsize::new(2).expect("two is not zero"),
            avoid: Duration::from_secs(1),
            probe_every: Duration::from_secs(1),
            probe_timeout: Duration::from_secs(1),
            resolve_every: Duration::from_secs(5),
            message_bytes: 128 * 1024 * 1024,
            drain: Duration::from_secs(30),
        }
    }

    /// The settings of a process whose own gRPC services are at `own`: where a role has no address, it is there.
    ///
    /// # Errors
    /// An address or a TLS file that does not do, in one sentence.
    pub fn from_settings(settings: &Settings, own: Uri) -> Result<Self, ConfigError> {
        let peers = &settings.peers;
        let all = |list: &[ServiceAddress]| match list {
            [] => Ok(vec![own.clone()]),
            list => list.iter().map(uri).collect::<Result<Vec<_>, _>>(),
        };
        let executors = match peers.executors.as_slice() {
            [] => settings.pools.iter().map(|pool| (pool.clone(), own.clone())).collect(),
            list => list
                .iter()
                .map(|(pool, address)| Ok((pool.clone(), uri(address)?)))
                .collect::<Result<Vec<_>, ConfigError>>()?,
        };
        Ok(Config {
            resolver: all(&peers.resolver)?,
            contract: all(&peers.contract)?,
            gate: all(&peers.gate)?,
            executors,
            tls: peers.tls.as_ref().map(tls).transpose()?,
            limits: settings.limits.clone(),
            local_only: settings.http.is_loopback(),
            issuers: settings.issuers.values().map(|issuer| issuer.issuer.clone()).collect(),
            scopes: scopes(settings),
            ..Config::at(own.clone())
        })
    }
}

fn limits() -> Limits {
    Limits {
        anonymous_per_second: NonZeroU32::new(1_000),
        principal_per_second: NonZeroU32::new(5_000),
        concurrency: NonZeroUsize::new(256),
        request_bytes: NonZeroUsize::new(1024 * 1024),
        import_bytes: NonZeroUsize::new(64 * 1024 * 1024),
        url_bytes: NonZeroUsize::new(8 * 1024),
        in_flight: NonZeroUsize::new(1_024),
        per_origin: NonZeroUsize::new(256),
        database_connections: NonZeroU32::MIN,
    }
}

/// Every scope that an issuer knows, once.
fn scopes(settings: &Settings) -> Vec<String> {
    let all = settings.issuers.values().flat_map(|issuer| issuer.scopes.keys().cloned());
    all.collect::<BTreeSet<String>>().into_iter().collect()
}

fn uri(address: &ServiceAddress) -> Result<Uri, ConfigError> {
    let text = address.uri();
    text.parse().map_err(|_| ConfigError::Address(text))
}

fn tls(files: &Tls) -> Result<ClientTlsConfig, ConfigError> {
    let mut config = match &files.ca {
        Some(ca) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(ca)?)),
        None => ClientTlsConfig::new().with_enabled_roots(),
    };
    if let Some((cert, key)) = &files.identity {
        config = config.identity(Identity::from_pem(read(cert)?, read(key)?));
    }
    Ok(config)
}

fn read(path: &PathBuf) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|source| ConfigError::File { path: path.clone(), source })
}
