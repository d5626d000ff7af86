//! Rows as tests write them, and the requests by which they are written.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::door::{Answer, Door, send};

/// A row that gives its one argument back.
pub fn echo(key: &str) -> Value {
    saying(key, "Give back what came")
}

/// The same row with other words for what it does.
pub fn saying(key: &str, what: &str) -> Value {
    let content = format!("# WHAT: {what}\n# ARGS: $1=text\n# EX: [{key}]hello[/{key}]\n# SAFE: yes");
    json!({"key": key, "type": "fn", "target": "echo", "content": content})
}

/// A row that asks an upstream; what the words after its docstring are is its body.
pub fn http(key: &str, target: &str, args: &str, template: &str) -> Value {
    let content = format!("# WHAT: Ask the upstream\n# ARGS: {args}\n{template}");
    json!({"key": key, "type": "http", "target": target, "content": content, "examples": ["example"]})
}

/// A row of steps.
pub fn flow(key: &str, steps: &str) -> Value {
    let content = format!("# WHAT: Do what belongs together\n# ARGS: $1=text\n{steps}");
    json!({"key": key, "type": "flow", "content": content, "examples": ["example"]})
}

/// A model with a prompt.
pub fn agent(key: &str, prompt: &str) -> Value {
    let content = format!("# WHAT: Help with a request\n# ARGS: $1=request\n{prompt}");
    json!({"key": key, "type": "agent", "target": "gpt-4.1-mini", "content": content, "examples": ["example"]})
}

/// The row with other columns.
pub fn with(mut row: Value, columns: &Value) -> Value {
    for (name, value) in columns.as_object().unwrap() {
        row[name] = value.clone();
    }
    row
}

impl Door {
    /// A PUT of a row as the owner.
    pub async fn put(&self, key: &str, row: &Value) -> Answer {
        send(self.owner(Method::PUT, &format!("/api/directory/{key}")).json(row)).await
    }

    /// A PATCH of a row as the owner.
    pub async fn patch(&self, key: &str, columns: &Value) -> Answer {
        send(self.owner(Method::PATCH, &format!("/api/directory/{key}")).json(columns)).await
    }

    /// A PATCH that must be taken.
    pub async fn change(&self, key: &str, columns: &Value) -> Value {
        let answer = self.patch(key, columns).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// Takes a row out as the owner.
    pub async fn delete(&self, key: &str) -> Value {
        let answer = send(self.owner(Method::DELETE, &format!("/api/directory/{key}"))).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// A row as the owner sees it; it must be there.
    pub async fn row(&self, key: &str) -> Value {
        let answer = self.get(&format!("/api/directory/{key}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    /// An import as the owner; `how` is the query.
    pub async fn import(&self, how: &str, text: impl Into<reqwest::Body>) -> Answer {
        let request = self.owner(Method::POST, &format!("/api/directory:import{how}"));
        send(request.header("content-type", "application/x-ndjson").body(text)).await
    }

    /// The whole book as the owner exports it.
    pub async fn export(&self) -> String {
        let answer = self.get("/api/directory:export").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.text
    }

    /// Calls a row with typed arguments as the owner.
    pub async fn call(&self, key: &str, args: &Value) -> Answer {
        self.post("/api/dispatch", &json!({"key": key, "args": args})).await
    }

    /// A GET without a credential.
    pub async fn look(&self, path: &str) -> Answer {
        send(self.anyone(Method::GET, path)).await
    }

    /// Lets a principal in and gives its API key.
    pub async fn principal(&self, name: &str, grants: &Value) -> String {
        let answer = self.post("/api/principals", &json!({"name": name, "grants": grants})).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["api_key"].as_str().unwrap().to_owned()
    }

    /// A request with an API key.
    pub fn bearer(&self, api_key: &str, method: Method, path: &str) -> RequestBuilder {
        self.anyone(method, path).bearer_auth(api_key)
    }
}
