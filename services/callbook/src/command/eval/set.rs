//! A catalogue and the questions over it, as they lie in a folder.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use callbook_domain::key::{Key, MAX_KEY};
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_ranking::{Entry, Index};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A catalogue, indexed, and its questions.
pub struct Set {
    /// The folder's name.
    pub name: String,
    /// Its tools as rows.
    pub index: Index,
    /// The questions.
    pub asked: Vec<Asked>,
    /// How many right answers name no tool.
    pub dangling: usize,
}

/// A question and the rows that answer it; none where nothing does.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    /// The question.
    pub text: String,
    /// The rows, each once.
    pub right: Vec<Key>,
    /// How many answers are right, those too that are no row.
    pub rights: usize,
}

#[derive(Deserialize)]
struct Tool {
    id: String,
    #[serde(default)]
    description: String,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    params: Vec<Parameter>,
}

#[derive(Deserialize)]
struct Parameter {
    name: String,
    #[serde(default)]
    description: Option<String>,
}

#[derive(Deserialize)]
struct Query {
    query: String,
    gold: Vec<String>,
}

impl Set {
    /// Reads a folder; `tools` is the file with the tools where it is not the folder's own.
    ///
    /// # Errors
    /// A file that is missing or has nothing in it; a line that is not what it should be; an id that comes twice.
    pub fn read(folder: &Path, tools: Option<&Path>) -> Result<Set> {
        let own = folder.join("tools.jsonl");
        let file = tools.unwrap_or(&own);
        let tools: Vec<Tool> = lines(file).with_context(|| match file == own {
            true => "the tools could not be read; --tools names a file elsewhere",
            false => "the tools could not be read",
        })?;
        let queries: Vec<Query> = lines(&folder.join("queries.jsonl")).context("the questions could not be read")?;
        let keys = keys(&tools).with_context(|| file.display().to_string())?;
        let mut dangling = 0;
        let asked = queries.into_iter().map(|query| {
            let asked = Asked::of(query, &keys);
            dangling += asked.rights - asked.right.len();
            asked
        });
        let asked = asked.collect();
        let index = Index::build(tools.iter().filter_map(|tool| Some(entry(tool, keys.get(tool.id.as_str())?))));
        let name = fs::canonicalize(folder)?;
        let name = name.file_name().map_or_else(|| ".".to_owned(), |name| name.to_string_lossy().into_owned());
        Ok(Set { name, index, asked, dangling })
    }
}

impl Asked {
    fn of(query: Query, keys: &HashMap<&str, Key>) -> Asked {
        let ids: HashSet<&str> = query.gold.iter().map(String::as_str).collect();
        let mut right: Vec<Key> = ids.iter().filter_map(|id| keys.get(id).cloned()).collect();
        right.sort_unstable();
        Asked { text: query.query, right, rights: ids.len() }
    }
}

fn lines<T: DeserializeOwned>(file: &Path) -> Result<Vec<T>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = lines
        .map(|(at, line)| serde_json::from_str(line).with_context(|| format!("{} line {}", file.display(), at + 1)));
    let read = read.collect::<Result<Vec<T>>>()?;
    if read.is_empty() {
        bail!("{} is empty", file.display());
    }
    Ok(read)
}

/// A key for every id. What a key may not hold becomes `_`, dots too, for they would make namespaces; ids that come out
/// alike are numbered in their order.
fn keys(tools: &[Tool]) -> Result<HashMap<&str, Key>> {
    let (mut keys, mut taken) = (HashMap::new(), HashSet::new());
    for tool in tools {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        let mut plain: String = tool.id.chars().map(allowed).collect();
        if !plain.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
            plain.insert(0, '_');
        }
        let candidates = (1..).map(|number| match number {
            1 => plain.chars().take(MAX_KEY).collect(),
            _ => format!("{}_{number}", plain.chars().take(MAX_KEY - 8).collect::<String>()),
        });
        let free = candidates.filter(|key: &String| !taken.contains(key)).take(tools.len() + 1);
        let Some(key) = free.filter_map(|key| Key::parse(&key).ok()).next() else {
            bail!("no key can be made of the id `{}`", tool.id.escape_debug());
        };
        taken.insert(key.as_str().to_owned());
        if keys.insert(tool.id.as_str(), key).is_some() {
            bail!("the id `{}` comes twice", tool.id.escape_debug());
        }
    }
    Ok(keys)
}

/// The row that the tool would be: as an import writes it and the resolver reads it.
fn entry(tool: &Tool, key: &Key) -> Entry {
    let (what, when_to_use) = tool.description.split_once("WHEN_TO_USE:").unwrap_or((&tool.description, ""));
    let meaning = |parameter: &Parameter| parameter.description.clone().unwrap_or_default();
    Entry {
        key: key.clone(),
        category: tool.category.clone(),
        row_type: RowType::Fn,
        effect: Effect::Read,
        risk: Risk::Low,
        planner_rank: 100,
        what: what.trim_start_matches("WHAT:").to_owned(),
        when_to_use: when_to_use.to_owned(),
        arguments: tool.params.iter().map(|parameter| (parameter.name.clone(), meaning(parameter))).collect(),
        notes: String::new(),
        third_party: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(tools: &str, queries: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tools.jsonl"), tools).unwrap();
        fs::write(folder.path().join("queries.jsonl"), queries).unwrap();
        folder
    }

    fn refusal(tools: &str, queries: &str) -> String {
        format!("{:#}", Set::read(folder(tools, queries).path(), None).err().unwrap())
    }

    const QUERY: &str = r#"{"query":"q","gold":[]}"#;

    #[test]
    fn ids_become_keys_that_differ() {
        let tools = ["a.b", "a_b", "a b", "9 lives", "\u{5929}", &"x".repeat(300), &"x".repeat(301)];
        let lines = tools.map(|id| serde_json::json!({"id": id}).to_string()).join("\n");
        let queries = r#"{"query":"q","gold":["a.b","a b","a b","gone"]}"#;
        let set = Set::read(folder(&lines, queries).path(), None).unwrap();
        assert_eq!(set.index.len(), tools.len());
        assert_eq!(set.dangling, 1);
        let right: Vec<&str> = set.asked[0].right.iter().map(Key::as_str).collect();
        assert_eq!((right, set.asked[0].rights), (vec!["a_b", "a_b_3"], 3));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_with_its_line() {
        assert!(
            refusal("{\"id\":\"A\"}\n\n{\"name\":\"B\"}", QUERY).contains("tools.jsonl line 3: missing field `id`")
        );
        assert!(refusal("{\"id\":\"A\"}\nnot json", QUERY).contains("tools.jsonl line 2: expected"));
        assert!(refusal("{\"id\":\"A\"}\n{\"id\":\"A\"}", QUERY).contains("the id `A` comes twice"));
        assert!(refusal("{\"id\":\"A\"}", "{\"query\":\"q\"}").contains("queries.jsonl line 1: missing field `gold`"));
        assert!(refusal("{\"id\":\"A\"}", "\n").contains("queries.jsonl is empty"));
        let absent = tempfile::tempdir().unwrap();
        let refused = format!("{:#}", Set::read(absent.path(), None).err().unwrap());
        assert!(refused.contains("--tools") && refused.contains("tools.jsonl"), "{refused}");
    }
}
