//! Search: rows that contain a text, as the seed's search found them.

use std::sync::Arc;

use callbook_domain::caller::{Caller, May};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::row::RowType;
use callbook_store::snapshot::{Entry, Snapshot};
use regex::{Regex, RegexBuilder};

use crate::App;
use crate::catalogue::category;
use crate::cursor::{Cursors, size};
use crate::sight::sight;
use crate::summary::docstring;

/// The longest text, in bytes.
const MAX_QUERY: usize = 400;
/// Rows a page where none are asked for, and at most.
const PAGE: (u32, u32) = (20, 100);

/// What is looked for.
pub(crate) struct Wanted {
    /// The text, compared without case; empty is in every row.
    pub(crate) query: String,
    /// The category, compared exactly; empty is all.
    pub(crate) category: String,
    /// Rows a page; 0 is the default.
    pub(crate) page_size: u32,
    /// The token of the page; empty is the first.
    pub(crate) page_token: String,
}

/// A page of the rows that contain the text.
pub(crate) struct Found {
    /// The rows, by planner_rank and then key.
    pub(crate) rows: Vec<Arc<Entry>>,
    /// All rows that contain it.
    pub(crate) count: usize,
    /// The token of the next page; empty after the last.
    pub(crate) next: String,
}

/// The rows that planners see whose key, category or content contains the text.
///
/// # Errors
/// `invalid_request` for an overlong text; `cursor_invalid`; `cursor_stale` once the directory, the text or the filter
/// has changed.
pub(crate) async fn search(app: &App, caller: &Caller, wanted: Wanted) -> Result<Found> {
    let pattern = pattern(&wanted.query)?;
    let snapshot = app.directory.snapshot();
    // Callers that see the same keys may still differ in whose prompts they read.
    let scope = [&snapshot.revision.to_string(), &caller.identity(), &sight(caller), &wanted.query, &wanted.category];
    let cursors = Cursors::new(&app.cursor_key, "search", &scope.map(String::as_str));
    let offset = cursors.offset(&wanted.page_token)?;
    let reader = caller.clone();
    let rows = tokio::task::spawn_blocking(move || matching(&snapshot, &reader, &wanted.category, pattern.as_ref()))
        .await
        .map_err(|_| Fault::new(Reason::Internal, "the search could not be run"))?;
    let (page, next) = cursors.page(&rows, offset, size(wanted.page_size, PAGE.0, PAGE.1));
    Ok(Found { rows: page.to_vec(), count: rows.len(), next })
}

fn pattern(query: &str) -> Result<Option<Regex>> {
    if query.is_empty() {
        return Ok(None);
    }
    let escaped = Some(regex::escape(query)).filter(|_| query.len() <= MAX_QUERY);
    escaped.and_then(|escaped| RegexBuilder::new(&escaped).case_insensitive(true).build().ok()).map(Some).ok_or_else(
        || Fault::new(Reason::InvalidRequest, format!("the text is at most {MAX_QUERY} bytes")).with("field", "q"),
    )
}

fn matching(snapshot: &Snapshot, caller: &Caller, wanted: &str, pattern: Option<&Regex>) -> Vec<Arc<Entry>> {
    let rows = snapshot.rows().iter().filter(|entry| {
        entry.is_planner_visible()
            && caller.sees(entry.key())
            && (wanted.is_empty() || category(entry) == wanted)
            && pattern.is_none_or(|pattern| contains(entry, caller, pattern))
    });
    let mut rows: Vec<Arc<Entry>> = rows.cloned().collect();
    rows.sort_unstable_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.key().cmp(b.key())));
    rows
}

fn rank(entry: &Entry) -> i32 {
    entry.row.definition.planner_rank
}

/// An agent's prompt is looked at for those alone who may read it: else it could be found out letter by letter.
fn contains(entry: &Entry, caller: &Caller, pattern: &Regex) -> bool {
    if pattern.is_match(entry.key().as_str()) || pattern.is_match(category(entry)) {
        return true;
    }
    match entry.row.definition.row_type {
        RowType::Agent if !caller.may(May::Edit, Some(entry.key())) => pattern.is_match(&docstring(entry).raw),
        RowType::Agent | RowType::Fn | RowType::Http | RowType::Flow => pattern.is_match(&entry.row.definition.content),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::tests::{book, entry};

    fn found(snapshot: &Snapshot, caller: &Caller, category: &str, query: &str) -> Vec<String> {
        let rows = matching(snapshot, caller, category, pattern(query).unwrap().as_ref());
        rows.iter().map(|entry| entry.key().to_string()).collect()
    }

    #[test]
    fn a_text_is_found_in_key_category_and_content_without_case() {
        let snapshot = book(vec![
            entry("ISSUE_LIST", |row| row.planner_rank = 5),
            entry("B", |row| row.category = Some("Issues".to_owned())),
            entry("A", |row| row.content = "# WHAT: Close an issue\n[\"$1\"]".to_owned()),
            entry("C", |row| row.planner_visible = false),
            entry("D", |_| ()),
        ]);
        assert_eq!(found(&snapshot, &Caller::Anonymous, "", "iSSue"), ["ISSUE_LIST", "A", "B"]);
        assert_eq!(found(&snapshot, &Caller::Anonymous, "Issues", "issue"), ["B"]);
        assert_eq!(found(&snapshot, &Caller::Anonymous, "", ""), ["ISSUE_LIST", "A", "B", "D"]);
        assert!(found(&snapshot, &Caller::Anonymous, "", "issue.*").is_empty(), "a text is no pattern");
        assert_eq!(pattern(&"x".repeat(401)).unwrap_err().reason(), Reason::InvalidRequest);
    }

    #[test]
    fn a_prompt_is_searched_for_those_alone_who_may_read_it() {
        let snapshot = book(vec![entry("AGENT", |row| {
            row.row_type = RowType::Agent;
            row.target = "claude".to_owned();
            row.content = "# WHAT: Help\nNever name the merger.".to_owned();
        })]);
        assert!(found(&snapshot, &Caller::Anonymous, "", "merger").is_empty());
        assert_eq!(found(&snapshot, &Caller::Owner, "", "merger"), ["AGENT"]);
        assert_eq!(found(&snapshot, &Caller::Anonymous, "", "help"), ["AGENT"]);
    }
}
