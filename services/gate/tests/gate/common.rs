//! A gate in this process, with a book of three rows.

use std::sync::Arc;

use callbook_caller::{Callers, Deployment, Issuer};
use callbook_domain::arguments::Sent;
use callbook_domain::caller::Caller;
use callbook_domain::clock::Clock;
use callbook_domain::compile::Rules;
use callbook_domain::fault::{Fault, Result};
use callbook_domain::token::{Claims, PrivateKey};
use callbook_gate::grpc::Grpc;
use callbook_gate::signing::{Signer, Source};
use callbook_gate::{App, services};
use callbook_runtime::grpc::from_status;
use callbook_runtime::key_file::KeyFolder;
use callbook_store::directory::Directory;
use callbook_store::write::{self, Options, Writer};
use callbook_wire::gate::v1 as wire;
use callbook_wire::gate::v1::gate_service_client::GateServiceClient;
use callbook_wire::gate::v1::gate_service_server::GateServiceServer;
use http::HeaderMap;
use serde_json::json;
use sqlx::PgPool;
use tempfile::TempDir;
use time::macros::datetime;
use tonic::{Request, Response, Status};

pub const OWNER: &str = "the owner key of this test";

/// A gate, and what a service beside it would see.
pub struct Gate {
    pub client: GateServiceClient<GateServiceServer<Grpc>>,
    pub callers: Arc<Callers>,
    pub clock: Clock,
    pub directory: Arc<Directory>,
    pub pool: PgPool,
}

impl Gate {
    /// One that keeps its keys in this folder.
    pub async fn keeping(pool: PgPool, folder: &TempDir) -> Gate {
        Gate::open(pool, Source::Folder(KeyFolder::of(folder.path())), Deployment::default()).await
    }

    /// One without a place for keys.
    pub async fn nowhere(pool: PgPool) -> Gate {
        Gate::open(pool, Source::Nowhere, Deployment::default()).await
    }

    pub async fn open(pool: PgPool, source: Source, deployment: Deployment) -> Gate {
        Gate::with(pool, source, deployment, Vec::new()).await
    }

    pub async fn with(pool: PgPool, source: Source, deployment: Deployment, issuers: Vec<Issuer>) -> Gate {
        let clock = Clock::held(datetime!(2026-07-26 04:36 UTC));
        let callers = Callers::new(OWNER, pool.clone(), clock.clone(), true).of(deployment.clone());
        let callers = Arc::new(if issuers.is_empty() { callers } else { callers.believing(issuers).unwrap() });
        let directory = Directory::open(pool.clone(), Rules::default(), Vec::new()).await.unwrap();
        let app = App {
            callers: callers.clone(),
            clock: clock.clone(),
            directory: directory.clone(),
            deployment,
            signer: Signer::open(&pool, source, &clock).await.unwrap(),
            pool: pool.clone(),
        };
        let gate = Gate { client: GateServiceClient::new(services(Arc::new(app))), callers, clock, directory, pool };
        if gate.directory.snapshot().rows().is_empty() {
            for key in ["TEAM_ECHO", "TEAM_OTHER", "ALONE"] {
                gate.write(key).await;
            }
        }
        gate
    }

    async fn write(&self, key: &str) {
        let content = format!("# WHAT: Give back what came\n# ARGS: $1=text\n# EX: [{key}]hello[/{key}]\n# SAFE: yes");
        let fields = json!({"key": key, "type": "fn", "target": "echo", "content": content, "effect": "read"});
        let writer = Writer { directory: self.directory.clone(), clock: self.clock.clone(), caller: Caller::Owner };
        let options = Options { allow_lookalike: true, ..Options::default() };
        write::create(&writer, fields.as_object().unwrap(), options).await.unwrap();
    }

    /// Mints as somebody.
    pub async fn mint(&mut self, key: &str, asked: wire::MintTokenRequest) -> Result<wire::MintTokenResponse> {
        answered(self.client.mint_token(with_key(key, asked)).await)
    }

