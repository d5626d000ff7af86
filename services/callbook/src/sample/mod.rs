//! The starter rows: what `callbook up --sample` puts into a book.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::clock::Clock;
use callbook_domain::fault::{Fault, Result};
use callbook_domain::key::Key;
use callbook_store::directory::Directory;
use callbook_store::history;
use callbook_store::write::{Import, ImportMode, OnConflict, Writer, import};
use serde::Deserialize;

/// The rows as NDJSON, in the shape that an import takes.
pub const ROWS: &str = include_str!("rows.ndjson");

/// The rows that the official suite of the Model Context Protocol calls by their names, in the same shape.
pub const CONFORMANCE: &str = include_str!("../../../../tests/conformance/rows.ndjson");

/// What became of the starter rows.
#[derive(Debug, Default)]
pub struct Loaded {
    /// Rows that were added.
    pub added: usize,
    /// Rows whose key the book holds or once held; they are left as they are.
    pub left: usize,
    /// Rows that the book refuses, each with its reason.
    pub refused: Vec<String>,
}

#[derive(Deserialize)]
struct Named {
    key: Key,
}

/// Adds rows as the owner, given as NDJSON. What exists is left, and so is what somebody took out: a start must not undo
/// what an operator decided.
///
/// # Errors
/// Where the database does not answer.
pub async fn load(directory: Arc<Directory>, clock: Clock, rows: &str) -> Result<Loaded> {
    let (mut new, mut left) = (String::new(), 0);
    for line in rows.lines() {
        if is_known(&directory, line).await? {
            left += 1;
        } else {
            new.push_str(line);
            new.push('\n');
        }
    }
    if new.is_empty() {
        return Ok(Loaded { left, ..Loaded::default() });
    }
    let writer = Writer { directory, clock, caller: Caller::Owner };
    let options = Import { mode: ImportMode::Each, on_conflict: OnConflict::Skip, ..Import::default() };
    let imported = import(&writer, new.into_bytes(), options).await?;
    let refused = imported.refused.iter().map(|line| format!("{}: {}", line.key, line.fault)).collect();
    Ok(Loaded { added: imported.created, left: left + imported.unchanged, refused })
}

/// Whether the book holds the row's key, or held it.
async fn is_known(directory: &Directory, line: &str) -> Result<bool> {
    let Named { key } = serde_json::from_str(line).expect("a test reads every starter row");
    if directory.snapshot().get(key.as_str()).is_some() {
        return Ok(true);
    }
    let mut connection = directory.pool().acquire().await.map_err(callbook_store::fault::fault)?;
    let versions = history::versions(&mut connection, &key, i64::MAX, 1).await;
    versions.map(|versions| !versions.is_empty()).map_err(|fault: Fault| fault)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use callbook_domain::arguments::Sent;
    use callbook_domain::compile::{Compiled, Plan, Rules};
    use callbook_domain::contract;
    use callbook_domain::docstring::ArgsDoc;
    use callbook_domain::hygiene;
    use callbook_domain::row::{Definition, RowType};

    use super::*;

    fn rows() -> Vec<(Definition, Compiled)> {
        let row = |line: &str| {
            let fields = serde_json::from_str(line).unwrap();
            let (definition, unknown) = Definition::from_json(&fields).unwrap();
            let checked = hygiene::check(&definition, &Rules::default());
            let key = definition.key.clone();
            assert!(unknown.is_empty(), "{key} has columns that no row has: {unknown:?}");
            assert!(checked.violations.is_empty(), "{key}: {:?}", checked.violations);
            assert!(checked.warnings.is_empty(), "{key}: {:?}", checked.warnings);
            (definition, checked.compiled.unwrap())
        };
        ROWS.lines().map(row).collect()
    }

    #[test]
    fn every_starter_row_is_accepted_without_a_warning_and_once() {
        let rows = rows();
        let keys: BTreeSet<&Key> = rows.iter().map(|(definition, _)| &definition.key).collect();
        assert_eq!((rows.len(), keys.len()), (24, 24));
        for (definition, compiled) in &rows {
            let reached = compiled.reaches.iter().filter(|reach| !keys.contains(&reach.key));
            assert_eq!(reached.count(), 0, "{} reaches rows that are not here", definition.key);
        }
    }

    #[test]
    fn every_starter_row_says_what_a_caller_needs() {
        for (definition, compiled) in rows() {
            let (key, doc) = (&definition.key, &compiled.docstring);
            assert!(doc.what.is_some() && doc.when_to_use.is_some() && doc.output.is_some(), "{key}");
            assert!(doc.safe.is_some() && doc.args != ArgsDoc::Absent, "{key}");
            assert!(doc.example.is_some() || definition.is_prompt_block(), "{key}");
            let is_read = compiled.effect == callbook_domain::row::Effect::Read;
            assert_eq!(doc.safe, Some(is_read), "{key} says of itself what it does");
        }
    }

    #[test]
    fn every_example_binds() {
        for (definition, compiled) in rows() {
            let Some(example) = contract::example(&definition, &compiled) else { continue };
            let sent = Sent::new(Some(example.clone()), None).unwrap();
            let bound =
                compiled.signature.bind(&sent).unwrap_or_else(|fault| panic!("{}: {example}: {fault}", definition.key));
            if let Plan::Fn(plan) = &compiled.plan {
                let count = plan.arguments.fill(&bound).unwrap().len();
                let function = plan.function.unwrap();
                assert!((function.min..=function.max).contains(&count), "{}", definition.key);
            }
        }
    }

    #[test]
    fn what_changes_the_book_is_sensitive_and_what_needs_a_key_is_not_here() {
        for (definition, _) in rows() {
            let writes_rows = matches!(definition.target.as_str(), "row_put" | "row_patch" | "row_delete");
            assert_eq!(definition.sensitive, writes_rows, "{}", definition.key);
            assert!(definition.auth.is_empty() && definition.row_type != RowType::Agent, "{}", definition.key);
        }
    }
}
