//! Writes and asks books of any text for as many seconds as the argument says, and ends with the smallest book and
//! question that break a law: `cargo run --release -p callbook-ranking --example fuzz -- 600`.

#![allow(clippy::print_stdout, reason = "the figures are what this program gives")]
#![allow(unreachable_pub, missing_docs, reason = "a program, read as a whole")]

#[path = "../tests/it/laws.rs"]
mod laws;

use std::cell::Cell;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use callbook_ranking::Index;
use laws::{an_answer_is_sound, answers_are_equal, entry, filters, question, recommendations, text, wild, written};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

fn main() -> ExitCode {
    let seconds = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(60);
    let (began, until) = (Instant::now(), Duration::from_secs(seconds));
    let (books, questions, mut said) = (Cell::new(0_u64), Cell::new(0_u64), 0);
    while began.elapsed() < until {
        // a runner of its own seed each time, so that what it found is made small and nothing grows
        let mut runner = TestRunner::new(Config { cases: 200, failure_persistence: None, ..Config::default() });
        let entry = || prop_oneof![3 => entry(text), 1 => entry(wild)];
        let books_and_questions = (
            vec((entry(), prop::bool::weighted(0.25)), 0..40),
            recommendations(),
            vec((question(), filters(), any::<bool>(), 1_usize..9), 1..12),
        );
        let tried = runner.run(&books_and_questions, |(writes, recommended, asked)| {
            let (mut index, rows) = written(writes)?;
            let mut fresh = Index::build(rows.values().cloned());
            index.set_recommended(recommended.clone());
            fresh.set_recommended(recommended);
            for (text, filters, abstain, page) in &asked {
                an_answer_is_sound(&index, &rows, text, filters, (*abstain, *page))?;
                answers_are_equal(&index, &fresh, text)?;
            }
            books.set(books.get() + 1);
            questions.set(questions.get() + asked.len() as u64);
            Ok(())
        });
        if let Err(broken) = tried {
            println!("{broken}");
            return ExitCode::FAILURE;
        }
        let minutes = began.elapsed().as_secs() / 60;
        if minutes > said {
            said = minutes;
            println!("{minutes} min: {} books, {} questions", books.get(), questions.get());
        }
    }
    println!("{} books and {} questions in {seconds} s: every law held", books.get(), questions.get());
    ExitCode::SUCCESS
}
