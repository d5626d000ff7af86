//! `callbook.toml` as it is written. An unknown name is refused, so that a misspelt setting is never silently unused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use callbook_domain::caller::Grant;
use serde::Deserialize;

use super::error::SettingsError;

/// The whole file. Every field is optional; what it means is said at [`super::Settings`].
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct SettingsFile {
    pub(super) http: Option<String>,
    pub(super) grpc: Option<String>,
    pub(super) admin: Option<String>,
    pub(super) database_url: Option<String>,
    pub(super) data_dir: Option<PathBuf>,
    pub(super) pg_bin: Option<PathBuf>,
    pub(super) resolver: Option<Vec<String>>,
    pub(super) contract: Option<Vec<String>>,
    pub(super) gate: Option<Vec<String>>,
    pub(super) executors: Option<BTreeMap<String, Vec<String>>>,
    pub(super) pools: Option<Vec<String>>,
    pub(super) allow_origins: Option<Vec<String>>,
    pub(super) secrets: BTreeMap<String, SecretTable>,
    pub(super) secrets_dir: Option<PathBuf>,
    pub(super) catalogue: Option<String>,
    pub(super) read_mode: Option<bool>,
    pub(super) js: Option<bool>,
    pub(super) audience: Option<String>,
    pub(super) token_issuer: Option<String>,
    pub(super) token_max_seconds: Option<u32>,
    pub(super) timezone: Option<String>,
    pub(super) retention_days: Option<u32>,
    pub(super) limits: LimitsTable,
    pub(super) providers: BTreeMap<String, ProviderTable>,
    pub(super) databases: BTreeMap<String, DatabaseTable>,
    pub(super) exec: Option<ExecTable>,
    pub(super) issuers: BTreeMap<String, IssuerTable>,
    pub(super) public: BTreeMap<String, String>,
    pub(super) tls: TlsTable,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SecretTable {
    pub(super) origins: Vec<String>,
    #[serde(default)]
    pub(super) keys: Vec<String>,
    pub(super) value_file: Option<PathBuf>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LimitsTable {
    pub(super) anonymous_per_second: Option<u32>,
    pub(super) principal_per_second: Option<u32>,
    pub(super) concurrency: Option<u32>,
    pub(super) request_bytes: Option<u32>,
    pub(super) import_bytes: Option<u32>,
    pub(super) url_bytes: Option<u32>,
    pub(super) in_flight: Option<u32>,
    pub(super) per_origin: Option<u32>,
    pub(super) database_connections: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProviderTable {
    pub(super) base_url: String,
    pub(super) form: String,
    pub(super) secret: Option<String>,
    #[serde(default)]
    pub(super) models: Vec<String>,
    #[serde(default)]
    pub(super) prices: BTreeMap<String, PriceTable>,
    pub(super) calls: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceTable {
    pub(super) input: f64,
    pub(super) output: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatabaseTable {
    pub(super) url: String,
    pub(super) max_rows: Option<u32>,
    pub(super) timeout_ms: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecTable {
    pub(super) programs: Vec<PathBuf>,
    pub(super) user: String,
    pub(super) timeout_ms: Option<u32>,
    pub(super) max_output_bytes: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct IssuerTable {
    pub(super) issuer: String,
    pub(super) jwks_url: String,
    pub(super) audience: Option<String>,
    #[serde(default)]
    pub(super) scopes: BTreeMap<String, Vec<Grant>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TlsTable {
    pub(super) cert: Option<PathBuf>,
    pub(super) key: Option<PathBuf>,
    pub(super) ca: Option<PathBuf>,
}

impl SettingsFile {
    /// The file that was named, which must be there; else the one in the data directory, which may be missing.
    pub(super) fn find(named: Option<&Path>, data_dir: Option<&Path>) -> Result<Self, SettingsError> {
        let named = named.filter(|path| !path.as_os_str().is_empty());
        let Some(path) = named.map(Path::to_owned).or_else(|| Some(data_dir?.join("callbook.toml"))) else {
            return Ok(SettingsFile::default());
        };
        match std::fs::read_to_string(&path) {
            Ok(source) => Self::parse(&source).map_err(|problem| SettingsError::File { path, problem }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && named.is_none() => Ok(Self::default()),
            Err(error) => Err(SettingsError::File { path, problem: format!("cannot be read ({error})") }),
        }
    }

    /// The name and line of what is wrong, never its value: a value may be a password.
    pub(super) fn parse(source: &str) -> Result<Self, String> {
        toml::from_str(source).map_err(|error| {
            let Some(span) = error.span() else { return error.message().to_owned() };
            let before = source.get(..span.start).unwrap_or_default();
            let line = before.matches('\n').count();
            let name = source.lines().nth(line).and_then(|text| text.split('=').next()).unwrap_or_default().trim();
            format!("line {}, `{name}`: {}", line + 1, first_line(error.message()))
        })
    }
}

/// serde quotes the value that it did not expect; the part that says what was expected is enough.
fn first_line(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    match line.find(", expected ") {
        Some(at) if line.starts_with("invalid") => &line[at + 2..],
        _ => line,
    }
}
