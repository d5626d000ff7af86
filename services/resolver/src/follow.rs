//! The index follows the directory.

use std::sync::Arc;

use callbook_domain::compile::{Compiled, Plan};
use callbook_domain::docstring::ArgsDoc;
use callbook_domain::key::Key;
use callbook_ranking::{self as ranking, Recommendation, Shelf};
use callbook_store::directory::Follower;
use callbook_store::snapshot::{Change, Entry, Recommended};
use serde_json::Value;

use crate::summary::is_untrusted;

/// Keeps the index of a process: give it to `Directory::open`. Rows that planners do not see, or that cannot be called
/// under this process's settings, are not in it.
pub fn follower(shelf: Arc<Shelf>) -> Follower {
    Box::new(move |change: &Change| {
        let mut removed = change.removed.clone();
        let mut changed = Vec::with_capacity(change.changed.len());
        for entry in &change.changed {
            match indexed(entry) {
                Some(found) => changed.push(found),
                None => removed.push(entry.key().clone()),
            }
        }
        let recommended = change.recommended.as_deref().map(|all| all.iter().map(recommendation).collect());
        shelf.apply(changed, &removed, recommended);
    })
}

/// Whether questions may be answered with the row.
pub(crate) fn answers(entry: &Entry) -> bool {
    entry.is_planner_visible() && entry.compiled.is_ok()
}

fn indexed(entry: &Entry) -> Option<ranking::Entry> {
    let compiled = entry.compiled.as_ref().ok().filter(|_| answers(entry))?;
    let (row, definition, doc) = (&entry.row, &entry.row.definition, &compiled.docstring);
    let free = doc.description_text();
    // Where no line says WHAT, the free lines are what it does; else they are remarks.
    let (what, remark) = match &doc.what {
        Some(what) => (Some(what.clone()), free),
        None => (free, None),
    };
    let notes = [remark, doc.input.clone(), doc.notes.clone()];
    Some(ranking::Entry {
        key: entry.key().clone(),
        category: definition.category.clone(),
        row_type: definition.row_type,
        effect: row.effect,
        risk: row.risk,
        planner_rank: definition.planner_rank,
        what: what.unwrap_or_default(),
        when_to_use: doc.when_to_use.clone().unwrap_or_default(),
        arguments: arguments(compiled),
        notes: notes.into_iter().flatten().collect::<Vec<_>>().join("\n"),
        third_party: is_untrusted(entry),
    })
}

/// Name and meaning of every argument; the operations of a row that has several are words of its first.
fn arguments(compiled: &Compiled) -> Vec<(String, String)> {
    let signature = &compiled.signature;
    let meaning = |at: usize, name: &str| match (&signature.schema, &compiled.docstring.args) {
        (Some(schema), _) => {
            schema.property(name).and_then(|property| property.get("description")).and_then(Value::as_str)
        }
        (None, ArgsDoc::List(list)) => list.get(at).and_then(|argument| argument.meaning.as_deref()),
        (None, ArgsDoc::Absent | ArgsDoc::None | ArgsDoc::SeeContent) => None,
    };
    let mut found: Vec<(String, String)> = signature
        .names
        .iter()
        .enumerate()
        .map(|(at, name)| (name.clone(), meaning(at, name).unwrap_or_default().to_owned()))
        .collect();
    if let Plan::Http(plan) = &compiled.plan {
        found.extend(plan.operations().into_iter().map(|operation| (operation.to_owned(), String::new())));
    }
    found
}

fn recommendation(standing: &Recommended) -> Recommendation {
    Recommendation { pattern: standing.pattern.clone(), key: Key::clone(&standing.key), demote: standing.demote }
}

#[cfg(test)]
mod tests {
    use callbook_ranking::Question;

    use super::*;
    use crate::catalogue::tests::entry;

    fn tell(follower: &Follower, rows: Vec<Arc<Entry>>) {
        follower(&Change { changed: rows, removed: Vec::new(), recommended: None });
    }

    #[test]
    fn rows_that_planners_do_not_see_leave_the_index() {
        let shelf = Arc::new(Shelf::default());
        let follower = follower(shelf.clone());
        tell(&follower, vec![entry("A", |_| ()), entry("B", |row| row.planner_visible = false)]);
        assert_eq!(shelf.len(), 1);
        tell(&follower, vec![entry("B", |_| ())]);
        assert_eq!(shelf.ask(&Question::new("make text large"), &|_| true).total, 2);
        tell(&follower, vec![entry("A", |row| row.enabled = false), entry("B", |row| row.target = String::new())]);
        assert!(shelf.is_empty());
    }

    #[test]
    fn names_and_meanings_of_arguments_can_be_found() {
        let row =
            entry("A", |row| row.content = "# WHAT: Do\n# ARGS: city (where it rains) | day\n[\"$1\"]".to_owned());
        let found = indexed(&row).unwrap();
        let city = ("city".to_owned(), "where it rains".to_owned());
        assert_eq!(found.arguments, [city, ("day".to_owned(), String::new())]);
        let schema = r#"{"type":"object","properties":{"town":{"type":"string","description":"a place"}}}"#;
        let row = entry("A", |row| row.input_schema = Some(schema.to_owned()));
        assert_eq!(indexed(&row).unwrap().arguments, [("town".to_owned(), "a place".to_owned())]);
    }

    #[test]
    fn free_lines_are_what_it_does_where_nothing_else_says_so() {
        let row = entry("A", |row| row.content = "# Tell the time\n# in words\n[\"$1\"]".to_owned());
        assert_eq!(indexed(&row).unwrap().what, "Tell the time in words");
    }
}
