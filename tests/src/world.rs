//! A deployment in this process: every role over real gRPC on loopback, its own database, time held where wanted.

use std::collections::BTreeSet;
use std::ops::Deref;

use callbook::node::{Keys, Node, Role};
use callbook_domain::clock::Clock;
use callbook_runtime::settings::{Overrides, Settings};
use secrecy::SecretString;

use crate::database;
use crate::door::Door;
pub use crate::door::{Answer, send};

/// The owner key of every test.
pub const OWNER: &str = "owner-key-of-the-tests-0123456789";

/// A running deployment.
pub struct World {
    /// `http://127.0.0.1:port` of the services.
    pub grpc: String,
    /// The address of the database.
    pub database_url: String,
    /// The time that it goes by.
    pub clock: Clock,
    door: Door,
    node: Option<Node>,
    _data: tempfile::TempDir,
}

/// A deployment in the making.
#[derive(Clone)]
pub struct Builder {
    overrides: Overrides,
    clock: Clock,
    database_url: Option<String>,
    toml: String,
}

impl Deref for World {
    type Target = Door;
    fn deref(&self) -> &Door {
        &self.door
    }
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

/// The keys of every deployment of the tests.
pub fn keys() -> Keys {
    let secret = |text: &str| SecretString::from(text.to_owned());
    Keys { owner: secret(OWNER), internal: secret("internal-key-of-the-tests-012345") }
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
        let keys = keys();
        let roles: BTreeSet<Role> = Role::ALL.into();
        let node = Node::start(&settings, &roles, &keys, self.clock.clone()).await.unwrap();
        World {
            grpc: format!("http://{}", node.grpc.unwrap()),
            database_url,
            clock: self.clock,
            door: Door::at(format!("http://{}", node.http.unwrap())),
            node: Some(node),
            _data: data,
        }
    }
}
