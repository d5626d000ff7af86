//! The private Postgres: what `callbook up` uses when no database was named, and `callbook dev-db` lends to a command.
//!
//! It listens on a unix socket in a folder that nobody else can enter, and on no port. It ends with the process that
//! started it, however that process ends. A server that dies alone is started again.

mod account;
mod child;
mod database;
mod folder;
mod initdb;
mod keeper;
mod lock;
mod orphan;
mod program;
mod server;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

pub(crate) use account::Account;
pub use database::ensure_database;
use folder::Sockets;
use keeper::Keeper;
use lock::Lock;
use program::Programs;

/// The role that owns the cluster; it may do everything in it.
pub const OWNER: &str = "callbook_owner";
/// The database that Callbook uses.
pub const DATABASE: &str = "callbook";

/// What a crash of the machine may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durability {
    /// Nothing that was committed.
    Durable,
    /// Everything: for data that is thrown away at the end.
    ThrowAway,
}

/// A running private Postgres. Dropping it stops the server and waits until it has stopped.
pub struct Cluster {
    // Dropped in this order: the server ends, its socket goes, then the data may be somebody else's, or is removed.
    _keeper: Keeper,
    sockets: Sockets,
    _lock: Lock,
    _folder: Option<folder::Temporary>,
}

/// Where everything of one cluster is and how it runs.
#[derive(Debug)]
struct Plan {
    /// The cluster's own folder, `<data-dir>/postgres`.
    cluster: PathBuf,
    /// The folder of the unix socket.
    sockets: PathBuf,
    /// What the server writes to stderr.
    log: PathBuf,
    /// Who runs it; absent: we do.
    account: Option<Account>,
    programs: Programs,
    durability: Durability,
}

impl Cluster {
    /// Starts the Postgres of a data directory, making it at the first start (about a second; later starts take
    /// 50 ms). `pg_bin` is the setting of that name. May be called from any thread.
    ///
    /// # Errors
    /// One sentence: no Postgres 15 or newer on this machine and what to install, another process that uses the
    /// directory, a directory that cannot be used, or the last line that the server wrote.
    pub fn start(data_dir: &Path, pg_bin: Option<&Path>) -> Result<Self> {
        Self::run(data_dir, pg_bin, Durability::Durable, None)
    }

    /// Starts an empty Postgres whose data is removed at the end and not safe before.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub fn throwaway(pg_bin: Option<&Path>) -> Result<Self> {
        let folder = folder::Temporary::create().context("no folder for the throw-away Postgres")?;
        let data_dir = folder.path().to_owned();
        Self::run(&data_dir, pg_bin, Durability::ThrowAway, Some(folder))
    }

    /// The address of a database in this cluster, as sqlx takes it.
    pub fn url(&self, database: &str) -> String {
        let folder = utf8_percent_encode(self.sockets.path().to_str().unwrap_or_default(), NON_ALPHANUMERIC);
        format!("postgres://{OWNER}@{folder}:{}/{database}", server::PORT)
    }

    fn run(
        data_dir: &Path,
        pg_bin: Option<&Path>,
        durability: Durability,
        temporary: Option<folder::Temporary>,
    ) -> Result<Self> {
        let data_dir = folder::data_dir(data_dir)?;
        let lock = Lock::take(&data_dir)?;
        let cluster = data_dir.join("postgres");
        let programs = Programs::find(pg_bin, initdb::version(&cluster))?;
        let account = Account::choose(&cluster)?;
        if let Some(account) = &account {
            folder::let_pass(&data_dir, account)?;
        }
        orphan::settle(&cluster)?;
        let sockets = Sockets::claim(&data_dir, account.as_ref())?;
        let log = data_dir.join("postgres.log");
        let plan = Arc::new(Plan { cluster, sockets: sockets.path().to_owned(), log, account, programs, durability });
        initdb::ensure(&plan)?;
        Ok(Cluster { _keeper: Keeper::start(plan)?, sockets, _lock: lock, _folder: temporary })
    }
}
