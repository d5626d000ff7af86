//! The index from outside.

#![allow(unreachable_pub, missing_docs, reason = "tests, read as a whole")]

mod answers;
mod laws;
mod properties;

use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_ranking::{Entry, Hit, Index, Question, Ranked};

/// A row with nothing but a key, a category and a WHAT.
pub fn row(key: &str, category: &str, what: &str) -> Entry {
    Entry {
        key: Key::parse(key).expect("a key"),
        category: Some(category.to_owned()),
        row_type: RowType::Fn,
        effect: Effect::Read,
        risk: Risk::Low,
        planner_rank: 100,
        what: what.to_owned(),
        when_to_use: String::new(),
        arguments: Vec::new(),
        notes: String::new(),
        third_party: false,
    }
}

pub fn ask(index: &Index, text: &str) -> Ranked {
    index.ask(&Question::new(text), &|_| true)
}

pub fn keys(ranked: &Ranked) -> Vec<&str> {
    ranked.hits.iter().map(|hit| hit.key.as_str()).collect()
}

pub fn first<'r>(ranked: &'r Ranked, key: &str) -> &'r Hit {
    let hit = ranked.hits.first().expect("an answer");
    assert_eq!(hit.key.as_str(), key, "{ranked:?}");
    hit
}
