//! A program with everything that it starts: one process group with a folder of its own, and its end.

use std::io;
use std::os::unix::fs::chown;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use super::streams::{feed, keep, sift};
use super::{Bounds, Written};
use crate::config::Exec;

/// The most bytes of complaints that are kept.
const MAX_ERRORS: usize = 16 * 1024;
/// How long what was written before the end may take to be read. Only a process that left the group can hold a pipe
/// open for longer.
const SETTLE: Duration = Duration::from_millis(100);

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// By itself, with this status.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// Killed, because its time was over.
    TooLate,
    /// Killed, because it wrote more than is kept.
    TooLarge,
    /// Nobody could say.
    Lost,
}

/// The processes, killed when this goes.
pub(super) struct Group {
    child: Child,
    leader: Option<Pid>,
    folder: Option<TempDir>,
}

impl Group {
    /// Starts the program as the configured user, in an empty folder of its own. The launcher, which is Callbook's own
    /// binary, sets the limits, gives up root and becomes the program.
    pub(super) async fn start(setting: &Exec, program: &Path, words: &[String], bounds: &Bounds) -> io::Result<Group> {
        let (uid, gid) = (setting.uid, setting.gid);
        let folder = tokio::task::spawn_blocking(move || own_folder(uid, gid)).await.map_err(io::Error::other)??;
        let child = Command::new(&setting.launcher)
            .arg("launch")
            .args(["--uid", &uid.to_string(), "--gid", &gid.to_string()])
            .args(["--seconds", &(bounds.time.as_secs() + 1).to_string()])
            .arg("--")
            .arg(program)
            .args(words)
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("LANG", "C.UTF-8")
            .env("HOME", folder.path())
            .env("TMPDIR", folder.path())
            .current_dir(folder.path())
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let leader = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        Ok(Group { child, leader, folder: Some(folder) })
    }

    /// Runs it to its end, within bounds. Whatever it left running in its group ends with it.
    pub(super) async fn run(mut self, input: Vec<u8>, bounds: &Bounds) -> (Ended, Written) {
        let mut written = Written::default();
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take())
        else {
            return (Ended::Lost, written);
        };
        let killed = {
            let output = keep(stdout, &mut written.output, bounds.bytes);
            let others = async {
                tokio::join!(sift(stderr, &mut written.errors, MAX_ERRORS), feed(stdin, &input));
            };
            tokio::pin!(output, others);
            let mut leader = std::pin::pin!(ended(self.leader));
            let mut time = std::pin::pin!(tokio::time::sleep(bounds.time));
            let (mut read, mut heard) = (None, false);
            let mut killed = loop {
                tokio::select! {
                    too_large = &mut output, if read.is_none() => {
                        read = Some(too_large);
                        if too_large {
                            break Some(Ended::TooLarge);
                        }
                    }
                    () = &mut others, if !heard => heard = true,
                    () = &mut leader => break None,
                    () = &mut time => break Some(Ended::TooLate),
                }
            };
            self.kill();
            let settle = async {
                if read.is_none() && output.await && killed.is_none() {
                    killed = Some(Ended::TooLarge);
                }
                if !heard {
                    others.await;
                }
            };
            let _ = tokio::time::timeout(SETTLE, settle).await;
            killed
        };
        written.output.truncate(bounds.bytes);
        let status = self.child.wait().await.ok();
        let own = status.and_then(|status| status.code().map(Ended::Code).or(status.signal().map(Ended::Signal)));
        (killed.or(own).unwrap_or(Ended::Lost), written)
    }

    fn kill(&self) {
        if let Some(leader) = self.leader {
            let _ = kill_process_group(leader, Signal::KILL); // nobody may be left
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // once the leader has been waited for, its number may be somebody else's
        if self.child.id().is_some() {
            self.kill();
        }
        if let (Some(folder), Ok(runtime)) = (self.folder.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn_blocking(move || drop(folder));
        }
    }
}

/// Waits for the end of a process and leaves it to be waited for, so that its number and its group's stay its own.
async fn ended(leader: Option<Pid>) {
    let Some(leader) = leader else { return };
    let waiting = move || waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    let _ = tokio::task::spawn_blocking(waiting).await; // without an answer there is nobody to wait for
}

/// An empty folder that only this user enters.
fn own_folder(uid: u32, gid: u32) -> io::Result<TempDir> {
    let folder = tempfile::Builder::new().prefix("callbook-exec-").tempdir()?;
    chown(folder.path(), Some(uid), Some(gid))?;
    Ok(folder)
}
