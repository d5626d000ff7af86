//! The settings as flags and environment variables.

use std::path::PathBuf;

use callbook_runtime::settings::{Overrides, Settings, SettingsError};
use clap::Args;

/// Settings of a process. Each wins over `callbook.toml`.
#[derive(Debug, Args)]
pub struct Flags {
    /// Settings file; absent: callbook.toml in the data directory
    #[arg(long, env = "CALLBOOK_CONFIG")]
    config: Option<PathBuf>,
    /// host:port of the HTTP gateway [default: 127.0.0.1:7700]
    #[arg(long, env = "CALLBOOK_HTTP")]
    http: Option<String>,
    /// host:port of the gRPC services [default: 127.0.0.1:7701]
    #[arg(long, env = "CALLBOOK_GRPC")]
    grpc: Option<String>,
    /// host:port of metrics and health [default: 127.0.0.1:7702]
    #[arg(long, env = "CALLBOOK_ADMIN")]
    admin: Option<String>,
    /// Postgres to use instead of a private one
    #[arg(long, env = "DATABASE_URL", hide_env_values = true)]
    database_url: Option<String>,
    /// Where keys and the private Postgres live
    #[arg(long, env = "CALLBOOK_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Where initdb and postgres are
    #[arg(long, env = "CALLBOOK_PG_BIN")]
    pg_bin: Option<PathBuf>,
    /// Pools that this executor serves, comma-separated [default: default]
    #[arg(long, env = "CALLBOOK_POOLS")]
    pools: Option<String>,
    /// Addresses of the resolvers, comma-separated [default: this process]
    #[arg(long, env = "CALLBOOK_RESOLVER")]
    resolver: Option<String>,
    /// Addresses of the contract services, comma-separated [default: this process]
    #[arg(long, env = "CALLBOOK_CONTRACT")]
    contract: Option<String>,
    /// Addresses of the gates, comma-separated [default: this process]
    #[arg(long, env = "CALLBOOK_GATE")]
    gate: Option<String>,
    /// pool=address of the executors, comma-separated [default: this process]
    #[arg(long, env = "CALLBOOK_EXECUTORS")]
    executors: Option<String>,
    /// Upstream origins that may be plain http, loopback or private, comma-separated
    #[arg(long, env = "CALLBOOK_ALLOW_ORIGINS")]
    allow_origins: Option<String>,
    /// Directory with one file a secret
    #[arg(long, env = "CALLBOOK_SECRETS_DIR")]
    secrets_dir: Option<PathBuf>,
    /// NAME=origin of the secrets, comma-separated
    #[arg(long, env = "CALLBOOK_SECRET_ORIGINS")]
    secret_origins: Option<String>,
    /// Whether anonymous callers may read: public or private [default: public on loopback]
    #[arg(long, env = "CALLBOOK_CATALOGUE")]
    catalogue: Option<String>,
    /// Commit rows that read after their call: on or off [default: off]
    #[arg(long, env = "CALLBOOK_READ_MODE")]
    read_mode: Option<String>,
    /// This deployment's name in the audience of tokens [default: callbook]
    #[arg(long, env = "CALLBOOK_AUDIENCE")]
    audience: Option<String>,
    /// This deployment's name as the issuer of tokens [default: callbook]
    #[arg(long, env = "CALLBOOK_TOKEN_ISSUER")]
    token_issuer: Option<String>,
    /// Longest life of a token, in seconds [default: 604800]
    #[arg(long, env = "CALLBOOK_TOKEN_MAX_SECONDS")]
    token_max_seconds: Option<String>,
    /// Zone of the function `now` [default: UTC]
    #[arg(long, env = "CALLBOOK_TIMEZONE")]
    timezone: Option<String>,
    /// Days after which payloads are erased, 0 keeps them [default: 30]
    #[arg(long, env = "CALLBOOK_RETENTION_DAYS")]
    retention_days: Option<String>,
    /// Certificate chain for TLS between services, PEM
    #[arg(long, env = "CALLBOOK_TLS_CERT")]
    tls_cert: Option<PathBuf>,
    /// Private key for TLS between services, PEM
    #[arg(long, env = "CALLBOOK_TLS_KEY")]
    tls_key: Option<PathBuf>,
    /// Authority of the other services' certificates, PEM
    #[arg(long, env = "CALLBOOK_TLS_CA")]
    tls_ca: Option<PathBuf>,
}

impl Flags {
    /// Reads the file and lays the flags over it. `behind_gateway` says that this process has no gateway of its own.
    pub fn settings(self, behind_gateway: bool) -> Result<Settings, SettingsError> {
        // keys are environment variables only: a flag would be seen by everybody who lists processes
        let variable = |name: &str| std::env::var(name).ok();
        Settings::load(Overrides {
            config: self.config,
            http: self.http,
            grpc: self.grpc,
            admin: self.admin,
            database_url: self.database_url,
            data_dir: self.data_dir,
            pg_bin: self.pg_bin,
            resolver: self.resolver,
            contract: self.contract,
            gate: self.gate,
            executors: self.executors,
            pools: self.pools,
            owner_key: variable("CALLBOOK_OWNER_KEY"),
            internal_key: variable("CALLBOOK_INTERNAL_KEY"),
            issuer_key: variable("CALLBOOK_ISSUER_KEY"),
            allow_origins: self.allow_origins,
            secrets_dir: self.secrets_dir,
            secret_origins: self.secret_origins,
            catalogue: self.catalogue,
            behind_gateway,
            read_mode: self.read_mode,
            audience: self.audience,
            token_issuer: self.token_issuer,
            token_max_seconds: self.token_max_seconds,
            timezone: self.timezone,
            retention_days: self.retention_days,
            tls_cert: self.tls_cert,
            tls_key: self.tls_key,
            tls_ca: self.tls_ca,
            ..Overrides::default()
        })
    }
}
