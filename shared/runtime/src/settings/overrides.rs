//! What the command line and the environment say.

use std::path::PathBuf;

/// The flags and variables, as they were typed. Absent and empty both mean: not set. The binary fills it with clap;
/// every field `x` without another note is the variable `CALLBOOK_X`.
#[derive(Clone, Default)]
pub struct Overrides {
    /// The settings file. Absent: `callbook.toml` in the data directory, where there is one.
    pub config: Option<PathBuf>,
    /// host:port
    pub http: Option<String>,
    /// host:port
    pub grpc: Option<String>,
    /// host:port
    pub admin: Option<String>,
    /// `DATABASE_URL`
    pub database_url: Option<String>,
    /// A directory.
    pub data_dir: Option<PathBuf>,
    /// A directory with `initdb` and `postgres`.
    pub pg_bin: Option<PathBuf>,
    /// Addresses, comma-separated.
    pub resolver: Option<String>,
    /// Addresses, comma-separated.
    pub contract: Option<String>,
    /// Addresses, comma-separated.
    pub gate: Option<String>,
    /// `pool=address`, comma-separated.
    pub executors: Option<String>,
    /// Names, comma-separated.
    pub pools: Option<String>,
    /// At least 16 bytes.
    pub owner_key: Option<String>,
    /// At least 16 bytes.
    pub internal_key: Option<String>,
    /// A PKCS#8 PEM, or 32 bytes in base64url.
    pub issuer_key: Option<String>,
    /// Origins, comma-separated.
    pub allow_origins: Option<String>,
    /// A directory.
    pub secrets_dir: Option<PathBuf>,
    /// `NAME=origin`, comma-separated.
    pub secret_origins: Option<String>,
    /// `public` or `private`.
    pub catalogue: Option<String>,
    /// This process has no gateway: who reaches it, and from where, is another process's to say, so its `http` tells
    /// nothing about who may read.
    pub behind_gateway: bool,
    /// `on` or `off`.
    pub read_mode: Option<String>,
    /// `on` or `off`.
    pub js: Option<String>,
    /// A name.
    pub audience: Option<String>,
    /// A name.
    pub token_issuer: Option<String>,
    /// Seconds.
    pub token_max_seconds: Option<String>,
    /// A name of the IANA time zone database.
    pub timezone: Option<String>,
    /// Days.
    pub retention_days: Option<String>,
    /// A PEM file.
    pub tls_cert: Option<PathBuf>,
    /// A PEM file.
    pub tls_key: Option<PathBuf>,
    /// A PEM file.
    pub tls_ca: Option<PathBuf>,
}
