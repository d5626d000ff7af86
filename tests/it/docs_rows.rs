//! The pages about one type of row: their commands run as printed, and what stands in their tables is tried. A provider
//! on loopback stands for the one of the page about agents.

use std::collections::BTreeSet;

use callbook_domain::function::FUNCTIONS;
use callbook_tests::provider::{Asked, Form, MODEL_KEY, Provider, Say};
use callbook_tests::world::World;
use callbook_tests::{database, skipped};
use serde_json::{Value, json};

use crate::docs::{Reading, block_of, blocks_of, code, fits, read, table};

/// The provider of the page about agents.
const MODELS: &str = "https://api.x.ai";
/// The database that `sql_query` reads; an empty one stands for it.
const SHOP: &str = "postgres://reader@db.example/shop";

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_requests_runs_as_printed() {
    let text = read("docs/rows/http.md");
    let (settings, token) = (block_of(&text, "toml"), ("WEATHER_TOKEN", "a-token-of-the-weather-service"));
    let reading = Reading::of("docs/rows/http.md", text, &settings, &[token], &[]).await;
    tokio::task::spawn_blocking(move || reading.check()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_flows_runs_as_printed() {
    let reading = Reading::of("docs/rows/flow.md", read("docs/rows/flow.md"), "", &[], &[]).await;
    tokio::task::spawn_blocking(move || reading.check()).await.unwrap();
}

fn weather_helper(_: usize, asked: &Asked) -> Say {
    match asked.messages.len() {
        1 => Say::call("ask", json!({"question": "current temperature at a place"})),
        3 => Say::call("contract", json!({"key": "TEMPERATURE"})),
        5 => Say::call("invoke", json!({"key": "TEMPERATURE", "body": "37.77|-122.42"})),
        _ => Say::text("It is 15.7 degrees in San Francisco."),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_agents_runs_as_printed() {
    let provider = Provider::start(Form::OpenaiChat, weather_helper).await;
    let origin = provider.upstream.origin();
    let text = read("docs/rows/agent.md").replace(MODELS, &origin);
    let settings = block_of(&text, "toml");
    let reading = Reading::of("docs/rows/agent.md", text, &settings, &[("XAI_KEY", MODEL_KEY)], &[origin]).await;
    tokio::task::spawn_blocking(move || reading.check()).await.unwrap();
    assert_eq!(provider.upstream.count(), 8, "each of the two runs asked four times");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_about_functions_runs_as_printed() {
    if !rustix::process::geteuid().is_root() {
        skipped("programs can be handed to another user by root alone");
        return;
    }
    let text = read("docs/rows/fn.md").replace(SHOP, &database::fresh().await);
    let settings = blocks_of(&text, "toml").concat();
    let reading = Reading::of("docs/rows/fn.md", text, &settings, &[], &[]).await;
    tokio::task::spawn_blocking(move || reading.check()).await.unwrap();
}

/// A deployment with the first settings of a page.
async fn deployment(page: &str) -> (World, String) {
    let text = read(page).replace(SHOP, &database::fresh().await);
    (World::with().toml(&block_of(&text, "toml")).start().await, text)
}

/// The arguments of a call as a cell has them: a JSON object or list, else pipe text.
fn sent(cell: &str) -> Value {
    match serde_json::from_str::<Value>(cell) {
        Ok(args) if args.is_object() || args.is_array() => json!({"args": args}),
        _ => json!({"body": cell}),
    }
}

fn http_row(target: &str, args: &str, template: &str) -> Value {
    let args = if args.is_empty() { String::new() } else { format!("# ARGS: {args}\n") };
    json!({"key": "TRIED", "type": "http", "target": target, "examples": ["x"], "content": format!("# WHAT: an example\n{args}{template}")})
}

/// What a row would send, or why it refuses: the URL of a shape, its body, or the error.
async fn shaped(world: &World, row: &Value, call: &str) -> [String; 3] {
    let put = world.put("TRIED", row).await;
    assert_eq!(put.status, 200, "{row}: {}", put.text);
    let mut request = sent(call);
    request["key"] = json!("TRIED");
    request["shape"] = json!(true);
    let answer = world.post("/api/dispatch", &request).await.json();
    ["url", "body", "error"].map(|field| answer[field].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn every_template_of_the_tables_becomes_what_stands_beside_it() {
    let (world, text) = deployment("docs/rows/http.md").await;
    world.create(&http_row("https://api.example.com/", "", "")).await;
    for row in table(&text, "### In an address") {
        let [target, args, call, becomes] = [0, 1, 2, 3].map(|at| code(&row[at]));
        let [url, _, error] = shaped(&world, &http_row(target, args, ""), call).await;
        assert_eq!(format!("{url}{error}"), becomes, "{row:?}");
    }
    for row in table(&text, "### In a body") {
        let [template, args, call, becomes] = [0, 1, 2, 3].map(|at| code(&row[at]));
        let target = "POST https://api.example.com/";
        let [_, body, error] = shaped(&world, &http_row(target, args, &template.replace("⏎", "\n")), call).await;
        assert_eq!(format!("{body}{error}"), becomes.replace('⏎', "\n"), "{row:?}");
    }
    for row in table(&text, "### Refused when the row is written") {
        let [target, template, becomes] = [0, 1, 2].map(|at| code(&row[at]));
        let checked = world.post("/api/directory/TRIED/test", &http_row(target, "", template)).await.json();
        let first = &checked["violations"][0];
        let said = format!(
            "{}: {}",
            first["code"].as_str().unwrap_or_default(),
            first["message"].as_str().unwrap_or_default()
        );
        assert!(fits(becomes, &said), "{row:?}: {checked}");
    }
    world.stop().await;
}

#[tokio::test]
async fn every_function_of_the_table_gives_what_stands_beside_it() {
    let (world, text) = deployment("docs/rows/fn.md").await;
    let mut documented = BTreeSet::new();
    let mut id = String::new();
    for row in table(&text, "## Functions") {
        let [name, template, call, gives] = [0, 3, 4, 5].map(|at| code(&row[at]));
        let function = callbook_domain::function::find(name).unwrap_or_else(|| panic!("there is no function {name}"));
        assert_eq!(row[1], function.effect.as_str(), "{name}");
        documented.insert(function.name);
        let key = format!("T_{}", name.to_uppercase());
        let content = format!("# WHAT: an example\n# EX: x\n{template}");
        let put = world.put(&key, &json!({"key": key, "type": "fn", "target": name, "content": content})).await;
        assert!(put.status < 300 || put.status == 404, "{}", put.text);
        if put.status == 404 {
            world.create(&json!({"key": key, "type": "fn", "target": name, "content": content})).await;
        }
        let mut request = sent(&call.replace("inv_…", &id));
        request["key"] = json!(key);
        let answer = world.post("/api/dispatch", &request).await;
        let result = answer.json()["result"].as_str().unwrap_or(&answer.text).to_owned();
        assert!(fits(gives, &result), "{row:?}: {result}");
        id = answer.id();
    }
    let all: BTreeSet<&str> = FUNCTIONS.iter().map(|function| function.name).collect();
    assert_eq!(documented, all);
    world.stop().await;
}
