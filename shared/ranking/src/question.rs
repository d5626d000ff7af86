//! What is asked and what is answered.

use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk, RowType};

/// A plain question and which part of its answer is wanted.
#[derive(Clone, Debug)]
pub struct Question<'a> {
    /// The question as it was typed: any text of any length; what follows 16 KiB is not read.
    pub text: &'a str,
    /// Which rows may answer.
    pub filters: Filters,
    /// How many hits to leave out at the front.
    pub offset: usize,
    /// How many hits to give at most.
    pub limit: usize,
    /// Whether a question that nothing fits gets an empty answer. Off is for measuring.
    pub abstain: bool,
}

impl<'a> Question<'a> {
    /// A question with no filter, its first 12 hits, abstaining.
    pub fn new(text: &'a str) -> Self {
        Question { text, filters: Filters::default(), offset: 0, limit: 12, abstain: true }
    }
}

/// What a row must be to answer; absent fields let everything pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filters {
    /// The category, compared exactly.
    pub category: Option<String>,
    /// The type.
    pub row_type: Option<RowType>,
    /// The effect, compared exactly.
    pub effect: Option<Effect>,
    /// The risk, compared exactly.
    pub risk: Option<Risk>,
    /// The namespace that the key is or stands below.
    pub namespace: Option<String>,
}

/// The rows that fit, best first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranked {
    /// How many rows fit in all, at most a few hundred: an answer is the top of the book, not a listing of it.
    pub total: usize,
    /// The part that was asked for.
    pub hits: Vec<Hit>,
}

/// A row that fits.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// Its key.
    pub key: Key,
    /// How well it fits, 0 to 1, comparable between questions: 1 is named or recommended, 0.5 is the least with which
    /// the first hit of an abstaining answer stands.
    pub score: f64,
    /// Why, in short stable texts: `exact key`, `recommended`, `demoted`, `typo: tmie→time`, the matched word after the
    /// strongest field that holds it, as in `key: time`, `meaning` where what is asked and what the row does are near
    /// whatever the words, and last, beside a row that reads much the same, what only this one has or lacks:
    /// `unlike ISSUE_CREATE: list, open`, `unlike ISSUE_LIST: not closed`.
    pub why: Vec<String>,
}
