//! The pages about one type of row: their commands run as printed. A provider on loopback stands for the one of the page
//! about agents.

use callbook_tests::provider::{Asked, Form, MODEL_KEY, Provider, Say};
use callbook_tests::skipped;

use crate::docs::{Reading, block_of, read};

/// The provider of the page about agents.
const MODELS: &str = "https://api.x.ai";

fn weather_helper(_: usize, asked: &Asked) -> Say {
    match asked.messages.len() {
        1 => Say::call("ask", serde_json::json!({"question": "current temperature at a place"})),
        3 => Say::call("contract", serde_json::json!({"key": "TEMPERATURE"})),
        5 => Say::call("invoke", serde_json::json!({"key": "TEMPERATURE", "body": "37.77|-122.42"})),
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
    let text = read("docs/rows/fn.md");
    let settings = block_of(&text, "toml");
    let reading = Reading::of("docs/rows/fn.md", text, &settings, &[], &[]).await;
    tokio::task::spawn_blocking(move || reading.check()).await.unwrap();
}
