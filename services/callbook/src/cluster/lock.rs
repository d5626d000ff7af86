//! One process at a time in a data directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The lock on a data directory. The kernel gives it back when the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Lock {
    /// Takes `<data-dir>/lock` or says who has it.
    pub(super) fn take(data_dir: &Path) -> Result<Self> {
        let path = data_dir.join("lock");
        let file = open(&path).with_context(|| format!("{} cannot be opened", path.display()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => bail!(
                "another Callbook{} uses {}; stop it, or choose another data directory (`--data-dir`)",
                holder(file),
                data_dir.display()
            ),
            Err(TryLockError::Error(error)) => {
                return Err(error).with_context(|| format!("{} cannot be locked", path.display()));
            }
        }
        let mut lock = Lock(file);
        lock.sign().with_context(|| format!("{} cannot be written", path.display()))?;
        Ok(lock)
    }

    /// For the sentence that a second process gives.
    fn sign(&mut self) -> std::io::Result<()> {
        self.0.set_len(0)?;
        self.0.rewind()?;
        writeln!(self.0, "{}", std::process::id())
    }
}

/// Whether nobody holds the lock of this directory; false where there is no lock.
pub(super) fn is_free(data_dir: &Path) -> bool {
    OpenOptions::new().read(true).open(data_dir.join("lock")).is_ok_and(|file| file.try_lock().is_ok())
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

fn holder(mut file: File) -> String {
    let mut pid = String::new();
    let _ = file.read_to_string(&mut pid);
    match pid.trim() {
        "" => String::new(),
        pid => format!(" (process {pid})"),
    }
}
