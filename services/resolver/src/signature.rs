//! Signatures: rows with their schemas, for callers that offer rows by name and call them with typed arguments.

use std::sync::Arc;

use callbook_domain::caller::{Caller, May};
use callbook_domain::compile::{Compiled, Plan};
use callbook_domain::fault::Result;
use callbook_domain::key::Key;
use callbook_domain::row::Effect;
use callbook_store::snapshot::{Entry, Snapshot};
use serde_json::Value;

use crate::App;
use crate::catalogue::category;
use crate::cursor::{Cursors, size};
use crate::describe::{clean_words, input_schema};
use crate::follow::answers;
use crate::sight::sight;
use crate::summary::is_untrusted;

/// Rows a page where none are asked for, and at most.
const PAGE: (u32, u32) = (100, 1_000);

/// Which rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Those that planners see, without test-shaped keys.
    Call,
    /// Texts for a person to choose.
    Prompt,
    /// Those that have an address.
    Resource,
}

/// Which part is wanted.
pub(crate) struct Wanted {
    /// Which rows.
    pub(crate) kind: Kind,
    /// The one key; empty is all.
    pub(crate) key: String,
    /// The category, compared exactly; empty is all.
    pub(crate) category: String,
    /// How keys begin.
    pub(crate) prefix: String,
    /// Rows a page; 0 is the default.
    pub(crate) page_size: u32,
    /// The token of the page; empty is the first.
    pub(crate) page_token: String,
}

/// A page.
pub(crate) struct Page {
    /// The rows, in the canonical order.
    pub(crate) rows: Vec<Arc<Entry>>,
    /// The token of the next page; empty after the last.
    pub(crate) next: String,
}

/// A page of rows. It begins after the last row of the page before, so writes between two pages neither repeat a row
/// nor leave one out that was there all the time.
///
/// # Errors
/// `cursor_invalid`; `cursor_stale` for a token of other filters.
pub(crate) async fn signatures(app: &App, caller: &Caller, wanted: Wanted) -> Result<Page> {
    let held = app.directory.snapshot();
    let page = wanted.page(app, caller, &held)?;
    if wanted.key.is_empty() || !page.rows.is_empty() {
        return Ok(page);
    }
    // Before anybody is told that there is no such row, the database is looked at; without one, what is held counts.
    match app.directory.fresh().await {
        Ok(fresh) => wanted.page(app, caller, &fresh),
        Err(_) => Ok(page),
    }
}

impl Wanted {
    fn page(&self, app: &App, caller: &Caller, snapshot: &Snapshot) -> Result<Page> {
        let kind = format!("{:?}", self.kind);
        let scope: [&str; 4] = [&sight(caller), &kind, &self.category, &self.prefix];
        let cursors = Cursors::new(&app.cursor_key, "signatures", &scope);
        let after = cursors.position(&self.page_token)?;
        if !self.key.is_empty() {
            let found = snapshot.get(&self.key).filter(|entry| self.takes(caller, entry));
            return Ok(Page { rows: found.cloned().into_iter().collect(), next: String::new() });
        }
        let rows = snapshot.rows();
        let start = after.as_deref().map_or(0, |after| {
            let after = parse(after);
            rows.partition_point(|entry| place(entry) <= after)
        });
        let most = size(self.page_size, PAGE.0, PAGE.1);
        let mut found: Vec<Arc<Entry>> =
            rows[start..].iter().filter(|entry| self.takes(caller, entry)).take(most + 1).cloned().collect();
        let has_more = found.len() > most;
        found.truncate(most);
        let next = found.last().filter(|_| has_more).map(|last| cursors.issue(&written(last))).unwrap_or_default();
        Ok(Page { rows: found, next })
    }

    fn takes(&self, caller: &Caller, entry: &Entry) -> bool {
        (self.category.is_empty() || category(entry) == self.category)
            && entry.key().as_str().starts_with(&self.prefix)
            && self.kind.takes(entry)
            && match self.kind {
                Kind::Call | Kind::Resource => caller.sees(entry.key()),
                Kind::Prompt => caller.may(May::Invoke, Some(entry.key())),
            }
    }
}

