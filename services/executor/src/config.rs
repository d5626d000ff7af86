//! Every setting of the executor, with unit and default.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use callbook_domain::agent::CallForm;
use callbook_domain::row::DEFAULT_POOL;
use secrecy::SecretString;
use url::Url;

/// What the executor is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// Pools that it serves. Default `default`.
    pub pools: Vec<String>,
    /// Where others reach it, for the table of executors.
    pub address: String,
    /// The zone in which `now` answers. Default UTC.
    pub timezone: jiff::tz::TimeZone,
    /// Invocations at the same time; 0 is no limit. Default 1,024.
    pub in_flight: usize,
    /// Calls to one upstream at the same time; 0 is no limit. Default 256.
    pub per_origin: usize,
    /// Whether rows that read may be committed after their call. Default off.
    pub read_mode: bool,
    /// Databases that `sql_query` may read, by name.
    pub databases: BTreeMap<String, Database>,
    /// What `exec` may start. Default nothing.
    pub exec: Option<Exec>,
    /// The providers of models, by name. Default none.
    pub providers: BTreeMap<String, Provider>,
    /// After how many days payloads are erased; 0 keeps them. Default 30.
    pub retention_days: u32,
}

/// A database for `sql_query`.
#[derive(Clone, Debug)]
pub struct Database {
    /// Its URL, password included.
    pub url: SecretString,
    /// Most rows of an answer.
    pub max_rows: u32,
    /// Longest query.
    pub timeout: Duration,
}

/// What `exec` may start, and as whom.
#[derive(Clone, Debug)]
pub struct Exec {
    /// Absolute paths.
    pub programs: Vec<PathBuf>,
    /// Callbook's own binary, which becomes the program by `launch`.
    pub launcher: PathBuf,
    /// The user of the programs; not root, and not Callbook's own.
    pub uid: u32,
    /// The group of the programs; not root's.
    pub gid: u32,
    /// Longest run.
    pub timeout: Duration,
    /// Most bytes of output.
    pub max_output_bytes: usize,
}

/// A provider of models.
#[derive(Clone, Debug, PartialEq)]
pub struct Provider {
    /// Where its API starts.
    pub base_url: Url,
    /// What it speaks.
    pub form: WireForm,
    /// The name of its secret; absent: none is sent.
    pub secret: Option<String>,
    /// Model ids that lead to it; a `*` at the end stands for anything.
    pub models: Vec<String>,
    /// Prices by model id or pattern.
    pub prices: BTreeMap<String, Price>,
    /// How its models call functions, where a row says nothing else.
    pub calls: CallForm,
}

/// How a provider is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireForm {
    /// `POST /chat/completions`
    OpenaiChat,
    /// `POST /messages`
    AnthropicMessages,
}

/// What a model costs, in US dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Price {
    /// Tokens that go in.
    pub input: f64,
    /// Tokens that come out.
    pub output: f64,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            pools: vec![DEFAULT_POOL.into()],
            address: String::new(),
            timezone: jiff::tz::TimeZone::UTC,
            in_flight: 1_024,
            per_origin: 256,
            read_mode: false,
            databases: BTreeMap::new(),
            exec: None,
            providers: BTreeMap::new(),
            retention_days: 30,
        }
    }
}

/// The deadline of a call that names none.
pub const DEFAULT_DEADLINE: Duration = Duration::from_secs(30);
/// The longest deadline.
pub const MAX_DEADLINE: Duration = Duration::from_secs(600);
/// Less time than this is not worth a commit.
pub const MIN_DEADLINE: Duration = Duration::from_millis(20);
/// How long after its deadline a call is still its executor's.
pub const LEASE_AFTER_DEADLINE: Duration = Duration::from_secs(10);
/// The largest response after decoding, where the row names none, in bytes.
pub const MAX_RESPONSE: usize = 4 * 1024 * 1024;
