//! Measures what `callbook eval` does not: what a typing error costs, questions that nothing answers, speed and memory.
//!
//!     cargo run --release -p callbook-ranking --example measure [typos | absent [FILE] | speed]
//!
//! `FILE` holds other absent questions, one a line, to try those that nothing here was fitted to. `CALLBOOK_SHARED`
//! names the folder that holds `retrieval/`; where it is absent, one line says `skipped:`.

#![allow(clippy::print_stdout, reason = "the figures are what this program gives")]
#![allow(unreachable_pub, missing_docs, reason = "a program, read as a whole")]

mod absent;
mod random;
mod sets;
mod speed;
mod typos;

use std::alloc::System;
use std::path::PathBuf;

use cap::Cap;
use sets::Set;

/// Counts what is asked of the allocator.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

const SETS: [&str; 6] = ["clinc150", "toollinkos", "tldr", "nl2bash", "sealtools", "bfcl"];

fn main() {
    let shared = std::env::var_os("CALLBOOK_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let sets: Vec<Set> = SETS.iter().filter_map(|name| Set::load(&shared.join("retrieval"), name)).collect();
    if sets.is_empty() {
        println!("skipped: no retrieval sets under {}", shared.display());
        return;
    }
    let part = std::env::args().nth(1);
    let is_wanted = |name| part.as_deref().is_none_or(|part| part == name);
    if is_wanted("typos") {
        typos::measure(&sets);
    }
    if is_wanted("absent") {
        absent::measure(&sets, std::env::args().nth(2));
    }
    if is_wanted("speed") {
        speed::measure(&sets);
    }
}
