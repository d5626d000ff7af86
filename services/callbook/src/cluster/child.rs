//! Starting a program of Postgres so that it sees nothing of ours and ends with us.

use std::path::Path;
use std::process::{Command, Stdio};

use super::account::Account;

/// A command with a clean environment, in its own process group (Ctrl-C in a terminal is for us: we drain first, then
/// stop the server), as the given user, that is told to stop when the thread that starts it ends.
pub(super) fn command(program: &Path, account: Option<&Account>) -> Command {
    use std::os::unix::process::CommandExt;
    let mut command = Command::new(program);
    command.env_clear().env("LC_ALL", "C.UTF-8").env("TZ", "UTC").current_dir("/");
    command.stdin(Stdio::null()).process_group(0);
    if let Some(account) = account {
        // std drops root's other groups too when it leaves root.
        command.uid(account.uid).gid(account.gid);
    }
    end_with_us(&mut command);
    command
}

/// The kernel sends SIGINT, Postgres' fast shutdown, when the thread that forked ends, even by kill -9.
#[cfg(target_os = "linux")]
#[allow(unsafe_code)]
fn end_with_us(command: &mut Command) {
    use std::io;
    use std::os::unix::process::CommandExt;

    use rustix::io::Errno;
    use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};

    let us = getpid();
    let ask = move || -> io::Result<()> {
        set_parent_process_death_signal(Some(Signal::INT))?;
        // We may have died before the child asked; nobody would tell it then.
        if getppid() == Some(us) { Ok(()) } else { Err(Errno::SRCH.into()) }
    };
    // SAFETY: `ask` runs in the child between fork and exec, where only async-signal-safe calls are sound: it makes
    // two system calls, prctl and getppid, without libc's state, allocates nothing and takes no lock. std runs it
    // after the change of user, which would have cleared the signal.
    unsafe {
        command.pre_exec(ask);
    }
}

/// Other systems have no such signal: a server that outlives us is stopped at the next start.
#[cfg(not(target_os = "linux"))]
fn end_with_us(_command: &mut Command) {}
