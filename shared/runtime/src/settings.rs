//! Every setting, with its unit and its default. A flag or an environment variable wins over `callbook.toml`.
//!
//! Everything is read and checked before anything binds or connects, and what is wrong is one sentence that names
//! the setting. Past [`Settings::load`] nothing is text that still has to be understood.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use callbook_domain::secret::Bindings;
use jiff::tz::TimeZone;
use secrecy::SecretString;

mod address;
mod error;
mod file;
mod limits;
mod outside;
mod overrides;
mod peers;
mod pick;
mod secret;
#[cfg(test)]
mod tests;

pub use address::{HostPort, ServiceAddress, parse_origin};
pub use error::SettingsError;
pub use limits::Limits;
pub use outside::{Database, Exec, Issuer, Price, Provider, ProviderForm};
pub use overrides::Overrides;
pub use peers::{Peers, Tls};

use file::SettingsFile;
use pick::{flag, list, number, text};

/// Whether anonymous callers may ask and read contracts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Catalogue {
    /// Anybody who reaches the address may.
    Public,
    /// Only callers with a credential.
    Private,
}

/// All settings of one process, checked. `Debug` shows no secret.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the gateway listens. Default `127.0.0.1:7700`.
    pub http: HostPort,
    /// Where this process's gRPC services listen, all its roles on one port. Default `127.0.0.1:7701`.
    pub grpc: HostPort,
    /// Where `/metrics`, `/healthz` and `/readyz` listen. Default `127.0.0.1:7702`.
    pub admin: HostPort,
    /// The Postgres to use. Absent: a private one in the data directory (`up` only). May hold a password.
    pub database_url: Option<SecretString>,
    /// Where keys and the private Postgres live. Default `$XDG_DATA_HOME/callbook`, as root `/var/lib/callbook`;
    /// absent only where there is no home directory either.
    pub data_dir: Option<PathBuf>,
    /// Where the programs of the private Postgres are. Absent: looked for in the usual places.
    pub pg_bin: Option<PathBuf>,
    /// Where the other roles are. Default: in this process.
    pub peers: Peers,
    /// The pools that this executor serves. Default `default`.
    pub pools: Vec<String>,
    /// The owner key, if it was set; else it is read from or made in the data directory (`key_file`).
    pub owner_key: Option<SecretString>,
    /// The MAC key for cursors and request state, if it was set; the same for all replicas.
    pub internal_key: Option<SecretString>,
    /// The key that signs tokens, if it was set: a PKCS#8 PEM or 32 bytes of base64url; else the gate keeps keys in the
    /// data directory.
    pub issuer_key: Option<SecretString>,
    /// Upstream origins that may be plain http, loopback or private, as `scheme://host[:port]`. Default none.
    pub allow_origins: Vec<String>,
    /// Which secret may go to which origins for which keys. Default none.
    pub secrets: Bindings,
    /// The files that hold values, by secret, for executors alone; a secret without one is looked for in
    /// `secrets_dir`, then in the environment variable of its name.
    pub secret_files: BTreeMap<String, PathBuf>,
    /// A directory with one file a secret, read again on each use. Default none.
    pub secrets_dir: Option<PathBuf>,
    /// Whether anonymous callers may read. Default public where `http` is a loopback address, else private.
    pub catalogue: Catalogue,
    /// Whether reads without uses and without an idempotency key write intent and result after the call. Default off.
    pub read_mode: bool,
    /// Whether `fn` rows may carry JavaScript. Default off.
    pub js: bool,
    /// The deployment's name in every token's `aud`. Default `callbook`.
    pub audience: String,
    /// The deployment's name in every token's `iss`. Default `callbook`.
    pub token_issuer: String,
    /// The longest life of a token. Default, and at most, 7 days; at least a minute.
    pub token_max: Duration,
    /// The zone of the function `now`. Default UTC.
    pub timezone: TimeZone,
    /// After how many days payloads are erased. Default 30; 0 keeps them.
    pub retention_days: Option<NonZeroU32>,
    /// Rates and sizes.
    pub limits: Limits,
    /// The model providers of `agent` rows, by name. Default none.
    pub providers: BTreeMap<String, Provider>,
    /// The databases that `sql_query` may read, by name; never Callbook's own. Default none.
    pub databases: BTreeMap<String, Database>,
    /// What the function `exec` may start. Default nothing.
    pub exec: Option<Exec>,
    /// Who else's tokens (JWT) are believed, by name. Default nobody.
    pub issuers: BTreeMap<String, Issuer>,
    /// Variables that templates may use, readable by everybody who may read a contract. Default none.
    pub public: BTreeMap<String, String>,
}

impl Settings {
    /// Reads the file, lays the flags and the environment over it, and checks everything.
    ///
    /// # Errors
    /// One sentence that names the first setting that is wrong, or the file that cannot be read.
    pub fn load(overrides: Overrides) -> Result<Self, SettingsError> {
        let data_dir = pick::path(overrides.data_dir.clone(), None).or_else(pick::default_data_dir);
        let file = SettingsFile::find(overrides.config.as_deref(), data_dir.as_deref())?;
        Self::from_parts(overrides, file)
    }

    fn from_parts(set: Overrides, file: SettingsFile) -> Result<Self, SettingsError> {
        let http = address::host_port("http", set.http, file.http, "127.0.0.1:7700")?;
        let (secrets, secret_files) = secret::secrets(file.secrets, set.secret_origins)?;
        let tls = peers::tls((set.tls_cert, set.tls_key, set.tls_ca), file.tls)?;
        let at = (set.resolver, set.contract, set.gate, set.executors);
        let in_file = (file.resolver, file.contract, file.gate, file.executors);
        let audience = pick::name("audience", set.audience, file.audience)?;
        let allow_origins = address::origins("allow_origins", list(set.allow_origins, file.allow_origins))?;
        Ok(Settings {
            grpc: address::host_port("grpc", set.grpc, file.grpc, "127.0.0.1:7701")?,
            admin: address::host_port("admin", set.admin, file.admin, "127.0.0.1:7702")?,
            database_url: pick::database_url(set.database_url, file.database_url)?,
            data_dir: pick::data_dir(set.data_dir, file.data_dir)?,
            pg_bin: pick::path(set.pg_bin, file.pg_bin),
            peers: peers::peers(at, in_file, tls)?,
            pools: pick::pools(set.pools, file.pools)?,
            owner_key: pick::key("owner_key", set.owner_key)?,
            internal_key: pick::key("internal_key", set.internal_key)?,
            issuer_key: pick::key("issuer_key", set.issuer_key)?,
            secrets_dir: pick::path(set.secrets_dir, file.secrets_dir),
            catalogue: pick::catalogue(set.catalogue, file.catalogue, http.is_loopback() && !set.behind_gateway)?,
            read_mode: flag("read_mode", set.read_mode, file.read_mode)?,
            js: flag("js", set.js, file.js)?,
            token_issuer: pick::name("token_issuer", set.token_issuer, file.token_issuer)?,
            token_max: pick::token_max(set.token_max_seconds, file.token_max_seconds)?,
            timezone: pick::timezone(&text(set.timezone, file.timezone, "UTC"))?,
            retention_days: NonZeroU32::new(number("retention_days", set.retention_days, file.retention_days, 30)?),
            limits: limits::limits(file.limits)?,
            providers: outside::providers(file.providers, &secrets)?,
            databases: outside::databases(file.databases)?,
            exec: outside::exec(file.exec)?,
            issuers: outside::issuers(file.issuers, &audience, &allow_origins)?,
            public: file.public,
            audience,
            allow_origins,
            secrets,
            secret_files,
            http,
        })
    }
}
