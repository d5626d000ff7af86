//! The catalogue runs: every row that can be called is called with the example of its own contract, against one upstream
//! that stands for all.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;

use callbook_tests::secrets::Secrets;
use callbook_tests::shared;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use futures::StreamExt as _;
use serde_json::{Value, json};

/// Calls at the same time.
const AT_ONCE: usize = 16;

/// The rows with their upstreams moved to one origin, and the names of the secrets that they use.
fn moved(text: &str, origin: &str) -> (String, BTreeSet<String>) {
    let (mut rows, mut names) = (String::new(), BTreeSet::new());
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let mut row: Value = serde_json::from_str(line).unwrap();
        if row["type"] == "http" {
            let target = row["target"].as_str().unwrap();
            let (method, url) = target.split_once(' ').unwrap();
            let path = url.splitn(4, '/').nth(3).unwrap_or_default();
            row["target"] = json!(format!("{method} {origin}/{path}"));
            names.extend(secret_names(row["auth"].as_str().unwrap_or_default()));
        }
        rows.push_str(&row.to_string());
        rows.push('\n');
    }
    (rows, names)
}

fn secret_names(auth: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    let words = auth.split(|c: char| !is_name(c)).filter(|word| word.contains('_') && word.len() > 3);
    words.map(str::to_owned).collect()
}

/// What became of a call, in a word, and the answer where it is worth a look.
async fn outcome(world: &World, row: &Value) -> (String, String) {
    let key = row["key"].as_str().unwrap();
    let contract = world.get(&format!("/api/dispatch?key={key}")).await.json();
    let mut call = json!({"key": key});
    match (&contract["example"]["args"], &contract["example"]["body"]) {
        (Value::Null, Value::Null) => {}
        (Value::Null, body) => call["body"] = body.clone(),
        (args, _) => call["args"] = args.clone(),
    }
    let needs_others = row["type"] == "agent" || row["target"].as_str().unwrap_or_default().starts_with("mcp:");
    if needs_others {
        call["shape"] = json!(true);
    }
    let answer = world.post("/api/dispatch", &call).await;
    let body = answer.json();
    let word = match (answer.status, needs_others, body["ok"].as_bool()) {
        (200, true, _) => "shaped".to_owned(),
        (200, false, Some(true)) => "ok".to_owned(),
        (200, false, _) => format!("failed {}", body["error"]["code"].as_str().unwrap_or_default()),
        (status, _, _) => format!("refused {status} {}", answer.error()),
    };
    (word, format!("{call} gave {}", answer.text))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_row_of_the_catalogue_is_called_with_its_example_and_none_ends_in_our_mistake() {
    let Some(path) = shared("catalogue/rows.ndjson") else { return };
    let upstream = Upstream::start(|_| answered(200, r#"{"id":"1","items":[{"id":"1"}]}"#)).await;
    let (rows, names) = moved(&std::fs::read_to_string(path).unwrap(), &upstream.origin());
    let values: Vec<(String, String)> =
        names.into_iter().map(|name| (name.clone(), format!("value-of-{name}"))).collect();
    let pairs: Vec<(&str, &str)> = values.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let secrets = Secrets::bound_to(&upstream.origin(), &pairs);
    let world = secrets.give(World::with().allow(&[upstream.origin()])).start().await;
    let told = world.import("", rows.clone()).await;
    assert_eq!(told.json()["created"], 891, "{}", told.text);

    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let callable = rows.iter().filter(|row| row["enabled"] != 0 && row["target"] != "prompt_block");
    let calls = callable.map(|row| {
        let world = &world;
        async move { (row, outcome(world, row).await) }
    });
    let ended: Vec<(&Value, (String, String))> = futures::stream::iter(calls).buffer_unordered(AT_ONCE).collect().await;

    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (row, (word, text)) in &ended {
        let kind = row["type"].as_str().unwrap();
        *counts.entry((kind.to_owned(), word.clone())).or_default() += 1;
        if word.contains("internal") || word.starts_with("refused 5") || (kind == "http" && word != "ok") {
            wrong.push(format!("{word}: {text}"));
        }
    }
    // past the capture of the test runner: what became of the catalogue is worth a look in every run
    let mut told = std::io::stderr();
    for ((kind, word), count) in &counts {
        writeln!(told, "  catalogue {kind:5} {word:50} {count}").unwrap();
    }
    assert!(wrong.is_empty(), "{} of {}: {:#?}", wrong.len(), ended.len(), &wrong[..wrong.len().min(5)]);
    let sent = ended.iter().filter(|(row, _)| row["type"] == "http").count();
    assert!(upstream.count() >= sent, "every http row reached its upstream");
    world.stop().await;
}
