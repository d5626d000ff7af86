//! `callbook mcp`: the gateway's MCP surface over standard input and output, for hosts that only start local servers.
//!
//! Every line is one message and becomes one POST; what comes back becomes lines. The process knows nothing of the book:
//! it only carries the headers that HTTP wants beside the messages.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use clap::{Args, ValueEnum};
use data_encoding::BASE64;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines, Stdin, Stdout};
use tokio::task::{AbortHandle, JoinSet};

use super::gateway::Gateway;
use super::screen::Screen;
use super::trouble::Trouble;
use super::{Ended, Verdict};

const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
/// The longest line that is passed on, in bytes; the gateway's own bound is below it.
const LONGEST: usize = 64 * 1024 * 1024;

/// What a model gets to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Surface {
    /// Four tools, whatever the size of the book
    Four,
    /// One tool a row
    Tools,
}

#[derive(Debug, Args)]
#[command(after_help = "A host starts it and speaks MCP with it over standard input and output.

Examples:
  callbook mcp
  CALLBOOK_URL=https://book.example callbook mcp --surface tools --category weather")]
pub struct Mcp {
    /// four: ask, contract, invoke and receipt; tools: one tool a row
    #[arg(long, value_enum, default_value_t = Surface::Four)]
    surface: Surface,
    /// With --surface tools: only rows of this category
    #[arg(long, value_name = "NAME")]
    category: Option<String>,
    /// With --surface tools: only rows whose key begins so
    #[arg(long, value_name = "KEY")]
    prefix: Option<String>,
}

impl Mcp {
    pub async fn run(self, to: &Gateway, _: &Screen) -> Ended {
        let bridge = Arc::new(Bridge::new(self));
        let mut lines = BufReader::new(tokio::io::stdin()).lines();
        let mut open = JoinSet::new();
        while let Some(line) = next(&mut lines).await? {
            let Ok(message) = serde_json::from_str::<Value>(&line) else {
                bridge.write(&refusal(&Value::Null, -32_700, "the line is not JSON")).await?;
                continue;
            };
            if bridge.cancels(&message) {
                continue;
            }
            let request = bridge.request(to, &message, line)?;
            let id = message.get("id").cloned();
            let (bridge_of_task, of_task) = (Arc::clone(&bridge), id.clone());
            let task = open.spawn(async move { bridge_of_task.exchange(request, of_task).await });
            if let Some(id) = id {
                bridge.began(id, task);
            }
            while open.try_join_next().is_some() {}
        }
        // The host closed its end: what is still open has nobody to hear of it.
        open.shutdown().await;
        Ok(Verdict::Done)
    }
}

async fn next(lines: &mut Lines<BufReader<Stdin>>) -> Result<Option<String>, Trouble> {
    loop {
        let line = lines.next_line().await;
        match line.map_err(|error| Trouble::Broken(format!("standard input cannot be read ({error})")))? {
            Some(line) if line.trim().is_empty() => {}
            Some(line) if line.len() > LONGEST => {
                return Err(Trouble::Broken(format!("a line is longer than {LONGEST} bytes")));
            }
            line => return Ok(line),
        }
    }
}

/// One host at one gateway.
struct Bridge {
    path: Vec<&'static str>,
    query: Vec<(&'static str, String)>,
    out: tokio::sync::Mutex<Stdout>,
    known: Mutex<Known>,
}

/// What the messages have told.
#[derive(Default)]
struct Known {
    /// The revision that `initialize` agreed on.
    agreed: Option<String>,
    /// Arguments that are repeated in headers, by tool.
    mirrored: HashMap<String, Vec<(Vec<String>, String)>>,
    /// Requests that wait, by the text of their id.
    open: HashMap<String, AbortHandle>,
}

impl Bridge {
    fn new(asked: Mcp) -> Self {
        let path = match asked.surface {
            Surface::Four => vec!["mcp"],
            Surface::Tools => vec!["mcp", "tools"],
        };
        let named = [("category", asked.category), ("prefix", asked.prefix)];
        let query = named.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
        Bridge { path, query, out: tokio::sync::Mutex::new(tokio::io::stdout()), known: Mutex::default() }
    }

