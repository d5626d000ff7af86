//! A provider of models: an HTTP server that speaks one of the two wire forms and says what its script says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, Bytes};
use axum::response::Response;
use futures::stream;
use serde_json::{Value, json};

use crate::upstream::{Seen, Upstream, json as answered};

/// The secret that it wants, by its value.
pub const MODEL_KEY: &str = "sk-of-the-model-7f3a9c2e51";

/// What the provider says.
#[derive(Clone, Debug)]
pub enum Say {
    /// A text.
    Text(String),
    /// Calls of functions: name and arguments.
    Calls(Vec<(&'static str, Value)>),
    /// A status, with a `retry-after` where one is given.
    Status(u16, Option<&'static str>),
    /// This body with status 200.
    Raw(&'static str),
    /// Half an answer, and the connection breaks.
    Broken,
    /// The model refuses.
    Refusal,
}

impl Say {
    /// A text.
    pub fn text(text: impl Into<String>) -> Say {
        Say::Text(text.into())
    }

    /// One call.
    pub fn call(name: &'static str, arguments: Value) -> Say {
        Say::Calls(vec![(name, arguments)])
    }
}

/// The wire form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `/chat/completions`
    OpenaiChat,
    /// `/messages`
    AnthropicMessages,
}

/// Every answer takes 100 tokens in and 10 out. With the prices of [`Provider::toml`] it costs 0.2 USD.
pub const COST: f64 = 0.2;

/// A running provider.
pub struct Provider {
    /// Its server.
    pub upstream: Upstream,
    form: Form,
}

/// What a request said, whatever its form.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The system text.
    pub system: String,
    /// The role and the text of each message, results of calls among them.
    pub messages: Vec<(String, String)>,
    /// The names of the functions that the model is offered.
    pub functions: Vec<String>,
    /// The whole body.
    pub body: Value,
}

impl Asked {
    /// The text of the last message.
    pub fn last(&self) -> &str {
        self.messages.last().map_or("", |(_, text)| text)
    }
}

impl Provider {
    /// A provider whose script gets the number of the request, from 0, and what it said.
    pub async fn start(form: Form, script: impl Fn(usize, &Asked) -> Say + Send + Sync + 'static) -> Provider {
        let (count, script) = (Arc::new(AtomicUsize::new(0)), Arc::new(script));
        let upstream = Upstream::thinking(move |seen| {
            let at = count.fetch_add(1, Ordering::SeqCst);
            let said = script(at, &read(form, &seen));
            async move { respond(form, &said) }
        });
        Provider { upstream: upstream.await, form }
    }

    /// Its settings: a provider `lab` for every model `lab-…`, whose secret is `MODEL_KEY`.
    pub fn toml(&self) -> String {
        let (origin, form) = (self.upstream.origin(), self.form());
        format!(
            "[secrets.MODEL_KEY]\norigins = [\"{origin}\"]\n[providers.lab]\nbase_url = \"{origin}/v1\"\n\
             form = \"{form}\"\nsecret = \"MODEL_KEY\"\nmodels = [\"lab-*\"]\n\
             prices = {{ \"lab-*\" = {{ input = 1000.0, output = 10000.0 }} }}\n"
        )
    }

    fn form(&self) -> &'static str {
        match self.form {
            Form::OpenaiChat => "openai-chat",
            Form::AnthropicMessages => "anthropic-messages",
        }
    }

    /// What it was asked, in order.
    pub fn asked(&self) -> Vec<Asked> {
        self.upstream.seen().iter().map(|seen| read(self.form, seen)).collect()
    }
}

fn read(form: Form, seen: &Seen) -> Asked {
    let body: Value = serde_json::from_slice(&seen.body).unwrap();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |content: &Value| match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let part = |part: &Value| part["text"].as_str().or(part["content"].as_str()).unwrap_or_default().to_owned();
            parts.iter().map(part).collect()
        }
        _ => String::new(),
    };
    let message = |message: &Value| (message["role"].as_str().unwrap().to_owned(), text(&message["content"]));
    let mut messages: Vec<(String, String)> = list(&body["messages"]).iter().map(message).collect();
    let (path, system, functions) = match form {
        Form::OpenaiChat => {
            let (role, system) = messages.remove(0);
            assert_eq!(role, "system");
            let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
            ("/v1/chat/completions", system, list(&body["tools"]).iter().map(name).collect())
        }
        Form::AnthropicMessages => {
            let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
            let system = body["system"].as_str().unwrap().to_owned();
            ("/v1/messages", system, list(&body["tools"]).iter().map(name).collect())
        }
    };
    assert_eq!((seen.method.as_str(), seen.target.as_str()), ("POST", path));
    let key = match form {
        Form::OpenaiChat => seen.headers["authorization"].to_str().unwrap().trim_start_matches("Bearer ").to_owned(),
        Form::AnthropicMessages => {
            assert_eq!(seen.headers["anthropic-version"], "2023-06-01");
            seen.headers["x-api-key"].to_str().unwrap().to_owned()
        }
    };
    assert_eq!(key, MODEL_KEY);
    Asked { system, messages, functions, body }
}

fn respond(form: Form, said: &Say) -> Response<Body> {
    match said {
        Say::Status(status, wait) => {
            let mut response = answered(*status, r#"{"error":{"message":"not now"}}"#);
            if let Some(wait) = wait {
                response.headers_mut().insert("retry-after", wait.parse().unwrap());
            }
            response
        }
        Say::Raw(body) => answered(200, body),
        Say::Broken => {
            let pieces = [Ok(Bytes::from_static(b"{\"choices\":[")), Err(std::io::Error::other("gone"))];
            Response::builder()
                .header("content-type", "application/json")
                .body(Body::from_stream(stream::iter(pieces)))
                .unwrap()
        }
        Say::Text(_) | Say::Calls(_) | Say::Refusal => answered(200, &body(form, said).to_string()),
    }
}

fn body(form: Form, said: &Say) -> Value {
    let (text, calls): (&str, &[(&str, Value)]) = match said {
        Say::Text(text) => (text, &[]),
        Say::Calls(calls) => ("", calls),
        _ => ("", &[]),
    };
    let refuses = matches!(said, Say::Refusal);
    match form {
        Form::OpenaiChat => {
            let call = |(at, (name, arguments)): (usize, &(&str, Value))| {
                json!({"id": format!("call_{at}"), "type": "function",
                       "function": {"name": name, "arguments": arguments.to_string()}})
            };
            let calls: Vec<Value> = calls.iter().enumerate().map(call).collect();
            let refusal = if refuses { json!("I will not") } else { Value::Null };
            let mut message = json!({"role": "assistant", "content": text, "refusal": refusal});
            if !calls.is_empty() {
                message["tool_calls"] = json!(calls);
            }
            json!({"id": "x", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                   "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}})
        }
        Form::AnthropicMessages => {
            let call = |(at, (name, arguments)): (usize, &(&str, Value))| json!({"type": "tool_use", "id": format!("toolu_{at}"), "name": name, "input": arguments});
            let text = (!text.is_empty()).then(|| json!({"type": "text", "text": text}));
            let content: Vec<Value> = text.into_iter().chain(calls.iter().enumerate().map(call)).collect();
            let stop = if refuses { "refusal" } else { "end_turn" };
            json!({"type": "message", "role": "assistant", "content": content, "stop_reason": stop,
                   "usage": {"input_tokens": 100, "output_tokens": 10}})
        }
    }
}
