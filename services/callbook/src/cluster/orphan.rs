//! A server whose owner was killed. It was told to stop and may still be at it; two servers on one folder would ruin
//! it, so the next start waits.

use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How long the orphan gets for an orderly end, then for a hurried one.
const ORDERLY: Duration = Duration::from_secs(15);
const HURRIED: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// Waits until no process works in the cluster's folder. Call it with the lock held: whoever works there has no owner.
pub(super) fn settle(cluster: &Path) -> Result<()> {
    let start = Instant::now();
    let (mut asked, mut pressed) = (false, false);
    loop {
        let left = workers(cluster);
        if left.is_empty() {
            return forget(cluster);
        }
        if !asked {
            tracing::info!(pid = ?left, "waiting for the Postgres of a killed process to stop");
            asked = true;
            if let Some(pid) = postmaster(cluster).filter(|pid| left.contains(pid)) {
                let _ = kill_process(pid, Signal::INT);
            }
        } else if !pressed && start.elapsed() > ORDERLY {
            pressed = true;
            for pid in left {
                // Fails only where it has ended already.
                let _ = kill_process(pid, Signal::QUIT);
            }
        } else if start.elapsed() > HURRIED {
            bail!("the Postgres of a killed process does not stop; end process {}", left[0].as_raw_nonzero());
        }
        sleep(LOOK_EVERY);
    }
}

/// The first line of the server's pid file.
pub(super) fn postmaster(cluster: &Path) -> Option<Pid> {
    let text = std::fs::read_to_string(cluster.join("postmaster.pid")).ok()?;
    Pid::from_raw(text.lines().next()?.trim().parse().ok()?)
}

/// Every process of a server stands in the cluster's folder.
#[cfg(target_os = "linux")]
fn workers(cluster: &Path) -> Vec<Pid> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let working = processes.filter_map(|entry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stands = std::fs::read_link(entry.path().join("cwd")).ok()?;
        (stands == cluster).then(|| Pid::from_raw(pid)).flatten()
    });
    working.collect()
}

/// Without `/proc` the pid file is all there is; the command line says whether the number is still the server's.
#[cfg(not(target_os = "linux"))]
fn workers(cluster: &Path) -> Vec<Pid> {
    let Some(pid) = postmaster(cluster) else { return Vec::new() };
    let number = pid.as_raw_nonzero().to_string();
    let answer = std::process::Command::new("ps").args(["-o", "command=", "-p", &number]).output();
    let is_server =
        answer.is_ok_and(|answer| String::from_utf8_lossy(&answer.stdout).contains(&*cluster.to_string_lossy()));
    if is_server { vec![pid] } else { Vec::new() }
}

/// In a container numbers come back: when the pid of the dead server is now another program's, Postgres would take
/// that for the server and refuse to start. Only where we have seen that no process works in the folder; a pid that
/// is free is left to Postgres, which also looks at its shared memory.
fn forget(cluster: &Path) -> Result<()> {
    let taken = postmaster(cluster).is_some_and(|pid| test_kill_process(pid).is_ok());
    if cfg!(target_os = "linux") && taken {
        std::fs::remove_file(cluster.join("postmaster.pid"))?;
    }
    Ok(())
}