    /// Whether the message only takes an earlier one back: hanging up is how HTTP says that.
    fn cancels(&self, message: &Value) -> bool {
        if message["method"] != "notifications/cancelled" {
            return false;
        }
        let id = message["params"]["requestId"].to_string();
        if let Some(task) = self.known().open.remove(&id) {
            task.abort();
        }
        true
    }

    fn began(&self, id: Value, task: AbortHandle) {
        let mut known = self.known();
        known.open.retain(|_, task| !task.is_finished());
        known.open.insert(id.to_string(), task);
    }

    fn request(&self, to: &Gateway, message: &Value, line: String) -> Result<RequestBuilder, Trouble> {
        let mut request = to.json(Method::POST, &self.path, line)?.query(&self.query);
        // A stream of notices has no end of its own.
        request = request.timeout(std::time::Duration::from_secs(24 * 3_600));
        request = request.header("accept", "application/json, text/event-stream");
        for (name, value) in self.headers(message) {
            request = request.header(name, value);
        }
        Ok(request)
    }

    /// The headers that repeat what a message says.
    fn headers(&self, message: &Value) -> Vec<(String, String)> {
        let (method, params) = (message["method"].as_str().unwrap_or_default(), &message["params"]);
        let Some(version) = params["_meta"][VERSION_KEY].as_str() else {
            let agreed = self.known().agreed.clone().filter(|_| method != "initialize");
            return agreed.map(|version| ("mcp-protocol-version".to_owned(), version)).into_iter().collect();
        };
        let mut headers = vec![("mcp-protocol-version".to_owned(), version.to_owned())];
        headers.push(("mcp-method".to_owned(), encoded(method)));
        let about = if method == "resources/read" { &params["uri"] } else { &params["name"] };
        if let Some(name) = about.as_str().filter(|_| matches!(method, "tools/call" | "prompts/get" | "resources/read"))
        {
            headers.push(("mcp-name".to_owned(), encoded(name)));
            let mirrored = self.known().mirrored.get(name).cloned().unwrap_or_default();
            headers.extend(mirrored.into_iter().filter_map(|(path, suffix)| {
                let value = path.iter().try_fold(&params["arguments"], |value, name| value.get(name))?;
                let text = match value {
                    Value::String(text) => encoded(text),
                    Value::Bool(_) | Value::Number(_) => value.to_string(),
                    Value::Null | Value::Array(_) | Value::Object(_) => return None,
                };
                Some((format!("mcp-param-{suffix}"), text))
            }));
        }
        headers
    }

    /// Sends a message and writes what comes back. What breaks on the way is the answer to the message.
    async fn exchange(&self, request: RequestBuilder, id: Option<Value>) {
        let told = match request.send().await {
            Ok(response) => self.pass_on(response, id.as_ref()).await,
            Err(error) => Err(format!("the gateway cannot be reached: {}", error.without_url())),
        };
        if let (Err(why), Some(id)) = (told, id) {
            // Nobody reads any more where this fails.
            let _ = self.write(&refusal(&id, -32_603, &why)).await;
        }
    }

