//! The folders of a cluster: who may enter them and how long their names may be.

use std::fs::{DirBuilder, Permissions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use data_encoding::HEXLOWER;

use super::account::Account;
use super::lock;
use super::server::PORT;

/// The longest path of a unix socket, in bytes, on every system that we know.
const LONGEST_SOCKET: usize = 103;
/// How throw-away folders begin.
const TEMPORARY: &str = "callbook-dev-";
/// How much older than a new throw-away folder an abandoned one is.
const ABANDONED: Duration = Duration::from_secs(60);

/// Makes the data directory where it is missing and gives its one true path.
pub(super) fn data_dir(path: &Path) -> Result<PathBuf> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
    made.with_context(|| format!("the data directory {} cannot be made", path.display()))?;
    path.canonicalize().with_context(|| format!("the data directory {} cannot be read", path.display()))
}

/// Lets another user pass through the data directory to the cluster in it; what else is in it has its own rights.
pub(super) fn let_pass(data_dir: &Path, account: &Account) -> Result<()> {
    let about = std::fs::metadata(data_dir)?;
    if !passes(&about, account) {
        std::fs::set_permissions(data_dir, Permissions::from_mode(about.mode() & 0o7777 | 0o011))?;
    }
    for folder in data_dir.ancestors().skip(1) {
        if !passes(&std::fs::metadata(folder)?, account) {
            bail!(
                "Postgres runs as `{}`, which cannot pass through {} to {}; choose another data directory (`--data-dir`)",
                account.name,
                folder.display(),
                data_dir.display()
            );
        }
    }
    Ok(())
}

fn passes(folder: &std::fs::Metadata, account: &Account) -> bool {
    let right = match (folder.uid() == account.uid, folder.gid() == account.gid) {
        (true, _) => 0o100,
        (false, true) => 0o010,
        (false, false) => 0o001,
    };
    folder.mode() & right != 0
}

/// The folder of the socket, removed at the end: short, because a socket's path has a bound; outside of the data
/// directory, because that may be anywhere; and nobody else's, because whoever can enter it may do everything in the
/// database.
#[derive(Debug)]
pub(super) struct Sockets(PathBuf);

impl Sockets {
    /// Makes the folder, or takes the one that a killed process left. Call it with the lock held.
    pub(super) fn claim(data_dir: &Path, account: Option<&Account>) -> Result<Self> {
        let mut hasher = DefaultHasher::new();
        data_dir.hash(&mut hasher);
        let name = format!("callbook-{:016x}", hasher.finish());
        let bases = bases(account.is_some()).into_iter().map(|base| base.join(&name));
        let fits = |folder: &PathBuf| folder.join(format!(".s.PGSQL.{PORT}")).as_os_str().len() <= LONGEST_SOCKET;
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for folder in bases.filter(fits) {
            match make(&folder, account) {
                Ok(()) => {
                    check(&folder, account.map_or_else(|| rustix::process::geteuid().as_raw(), |account| account.uid))?;
                    clear(&folder)?;
                    return Ok(Sockets(folder));
                }
                Err(error) => last = error,
            }
        }
        Err(last).context("no folder for the socket of Postgres can be made")
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Sockets {
    fn drop(&mut self) {
        // Empty now; if it is not, the next start clears it.
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// Root's runtime folder is closed to the server's user, but `/run` itself is root's.
fn bases(root: bool) -> Vec<PathBuf> {
    let runtime = match root {
        true => Some(PathBuf::from("/run")),
        false => std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from),
    };
    let runtime = runtime.filter(|folder| folder.is_absolute() && folder.is_dir() && folder.to_str().is_some());
    runtime.into_iter().chain([PathBuf::from("/tmp")]).collect()
}

fn make(folder: &Path, account: Option<&Account>) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => account.map_or(Ok(()), |account| chown(folder, Some(account.uid), Some(account.gid))),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// In `/tmp` anybody can be first.
fn check(folder: &Path, owner: u32) -> Result<()> {
    let about = std::fs::symlink_metadata(folder)?;
    if !about.is_dir() || about.uid() != owner || about.mode() & 0o077 != 0 {
        bail!("{} is not a folder that only Callbook's Postgres can enter; remove it", folder.display());
    }
    Ok(())
}

/// Sockets of a server that was killed. Nobody listens on them: we hold the lock and no server is left. Nothing else
/// is removed, whatever the folder has become.
fn clear(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_str().is_some_and(|name| name.starts_with(".s.PGSQL.")) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// 12 characters that nobody else has.
pub(super) fn random_name() -> io::Result<String> {
    let mut random = [0; 6];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(HEXLOWER.encode(&random))
}

/// A folder that is removed at the end.
#[derive(Debug)]
pub(super) struct Temporary(PathBuf);

impl Temporary {
    /// Makes one, and removes those that killed processes left.
    pub(super) fn create() -> io::Result<Self> {
        let parent = Path::new("/tmp");
        let path = parent.join(format!("{TEMPORARY}{}", random_name()?));
        DirBuilder::new().mode(0o700).create(&path)?;
        let folder = Temporary(path);
        // A folder that cannot be removed is no reason not to work.
        let _ = folder.sweep(parent);
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    fn sweep(&self, parent: &Path) -> io::Result<()> {
        let own = std::fs::metadata(&self.0)?;
        for entry in std::fs::read_dir(parent)?.flatten() {
            let Ok(about) = entry.metadata() else { continue };
            let named = entry.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY));
            let ours = named && about.is_dir() && about.uid() == own.uid();
            let age = own.modified()?.duration_since(about.modified()?).unwrap_or_default();
            if ours && age > ABANDONED && lock::is_free(&entry.path()) {
                let _ = std::fs::remove_dir_all(entry.path());
            }
        }
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::warn!(folder = %self.0.display(), %error, "a throw-away folder stays behind");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_socket_folder_of_somebody_else_is_refused() {
        let home = Temporary::create().unwrap();
        let me = rustix::process::geteuid().as_raw();
        let (open, link) = (home.path().join("open"), home.path().join("link"));
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(&open, &link).unwrap();
        assert!(check(&open, me).is_err(), "others can enter");
        assert!(check(&link, me).is_err(), "a link");
        std::fs::set_permissions(&open, Permissions::from_mode(0o700)).unwrap();
        assert!(check(&open, me + 1).is_err(), "of another owner");
        assert!(check(&open, me).is_ok());
        assert!(check(&link, me).is_err(), "a link to a good folder");
    }

    #[test]
    fn the_path_of_a_socket_is_short_however_deep_the_data_is() {
        let deep = Path::new("/").join("very-long-name/".repeat(40));
        let account = Account::choose(Path::new("/nowhere")).unwrap();
        let sockets = Sockets::claim(&deep, account.as_ref()).unwrap();
        assert!(sockets.path().as_os_str().len() < 80);
    }

    #[test]
    fn what_a_killed_process_left_is_swept_and_what_lives_is_not() {
        let home = Temporary::create().unwrap();
        let old = std::fs::FileTimes::new();
        let stamp = std::fs::metadata(home.path()).unwrap().modified().unwrap() - Duration::from_secs(3600);
        let make = |name: &str| {
            let folder = home.path().join(format!("{TEMPORARY}{name}"));
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("lock"), "").unwrap();
            std::fs::File::open(&folder).unwrap().set_times(old.set_modified(stamp)).unwrap();
            folder
        };
        let (dead, alive) = (make("dead"), make("alive"));
        let held = lock::Lock::take(&alive).unwrap();
        home.sweep(home.path()).unwrap();
        assert!(!dead.exists() && alive.exists());
        drop(held);
    }
}
