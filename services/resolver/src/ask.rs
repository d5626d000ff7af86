//! Ask: from a plain question to the rows that fit. It reads memory alone.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::contract::{self, Rendered};
use callbook_domain::fault::Result;
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_ranking::{Filters, Hit, Question, Ranked};
use callbook_store::snapshot::{Entry, Snapshot};

use crate::App;
use crate::cursor::{Cursors, size};
use crate::follow::answers;
use crate::sight::sight;

/// The longest question that is read, in bytes.
const MAX_QUESTION: usize = 10 * 1024;
/// Matches a page where none are asked for, and at most.
const PAGE: (u32, u32) = (12, 100);
/// What to do where a question says nothing.
const NOTHING_ASKED: &str =
    "say in plain words what is to be done; GET /api/dispatch?map=1 shows the shelves of the book";
/// What to do where nothing fits.
const NOTHING_FITS: &str =
    "nothing in the book fits; try other words or fewer filters, or look at its shelves with GET /api/dispatch?map=1";

/// What is asked.
pub(crate) struct Asked {
    /// The question.
    pub(crate) question: String,
    /// Which rows may answer.
    pub(crate) filters: Filters,
    /// Matches a page; 0 is the default.
    pub(crate) page_size: u32,
    /// The token of the page; empty is the first.
    pub(crate) page_token: String,
}

/// What is answered.
pub(crate) struct Answered {
    /// The question as it was read.
    pub(crate) question: String,
    /// Rows that fit, over all pages.
    pub(crate) count: usize,
    /// The compact contract of the first match; on the first page alone.
    pub(crate) contract: Option<String>,
    /// The matches of the page, best first.
    pub(crate) matches: Vec<(Arc<Entry>, Hit)>,
    /// What to do where nothing fits.
    pub(crate) hint: Option<&'static str>,
    /// The token of the next page; empty after the last.
    pub(crate) next: String,
}

/// Answers a question from what the process holds.
///
/// # Errors
/// `cursor_invalid`; `cursor_stale` once the directory, the question or a filter has changed.
pub(crate) fn ask(app: &App, caller: &Caller, asked: Asked) -> Result<Answered> {
    let snapshot = app.directory.snapshot();
    let question = cut(&asked.question).to_owned();
    let cursors = cursors(app, caller, &snapshot, &question, &asked.filters);
    let offset = cursors.offset(&asked.page_token)?;
    let limit = size(asked.page_size, PAGE.0, PAGE.1);
    let ranked = match question.is_empty() {
        true => Ranked::default(),
        false => {
            let question = Question { text: &question, filters: asked.filters, offset, limit, abstain: true };
            // The index may be a change ahead of the snapshot; only rows of the snapshot answer.
            let visible = |key: &_| caller.sees(key) && snapshot.get(key.as_str()).is_some_and(|entry| answers(entry));
            app.index.ask(&question, &visible)
        }
    };
    let found = ranked.hits.into_iter().filter_map(|hit| Some((snapshot.get(hit.key.as_str())?.clone(), hit)));
    let matches: Vec<(Arc<Entry>, Hit)> = found.collect();
    let hint = match (question.is_empty(), ranked.total) {
        (true, _) => Some(NOTHING_ASKED),
        (false, 0) => Some(NOTHING_FITS),
        (false, _) => None,
    };
    Ok(Answered {
        count: ranked.total,
        contract: matches.first().filter(|_| offset == 0).and_then(|(best, _)| compact(best, caller)),
        next: cursors.next(offset.saturating_add(limit), ranked.total),
        question,
        matches,
        hint,
    })
}

fn cut(question: &str) -> &str {
    let question = question.trim();
    question[..question.floor_char_boundary(MAX_QUESTION)].trim_end()
}

fn compact(entry: &Entry, caller: &Caller) -> Option<String> {
    let compiled = entry.compiled.as_ref().ok()?;
    Some(contract::compact(&Rendered { row: &entry.row, compiled, caller }).to_string())
}

fn cursors<'a>(app: &'a App, caller: &Caller, snapshot: &Snapshot, question: &str, filters: &Filters) -> Cursors<'a> {
    let Filters { category, row_type, effect, risk, namespace } = filters;
    Cursors::new(
        &app.cursor_key,
        "ask",
        &[
            &snapshot.revision.to_string(),
            &sight(caller),
            question,
            category.as_deref().unwrap_or_default(),
            row_type.map_or("", RowType::as_str),
            effect.map_or("", Effect::as_str),
            risk.map_or("", Risk::as_str),
            namespace.as_deref().unwrap_or_default(),
        ],
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_question_is_cut_between_characters() {
        assert_eq!(cut("  what time is it \n"), "what time is it");
        let long = format!("a{}", "é".repeat(MAX_QUESTION));
        assert_eq!(cut(&long).len(), MAX_QUESTION - 1);
        assert_eq!(cut(" \n\t "), "");
    }
}
