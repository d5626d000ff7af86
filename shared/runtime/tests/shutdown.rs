//! Signals, in a process of their own.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// Runs only inside of the test below: signals are for a whole process.
#[tokio::test]
#[ignore = "is the child process of the other test"]
async fn child() {
    let token = callbook_runtime::shutdown::on_signal().unwrap();
    std::fs::write(std::env::var("READY").unwrap(), "").unwrap();
    token.cancelled().await;
    std::fs::write(std::env::var("STOPPING").unwrap(), "").unwrap();
    std::future::pending::<()>().await;
}

fn signal(child: &Child, name: &str) {
    Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
}

fn appears(path: &std::path::Path) -> bool {
    (0..500).any(|_| {
        sleep(Duration::from_millis(20));
        path.exists()
    })
}

#[test]
fn the_first_signal_stops_and_the_second_ends_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (ready, stopping) = (dir.path().join("ready"), dir.path().join("stopping"));
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "child", "--ignored"]).env("READY", &ready).env("STOPPING", &stopping);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    assert!(appears(&ready));
    signal(&child, "-TERM");
    assert!(appears(&stopping));
    assert_eq!(child.try_wait().unwrap(), None, "it may still drain");
    signal(&child, "-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}
