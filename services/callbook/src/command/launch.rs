//! `callbook launch`: what the function `exec` starts in a process of its own. It limits itself, stops being root and
//! becomes the program, so that not one instruction of the program runs without its limits.

use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use clap::Args;
use rustix::process::{Resource, Rlimit, setrlimit};

/// Processes and threads of the user at the same time.
const PROCESSES: u64 = 128;
/// Memory of one process, in bytes.
const MEMORY: u64 = 2 << 30;
/// The largest file that is written, in bytes.
const FILE: u64 = 64 << 20;
/// Open files of one process.
const OPEN_FILES: u64 = 256;

#[derive(Debug, Args)]
pub struct Launch {
    /// Whose process it becomes; not root
    #[arg(long)]
    uid: u32,
    #[arg(long)]
    gid: u32,
    /// Seconds of processor time
    #[arg(long)]
    seconds: u64,
    /// The program and its arguments
    #[arg(required = true, last = true)]
    argv: Vec<String>,
}

impl Launch {
    /// Gives no answer where it succeeds: by then it is another program.
    pub fn run(self) -> Result<ExitCode> {
        if self.uid == 0 || self.gid == 0 {
            bail!("a program is not launched as root");
        }
        for (resource, most) in [
            (Resource::Cpu, self.seconds),
            (Resource::Core, 0),
            (Resource::Nproc, PROCESSES),
            (Resource::Data, MEMORY),
            (Resource::Fsize, FILE),
            (Resource::Nofile, OPEN_FILES),
        ] {
            setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
                .with_context(|| format!("the limit {resource:?} cannot be set"))?;
        }
        // a program of root's with the set-user-id bit must not lead back
        #[cfg(target_os = "linux")]
        rustix::thread::set_no_new_privs(true).context("new privileges cannot be given up")?;
        let (program, words) = self.argv.split_first().context("name a program after --")?;
        let error = Command::new(program).args(words).uid(self.uid).gid(self.gid).exec();
        Err(error).with_context(|| format!("{program} cannot be started"))
    }
}
