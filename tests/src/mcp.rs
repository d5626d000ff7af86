//! An MCP client of either era that sends one message at a time and keeps nothing.

use callbook::node::{Node, Role};
use callbook_domain::clock::Clock;
use callbook_runtime::settings::{Overrides, Settings};
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::door::{Answer, Door, send};
use crate::world::{OWNER, keys};

/// The revision whose requests carry everything themselves.
pub const MODERN: &str = "2026-07-28";
/// The newest revision before it.
pub const LEGACY: &str = "2025-11-25";

/// A client at one address of a gateway.
#[derive(Clone)]
pub struct Client {
    door: Door,
    path: String,
    key: Option<String>,
    capabilities: Value,
    headers: Vec<(String, String)>,
    is_modern: bool,
}

impl Client {
    /// A client of the modern era with the owner's credential.
    pub fn modern(door: &Door, path: &str) -> Client {
        Client {
            door: door.clone(),
            path: path.to_owned(),
            key: Some(OWNER.to_owned()),
            capabilities: json!({}),
            headers: Vec::new(),
            is_modern: true,
        }
    }

    /// A client of the older era with the owner's credential.
    pub fn legacy(door: &Door, path: &str) -> Client {
        Client { is_modern: false, ..Client::modern(door, path) }
    }

    /// The client with another credential, or none.
    pub fn with_key(mut self, key: Option<&str>) -> Client {
        self.key = key.map(str::to_owned);
        self
    }

    /// The client with capabilities that it declares.
    pub fn able(mut self, capabilities: Value) -> Client {
        self.capabilities = capabilities;
        self
    }

    /// The client with one more header.
    pub fn header(mut self, name: &str, value: &str) -> Client {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The client at another gateway.
    pub fn at(mut self, door: &Door) -> Client {
        self.door = door.clone();
        self
    }

    /// The HTTP request of a method.
    pub fn request(&self, method: &str, mut params: Value) -> RequestBuilder {
        let mut request = self.door.anyone(Method::POST, &self.path);
        request = request.header("accept", "application/json, text/event-stream");
        let version = if self.is_modern { MODERN } else { LEGACY };
        request = request.header("mcp-protocol-version", version);
        if self.is_modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(MODERN);
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
            request = request.header("mcp-method", method);
            if let Some(name) = params["name"].as_str().or(params["uri"].as_str()) {
                request = request.header("mcp-name", name);
            }
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        if let Some(key) = &self.key {
            request = request.bearer_auth(key);
        }
        request.json(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}))
    }

    /// Sends a method and reads the whole answer.
    pub async fn send(&self, method: &str, params: Value) -> Answer {
        send(self.request(method, params)).await
    }

    /// The result of a method; it must have one.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        let answer = self.send(method, params).await;
        let message = last(&answer);
        assert_eq!(answer.status, 200, "{}", answer.text);
        assert!(message["result"].is_object(), "{}", answer.text);
        message["result"].clone()
    }

    /// The code of a method's refusal; it must have one.
    pub async fn refused(&self, method: &str, params: Value) -> (u16, i64) {
        let answer = self.send(method, params).await;
        let code = last(&answer)["error"]["code"].as_i64();
        (answer.status, code.unwrap_or_else(|| panic!("not refused: {}", answer.text)))
    }

    /// Calls a tool.
    pub async fn call(&self, name: &str, arguments: Value) -> Value {
        self.ask("tools/call", json!({"name": name, "arguments": arguments})).await
    }

    /// Every page of a listing.
    pub async fn all(&self, method: &str, field: &str) -> Vec<Value> {
        let mut found = Vec::new();
        let mut params = json!({});
        loop {
            let page = self.ask(method, params.clone()).await;
            found.extend(page[field].as_array().unwrap().clone());
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return found,
            }
        }
    }
}

/// The last message of an answer, whole or as a stream.
pub fn last(answer: &Answer) -> Value {
    messages(&answer.text).pop().unwrap_or(Value::Null)
}

/// The messages of an answer.
pub fn messages(text: &str) -> Vec<Value> {
    if let Ok(whole) = serde_json::from_str(text) {
        return vec![whole];
    }
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect()
}

/// The texts of a tool's result, joined.
pub fn text(result: &Value) -> String {
    let blocks = result["content"].as_array().cloned().unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// One more gateway in front of a deployment's services, with nothing of its own.
pub async fn gateway(grpc: &str) -> (Door, Node) {
    let at = grpc.trim_start_matches("http://").to_owned();
    let settings = Settings::load(Overrides {
        http: Some("127.0.0.1:0".to_owned()),
        admin: Some("127.0.0.1:0".to_owned()),
        resolver: Some(at.clone()),
        contract: Some(at.clone()),
        gate: Some(at.clone()),
        executors: Some(format!("default={at}")),
        ..Overrides::default()
    })
    .unwrap();
    let node = Node::start(&settings, &[Role::Gateway].into(), &keys(), Clock::system()).await.unwrap();
    (Door::at(format!("http://{}", node.http.unwrap())), node)
}