impl Kind {
    fn takes(self, entry: &Entry) -> bool {
        match self {
            Kind::Call => answers(entry) && !entry.key().is_test_shaped(),
            // What is read must not change by being read.
            Kind::Resource => {
                let has_address = keyword(entry, "x-uri").is_some_and(Value::is_string);
                answers(entry) && has_address && entry.row.effect == Effect::Read
            }
            Kind::Prompt => {
                let definition = &entry.row.definition;
                let is_offered = definition.enabled && definition.planner_visible && entry.compiled.is_ok();
                let says_so = || keyword(entry, "x-prompt") == Some(&Value::Bool(true));
                is_offered && (definition.is_prompt_block() || says_so())
            }
        }
    }
}

/// The schema of the row's arguments.
pub(crate) fn arguments(entry: &Entry, compiled: &Compiled) -> Value {
    input_schema(entry, compiled)
}

/// The schema of its output. A third party's words in it hold nothing that a reader would not see.
pub(crate) fn output(entry: &Entry, compiled: &Compiled) -> Option<Value> {
    let mut schema = compiled.output_schema.as_ref()?.value().clone();
    if is_untrusted(entry) {
        clean_words(&mut schema);
    }
    Some(schema)
}

/// The text of a prompt block.
pub(crate) fn text(compiled: &Compiled) -> Option<&str> {
    match compiled.plan {
        Plan::Block => Some(&compiled.template),
        Plan::Http(_) | Plan::Fn(_) | Plan::Flow(_) | Plan::Agent(_) => None,
    }
}

/// A keyword at the root of the row's schema.
fn keyword<'a>(entry: &'a Entry, name: &str) -> Option<&'a Value> {
    entry.compiled.as_ref().ok()?.signature.schema.as_ref()?.value().get(name)
}

/// The row's place in the canonical order: those with `seq` first, by it, then by key.
fn place(entry: &Entry) -> (bool, i32, &str) {
    let seq = entry.row.definition.seq;
    (seq.is_none(), seq.unwrap_or_default(), Key::as_str(entry.key()))
}

fn written(entry: &Entry) -> String {
    let seq = entry.row.definition.seq.map(|seq| seq.to_string()).unwrap_or_default();
    format!("{seq} {}", entry.key())
}

fn parse(position: &str) -> (bool, i32, &str) {
    let (seq, key) = position.split_once(' ').unwrap_or(("", position));
    let seq = seq.parse::<i32>().ok();
    (seq.is_none(), seq.unwrap_or_default(), key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::tests::entry;

    #[test]
    fn a_position_is_read_as_it_was_written() {
        let plain = entry("A.b", |_| ());
        let first = entry("Z", |row| row.seq = Some(-3));
        for row in [&plain, &first] {
            assert_eq!(parse(&written(row)), place(row));
        }
        assert!(place(&first) < place(&plain));
    }

    #[test]
    fn each_kind_takes_its_own_rows() {
        let plain = entry("A", |_| ());
        let hidden = entry("B", |row| row.planner_visible = false);
        let test = entry("MY_DUMMY", |_| ());
        let block = entry("C", |row| row.target = "prompt_block".to_owned());
        let addressed = entry("D", |row| row.input_schema = Some(r#"{"type":"object","x-uri":"a://b"}"#.to_owned()));
        let prompt = entry("E", |row| row.input_schema = Some(r#"{"type":"object","x-prompt":true}"#.to_owned()));
        let taken = |kind: Kind| -> Vec<String> {
            let all = [&plain, &hidden, &test, &block, &addressed, &prompt];
            all.iter().filter(|entry| kind.takes(entry)).map(|entry| entry.key().to_string()).collect()
        };
        assert_eq!(taken(Kind::Call), ["A", "D", "E"]);
        assert_eq!(taken(Kind::Prompt), ["C", "E"]);
        assert_eq!(taken(Kind::Resource), ["D"]);
    }
}