    async fn pass_on(&self, mut response: Response, id: Option<&Value>) -> Result<(), String> {
        let broke = |error: reqwest::Error| format!("the answer broke off: {}", error.without_url());
        if response.status() == StatusCode::ACCEPTED {
            return Ok(());
        }
        let media_type = response.headers().get("content-type").and_then(|told| told.to_str().ok()).unwrap_or_default();
        if !media_type.starts_with("text/event-stream") {
            let status = response.status();
            let body = response.text().await.map_err(broke)?;
            return match serde_json::from_str::<Value>(&body) {
                Ok(message) if message["jsonrpc"] == "2.0" && id.is_some() => self.tell(&message, &body).await,
                Ok(_) | Err(_) => Err(format!("the gateway answers {status}: {body}")),
            };
        }
        let mut rest = Vec::new();
        while let Some(piece) = response.chunk().await.map_err(broke)? {
            rest.extend_from_slice(&piece);
            while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line);
                let Some(data) = line.trim_end().strip_prefix("data:") else { continue };
                if let Ok(message) = serde_json::from_str(data) {
                    self.tell(&message, data.trim()).await?;
                }
            }
        }
        Ok(())
    }

    /// Writes a message for the host, and remembers what later requests need of it.
    async fn tell(&self, message: &Value, text: &str) -> Result<(), String> {
        let result = &message["result"];
        if let Some(version) = result["protocolVersion"].as_str() {
            self.known().agreed = Some(version.to_owned());
        }
        for tool in result["tools"].as_array().into_iter().flatten() {
            let mut found = Vec::new();
            mirrored(&tool["inputSchema"], &mut Vec::new(), &mut found);
            if let Some(name) = tool["name"].as_str().filter(|_| !found.is_empty()) {
                self.known().mirrored.insert(name.to_owned(), found);
            }
        }
        let line = text.replace(['\r', '\n'], " ");
        self.write(&line).await.map_err(|trouble| trouble.lines().join(" "))
    }

    async fn write(&self, line: &str) -> Result<(), Trouble> {
        let mut out = self.out.lock().await;
        let broken = |error: std::io::Error| Trouble::Broken(format!("standard output cannot be written ({error})"));
        out.write_all(format!("{line}\n").as_bytes()).await.map_err(broken)?;
        out.flush().await.map_err(broken)
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// A value as a header can hold it.
fn encoded(text: &str) -> String {
    let is_plain = text.bytes().all(|byte| matches!(byte, 0x20..=0x7e)) && text.trim() == text;
    let looks_encoded = text.starts_with("=?base64?") && text.ends_with("?=");
    if is_plain && !looks_encoded { text.to_owned() } else { format!("=?base64?{}?=", BASE64.encode(text.as_bytes())) }
}

/// The arguments of a tool that its schema wants repeated in headers.
fn mirrored(schema: &Value, path: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
    let none = Map::new();
    for (name, told) in schema["properties"].as_object().unwrap_or(&none) {
        path.push(name.clone());
        if let Some(suffix) = told["x-mcp-header"].as_str() {
            found.push((path.clone(), suffix.to_owned()));
        }
        mirrored(told, path, found);
        path.pop();
    }
}

fn refusal(id: &Value, code: i64, message: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bridge() -> Bridge {
        Bridge::new(Mcp { surface: Surface::Tools, category: Some("weather".to_owned()), prefix: None })
    }

    #[test]
    fn a_message_of_the_modern_era_is_repeated_in_headers() {
        let bridge = bridge();
        let schema =
            json!({"properties": {"place": {"properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}});
        let mut found = Vec::new();
        mirrored(&schema, &mut Vec::new(), &mut found);
        bridge.known().mirrored.insert("T".to_owned(), found);
        let call = json!({"method": "tools/call", "params": {
            "name": "T", "arguments": {"place": {"region": "é"}}, "_meta": {VERSION_KEY: "2026-07-28"},
        }});
        let headers = bridge.headers(&call);
        let expected = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", "T"),
            ("mcp-param-Region", "=?base64?w6k=?="),
        ];
        assert_eq!(headers, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_message_of_the_older_era_carries_what_was_agreed_on() {
        let bridge = bridge();
        assert!(bridge.headers(&json!({"method": "initialize"})).is_empty());
        bridge.known().agreed = Some("2025-11-25".to_owned());
        let listed = bridge.headers(&json!({"method": "tools/list"}));
        assert_eq!(listed, [("mcp-protocol-version".to_owned(), "2025-11-25".to_owned())]);
    }

    #[test]
    fn what_a_header_cannot_hold_is_encoded() {
        assert_eq!(encoded("a b"), "a b");
        for odd in [" a", "é", "a\nb", "=?base64?YQ==?="] {
            assert!(encoded(odd).starts_with("=?base64?"), "{odd}");
        }
    }
}