    /// Mints as the owner; it must be given.
    pub async fn minted(&mut self, asked: wire::MintTokenRequest) -> (String, wire::Token) {
        let answer = self.mint(OWNER, asked).await.unwrap();
        (answer.token, answer.issued.unwrap())
    }

    /// Narrows a token.
    pub async fn narrow(&mut self, token: &str, asked: wire::NarrowTokenRequest) -> Result<wire::NarrowTokenResponse> {
        answered(self.client.narrow_token(with_token(token, asked)).await)
    }

    /// Revokes with some credential in `authorization`.
    pub async fn revoke(&mut self, credential: &str, what: wire::revoke_token_request::What) -> Result<u32> {
        let asked = wire::RevokeTokenRequest { what: Some(what), reason: "of the test".into() };
        answered(self.client.revoke_token(authorized(credential, asked)).await).map(|answer| answer.revoked)
    }

    /// A new principal's API key.
    pub async fn principal(&mut self, name: &str, grants: &[(wire::May, &str)]) -> String {
        let grants = grants.iter().map(|(may, prefix)| wire::Grant { may: (*may).into(), prefix: (*prefix).into() });
        let asked = wire::CreatePrincipalRequest { name: name.into(), grants: grants.collect() };
        self.client.create_principal(with_key(OWNER, asked)).await.unwrap().into_inner().api_key
    }

    /// Who a service beside the gate sees in these values of `authorization` and `cap-proof`.
    pub async fn seen(&self, credential: &str) -> Result<Caller> {
        self.callers.identify(&headers(credential, None)).await
    }

    /// The same for a call of `TEAM_ECHO` without arguments.
    pub async fn calls(&self, credential: &str, proof: Option<&str>) -> Result<(Caller, Option<String>)> {
        let presented = self.callers.identify_call(&headers(credential, proof)).await?;
        presented.prove("TEAM_ECHO", &Sent::Nothing).await
    }

    /// The literal error of a token at a service that has believed it for longer than a second.
    pub async fn refusal(&self, credential: &str) -> String {
        tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
        self.seen(credential).await.map_or_else(|fault| fault.error_text(), |_| "taken".to_owned())
    }
}

pub fn headers(credential: &str, proof: Option<&str>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("authorization", credential.parse().unwrap());
    if let Some(proof) = proof {
        headers.insert("cap-proof", proof.parse().unwrap());
    }
    headers
}

pub fn authorized<T>(credential: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", credential.parse().unwrap());
    request
}

pub fn with_key<T>(key: &str, message: T) -> Request<T> {
    authorized(&format!("Bearer {key}"), message)
}

pub fn with_token<T>(token: &str, message: T) -> Request<T> {
    authorized(&format!("Cap {token}"), message)
}

pub fn answered<T>(answer: Result<Response<T>, Status>) -> Result<T, Fault> {
    answer.map(Response::into_inner).map_err(|status| from_status(&status))
}

/// A scope of these keys and nothing else.
pub fn keys(keys: &[&str]) -> wire::TokenScope {
    wire::TokenScope { keys: keys.iter().map(|key| (*key).to_owned()).collect(), ..wire::TokenScope::default() }
}

/// A scope of these prefixes and nothing else.
pub fn prefixes(prefixes: &[&str]) -> wire::TokenScope {
    let prefixes = prefixes.iter().map(|prefix| (*prefix).to_owned()).collect();
    wire::TokenScope { prefixes, ..wire::TokenScope::default() }
}

/// A token of this scope, everything else left to the gate.
pub fn of(scope: wire::TokenScope) -> wire::MintTokenRequest {
    wire::MintTokenRequest { scope: Some(scope), ..wire::MintTokenRequest::default() }
}

/// The same for a holder.
pub fn held(scope: wire::TokenScope, holder: &PrivateKey) -> wire::MintTokenRequest {
    wire::MintTokenRequest { holder_jwk: holder.public().jwk().to_string().into(), ..of(scope) }
}

pub fn claims(token: &wire::Token) -> Claims {
    Claims::read(&token.claims_json).unwrap()
}
