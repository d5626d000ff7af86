//! One run of the server: start, wait until it takes connections, stop.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::child::command;
use super::{Durability, Plan};

/// The number in the socket's name; no port is opened.
pub(super) const PORT: u16 = 5432;
/// A crashed server first repeats what it had committed, at most about a gigabyte of it.
const START_WITHIN: Duration = Duration::from_secs(300);
/// How long connections get to end, then how long the server gets to end without order.
const FAST_STOP: Duration = Duration::from_secs(20);
const HARD_STOP: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The size at which a start begins a new log, in bytes.
const LOG_BYTES: u64 = 16 * 1024 * 1024;

/// What every server is told. Statements and details stay out of the log: they hold what callers sent.
const SETTINGS: &[&str] = &[
    "listen_addresses=",
    "unix_socket_permissions=0700",
    "shared_buffers=128MB",
    "max_connections=200",
    "wal_compression=on",
    "jit=off",
    "log_checkpoints=off",
    "log_min_error_statement=panic",
    "log_error_verbosity=terse",
    "log_line_prefix=%m [%p] ",
    "log_timezone=UTC",
];
const DURABLE: &[&str] = &["fsync=on", "synchronous_commit=on", "full_page_writes=on"];
const THROW_AWAY: &[&str] = &["fsync=off", "synchronous_commit=off", "full_page_writes=off"];

/// A server that takes connections.
#[derive(Debug)]
pub(super) struct Server {
    child: Child,
}

impl Server {
    /// Starts the server and waits until it takes connections. It ends with the calling thread.
    pub(super) fn start(plan: &Plan) -> Result<Self> {
        let program = &plan.programs.postgres;
        let log = log(plan).with_context(|| format!("{} cannot be written", plan.log.display()))?;
        let mut postgres = command(program, plan.account.as_ref());
        postgres.arg("-D").arg(&plan.cluster);
        let durability = match plan.durability {
            Durability::Durable => DURABLE,
            Durability::ThrowAway => THROW_AWAY,
        };
        for setting in SETTINGS.iter().chain(durability) {
            postgres.args(["-c", setting]);
        }
        postgres.arg("-c").arg(format!("port={PORT}"));
        postgres.arg("-c").arg(format!("unix_socket_directories={}", plan.sockets.display()));
        postgres.stdout(log.try_clone()?).stderr(log);
        let child = postgres.spawn().with_context(|| format!("{} cannot be started", program.display()))?;
        let mut server = Server { child };
        server.wait(plan)?;
        Ok(server)
    }

    /// How it ended, if it did.
    pub(super) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    fn wait(&mut self, plan: &Plan) -> Result<()> {
        let start = Instant::now();
        while !self.is_ready(plan) {
            if let Some(status) = self.ended() {
                bail!("Postgres did not start ({status}): {}", last_words(plan));
            }
            if start.elapsed() > START_WITHIN {
                bail!("Postgres did not start within {} s; see {}", START_WITHIN.as_secs(), plan.log.display());
            }
            sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Line 8 of the pid file; the first line says whose word it is.
    fn is_ready(&self, plan: &Plan) -> bool {
        let text = std::fs::read_to_string(plan.cluster.join("postmaster.pid")).unwrap_or_default();
        let mut lines = text.lines();
        let ours = lines.next().and_then(|pid| pid.trim().parse().ok()) == Some(self.child.id());
        ours && lines.nth(6).is_some_and(|word| word.trim() == "ready")
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            // Fails only where it has ended already.
            let _ = kill_process(pid, signal);
        }
    }

    fn ends_within(&mut self, patience: Duration) -> bool {
        let start = Instant::now();
        while self.ended().is_none() {
            if start.elapsed() > patience {
                return false;
            }
            sleep(LOOK_EVERY);
        }
        true
    }
}

/// Stops it: with order, then without; the last resort leaves the rest to the next start.
impl Drop for Server {
    fn drop(&mut self) {
        for (signal, patience) in [(Signal::INT, FAST_STOP), (Signal::QUIT, HARD_STOP), (Signal::KILL, HARD_STOP)] {
            if self.ended().is_some() {
                return;
            }
            self.signal(signal);
            if self.ends_within(patience) {
                return;
            }
            tracing::warn!(?signal, "Postgres does not stop");
        }
    }
}

fn log(plan: &Plan) -> io::Result<File> {
    if std::fs::metadata(&plan.log).is_ok_and(|about| about.len() > LOG_BYTES) {
        std::fs::rename(&plan.log, plan.log.with_extension("log.1"))?;
    }
    OpenOptions::new().append(true).create(true).mode(0o600).open(&plan.log)
}

/// The last line that says why.
fn last_words(plan: &Plan) -> String {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(&plan.log)?;
        let end = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(end.saturating_sub(4096)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let text = String::from_utf8_lossy(&read().unwrap_or_default()).into_owned();
    let fatal = text.lines().rev().find(|line| line.contains("FATAL") || line.contains("PANIC"));
    fatal.or_else(|| text.lines().last()).unwrap_or("it said nothing").to_owned()
}
