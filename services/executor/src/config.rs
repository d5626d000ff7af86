//! Every setting of the executor, with unit and default.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

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
    /// Whether rows that read may be committed after their call. Default off.
    pub read_mode: bool,
    /// Databases that `sql_query` may read, by name.
    pub databases: BTreeMap<String, Database>,
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

impl Default for Config {
    fn default() -> Self {
        Config {
            pools: vec!["default".into()],
            address: String::new(),
            timezone: jiff::tz::TimeZone::UTC,
            in_flight: 1_024,
            read_mode: false,
            databases: BTreeMap::new(),
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
