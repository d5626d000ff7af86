//! The whole product from outside: a deployment on a fresh database, and an upstream that is a real HTTP server.
#![allow(clippy::unwrap_used, reason = "a harness that cannot go on should say where")]

pub mod book;
pub mod caller;
pub mod database;
pub mod door;
pub mod dump;
pub mod issuer;
pub mod mcp;
pub mod outside;
pub mod process;
pub mod provider;
pub mod spelling;
pub mod secrets;
pub mod token;
pub mod upstream;
pub mod world;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of third-party data, or nothing with a line that says so: `skipped` in the output is what CI looks for.
pub fn shared(path: &str) -> Option<PathBuf> {
    let root = std::env::var_os("CALLBOOK_SHARED").map(PathBuf::from);
    let root = root.unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../shared"));
    let found = root.join(path);
    if found.exists() {
        return Some(found);
    }
    skipped(&format!("{path} of the shared data is not here"));
    None
}

/// Whether a program of somebody else that a test needs starts with this argument. In CI it must; elsewhere the test says
/// that it is left out.
pub fn is_here(program: impl AsRef<OsStr>, argument: &str) -> bool {
    let program = program.as_ref();
    let found = Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success());
    let why = format!("{} does not start here", Path::new(program).file_name().unwrap_or(program).display());
    assert!(found || std::env::var_os("CI").is_none(), "{why}");
    if !found {
        skipped(&why);
    }
    found
}

/// Says that a test did not look. Past the capture of the test runner, which hides what passing tests print.
pub fn skipped(why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
}
