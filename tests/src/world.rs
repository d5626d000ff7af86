//! A deployment in this process: every role over real gRPC on loopback, its own database, time held where wanted.

use std::collections::BTreeSet;

use callbook::node::{Keys, Node, Role};
use callbook_domain::clock::Clock;
use callbook_runtime::settings::{Overrides, Settings};
use reqwest::{Method, RequestBuilder};
use secrecy::SecretString;
use serde_json::Value;

use crate::database;

/// The owner key of every test.
pub const OWNER: &str = "owner-key-of-the-tests-0123456789";

/// A running deployment.
pub struct World {
    /// `http://127.0.0.1:port` of the gateway.
    pub http: String,
    /// `http://127.0.0.1:port` of the services.
    pub grpc: String,
    /// The address of the database.
    pub database_url: String,
    /// The time that it goes by.
    pub clock: Clock,
    /// A client without any credential.
    pub client: reqwest::Client,
    node: Option<Node>,
    _data: tempfile::TempDir,
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

/// A deployment in the making.
#[derive(Clone)]
pub struct Builder {
    overrides: Overrides,
    clock: Clock,
    database_url: Option<String>,
    toml: String,
}

impl World {
    /// Everything at its default, on a database of its own.
    pub async fn start() -> World {
        World::with().start().await
    }

    /// A deployment with other settings.
    pub fn with() -> Builder {
        Builder { overrides: Overrides::default(), clock: Clock::system(), database_url: None, toml: String::new() }
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

    /// A connection to the services.
    pub async fn channel(&self) -> tonic::transport::Channel {
        tonic::transport::Endpoint::from_shared(self.grpc.clone()).unwrap().connect().await.unwrap()
    }

    /// Ends the deployment in order.
    pub async fn stop(mut self) {
        if let Some(node) = self.node.take() {
            node.stop().await.unwrap();
        }
    }
}

/// A message with the owner's credential.
pub fn owned<T>(message: T) -> tonic::Request<T> {
    keyed(OWNER, message)
}

/// A message with somebody's credential.
pub fn keyed<T>(key: &str, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap());
    request
}

/// Sends a request and reads the whole answer.
pub async fn send(request: RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Answer { status, headers, text: response.text().await.unwrap() }
}

impl Builder {
    /// Lets rows call these origins although they are plain http on loopback.
    pub fn allow(mut self, origins: &[String]) -> Self {
        self.overrides.allow_origins = Some(origins.join(","));
        self
    }

    /// Holds time.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Shares a database with another deployment.
    pub fn database(mut self, url: &str) -> Self {
        self.database_url = Some(url.to_owned());
        self
    }

    /// Changes any setting that has a flag.
    pub fn set(mut self, change: impl FnOnce(&mut Overrides)) -> Self {
        change(&mut self.overrides);
        self
    }

    /// The text of `callbook.toml`.
    pub fn toml(mut self, text: &str) -> Self {
        self.toml = text.to_owned();
        self
    }

    /// Starts every role.
    pub async fn start(self) -> World {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let data = tempfile::tempdir().unwrap();
        let database_url = match self.database_url {
            Some(url) => url,
            None => database::fresh().await,
        };
        std::fs::write(data.path().join("callbook.toml"), &self.toml).unwrap();
        let local = || Some("127.0.0.1:0".to_owned());
        let settings = Settings::load(Overrides {
            http: local(),
            grpc: local(),
            admin: local(),
            database_url: Some(database_url.clone()),
            data_dir: Some(data.path().to_owned()),
            ..self.overrides
        })
        .unwrap();
        let secret = |text: &str| SecretString::from(text.to_owned());
        let keys = Keys { owner: secret(OWNER), internal: secret("internal-key-of-the-tests-012345") };
        let roles: BTreeSet<Role> = Role::ALL.into();
        let node = Node::start(&settings, &roles, &keys, self.clock.clone()).await.unwrap();
        World {
            http: format!("http://{}", node.http.unwrap()),
            grpc: format!("http://{}", node.grpc.unwrap()),
            database_url,
            clock: self.clock,
            client: reqwest::Client::builder().no_proxy().build().unwrap(),
            node: Some(node),
            _data: data,
        }
    }
}
