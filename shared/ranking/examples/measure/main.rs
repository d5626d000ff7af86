//! Measures the index on the public retrieval sets: `cargo run --release -p callbook-ranking --example measure`.
//!
//! An argument names a file of other absent questions, one a line, to try those that nothing here was fitted to.
//! `CALLBOOK_SHARED` names the folder that holds `retrieval/`; where it is absent, one line says `skipped:`.

#![allow(clippy::print_stdout, reason = "the figures are what this program gives")]
#![allow(unreachable_pub, missing_docs, reason = "a program, read as a whole")]

mod figures;
mod sets;
mod speed;

use std::path::PathBuf;

use figures::{Figures, measure};
use sets::Set;

const SETS: [&str; 6] = ["clinc150", "toollinkos", "tldr", "nl2bash", "sealtools", "bfcl"];
const ABSENT: &str = include_str!("absent.txt");

fn main() {
    let shared = std::env::var_os("CALLBOOK_SHARED")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), PathBuf::from);
    let sets: Vec<Set> = SETS.iter().filter_map(|name| Set::load(&shared.join("retrieval"), name)).collect();
    if sets.is_empty() {
        println!("skipped: no retrieval sets under {}", shared.display());
        return;
    }
    for (title, abstain, typo) in
        [("abstention off", false, false), ("abstention on", true, false), ("off, one typo a question", false, true)]
    {
        println!("\n{title}\n{}", Figures::HEADER);
        let all: Vec<Figures> = sets.iter().map(|set| measure(set, abstain, typo)).collect();
        all.iter().zip(&sets).for_each(|(figures, set)| println!("{:11}{figures}", set.name));
        println!("{:11}{}", "mean", Figures::mean(&all));
    }
    println!("\nabsent questions that get an empty answer");
    let other = std::env::args().nth(1).map(|path| std::fs::read_to_string(path).expect("a file of questions"));
    let absent = other.as_deref().unwrap_or(ABSENT);
    for set in &sets {
        let empty = absent.lines().filter(|text| set.ask(text, true, 1).total == 0).count();
        println!("{:11}{empty} of {}", set.name, absent.lines().count());
    }
    speed::measure(&sets);
}
