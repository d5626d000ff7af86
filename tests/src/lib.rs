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

use std::path::PathBuf;

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

/// Says that a test did not look. Past the capture of the test runner, which hides what passing tests print.
pub fn skipped(why: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout(), "\nskipped: {why}");
}
