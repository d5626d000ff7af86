//! The public sets: rows and questions.

use std::path::Path;

use callbook_domain::key::Key;
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_ranking::{Entry, Index, Question, Ranked};
use serde_json::Value;

pub struct Set {
    pub name: &'static str,
    pub entries: Vec<Entry>,
    pub asked: Vec<Asked>,
    pub index: Index,
}

pub struct Asked {
    pub text: String,
    pub gold: Vec<Key>,
}

impl Set {
    /// The set of this name; nl2bash asks the rows of tldr.
    pub fn load(folder: &Path, name: &'static str) -> Option<Set> {
        let rows = if name == "nl2bash" { "tldr" } else { name };
        let entries: Vec<Entry> = lines(&folder.join(rows).join("tools.jsonl"))?.iter().map(entry).collect();
        let asked = lines(&folder.join(name).join("queries.jsonl"))?.iter().map(asked).collect();
        let index = Index::build(entries.iter().cloned());
        assert_eq!(index.len(), entries.len(), "keys that differ stay different");
        Some(Set { name, entries, asked, index })
    }

    pub fn ask(&self, text: &str, abstain: bool, limit: usize) -> Ranked {
        self.index.ask(&Question { abstain, limit, ..Question::new(text) }, &|_| true)
    }
}

fn lines(path: &Path) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.lines().map(|line| serde_json::from_str(line).expect("a set holds JSON lines")).collect())
}

fn text<'v>(value: &'v Value, name: &str) -> &'v str {
    value[name].as_str().unwrap_or_default()
}

/// An id as a key: what a key may not hold becomes `_`.
fn key(id: &str) -> Key {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    let id: String = id.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    Key::parse(&id).or_else(|_| Key::parse(&format!("_{id}"))).expect("a sanitised id is a key")
}

fn entry(tool: &Value) -> Entry {
    let description = text(tool, "description");
    let (what, when_to_use) = description.split_once("WHEN_TO_USE:").unwrap_or((description, ""));
    let parameters = tool["params"].as_array().map(Vec::as_slice).unwrap_or_default();
    Entry {
        key: key(text(tool, "id")),
        category: tool["category"].as_str().map(str::to_owned),
        row_type: RowType::Fn,
        effect: Effect::Read,
        risk: Risk::Low,
        planner_rank: 100,
        what: what.trim_start_matches("WHAT:").to_owned(),
        when_to_use: when_to_use.to_owned(),
        arguments: parameters.iter().map(|p| (text(p, "name").to_owned(), text(p, "description").to_owned())).collect(),
        notes: String::new(),
        third_party: false,
    }
}

fn asked(query: &Value) -> Asked {
    let gold = query["gold"].as_array().map(Vec::as_slice).unwrap_or_default();
    Asked { text: text(query, "query").to_owned(), gold: gold.iter().filter_map(Value::as_str).map(key).collect() }
}
