//! What is indexed.

use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk, RowType};

/// What the index reads of one row. Only rows that are enabled and visible to planners are given to it; who may see
/// which of them is decided with each question.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The row's key.
    pub key: Key,
    /// Grouping label; its words can be found.
    pub category: Option<String>,
    /// The type.
    pub row_type: RowType,
    /// What a call may change.
    pub effect: Effect,
    /// How carefully a call is gated.
    pub risk: Risk,
    /// Lower wins between equal scores.
    pub planner_rank: i32,
    /// The docstring's WHAT.
    pub what: String,
    /// The docstring's WHEN_TO_USE.
    pub when_to_use: String,
    /// Name and meaning of every argument.
    pub arguments: Vec<(String, String)>,
    /// The docstring's NOTES.
    pub notes: String,
    /// Whether somebody outside wrote the words: then a word counts once a field, and less of a field is read.
    pub third_party: bool,
}

/// An operator's standing answer to a kind of question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recommendation {
    /// Words that must all occur in the question, in any order and with any English ending. Function words count only
    /// where the pattern has no other.
    pub pattern: String,
    /// The row that is put first, or last.
    pub key: Key,
    /// Whether the row goes below all others instead of first.
    pub demote: bool,
}
