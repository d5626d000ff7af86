//! The front door: a gateway, wherever it runs, and what is asked of it.

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::world::OWNER;

/// A gateway and a client for it.
#[derive(Clone)]
pub struct Door {
    /// `http://127.0.0.1:port` of the gateway.
    pub http: String,
    /// A client without any credential.
    pub client: reqwest::Client,
}

/// An answer of the gateway.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: http::HeaderMap,
    /// The body as text.
    pub text: String,
}

impl Answer {
    /// The body as JSON; `null` where it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or(Value::Null)
    }

    /// The field `error`; empty where there is none.
    pub fn error(&self) -> String {
        self.json()["error"].as_str().unwrap_or_default().to_owned()
    }

    /// The id of the invocation that answered, or that is named in the refusal.
    pub fn id(&self) -> String {
        let body = self.json();
        let id = body["proof"]["invocation_id"].as_str().or(body["invocation_id"].as_str());
        id.unwrap_or_default().to_owned()
    }
}

impl Door {
    /// The gateway at this address.
    pub fn at(http: String) -> Door {
        let _ = rustls::crypto::ring::default_provider().install_default();
        Door { http, client: reqwest::Client::builder().no_proxy().build().unwrap() }
    }

    /// A request to the gateway as the owner.
    pub fn owner(&self, method: Method, path: &str) -> RequestBuilder {
        self.anyone(method, path).header("x-terminal-key", OWNER)
    }

    /// A request to the gateway without a credential.
    pub fn anyone(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.http))
    }

    /// A GET as the owner.
    pub async fn get(&self, path: &str) -> Answer {
        send(self.owner(Method::GET, path)).await
    }

    /// A POST of JSON as the owner.
    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        send(self.owner(Method::POST, path).json(body)).await
    }

    /// Creates a row as the owner; it must be taken.
    pub async fn create(&self, row: &Value) -> Value {
        let answer = self.post("/api/directory", row).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()
    }

    /// Invokes a row with pipe text as the owner.
    pub async fn invoke(&self, key: &str, body: &str) -> Answer {
        self.post("/api/dispatch", &serde_json::json!({"key": key, "body": body})).await
    }
}

/// Sends a request and reads the whole answer.
pub async fn send(request: RequestBuilder) -> Answer {
    attempt(request).await.unwrap()
}

/// The same where nobody may be there, or go away in between.
pub async fn attempt(request: RequestBuilder) -> reqwest::Result<Answer> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(Answer { status, headers, text: response.text().await? })
}
