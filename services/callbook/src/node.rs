//! One process: the roles that it plays, what they share, and how it ends.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use callbook_caller::{Callers, Deployment};
use callbook_domain::clock::Clock;
use callbook_domain::compile::Rules;
use callbook_domain::token::PrivateKey;
use callbook_executor::config::WireForm;
use callbook_executor::egress::{Egress, Policy, Secrets};
use callbook_gate::signing::{Signer, Source};
use callbook_ranking::Shelf;
use callbook_runtime::health::Readiness;
use callbook_runtime::key_file::{self, KeyFolder};
use callbook_runtime::listen::bind;
use callbook_runtime::settings::{Catalogue, Exec, Price, Provider, ProviderForm, Settings};
use callbook_store::directory::Directory;
use callbook_store::pool;
use http::{Request, Response, Uri};
use secrecy::{ExposeSecret as _, SecretString};
use sqlx::postgres::PgConnectOptions;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::service::Routes;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};
use tower::Layer as _;
use tower::util::BoxCloneSyncService;

use crate::cluster::Account;
use crate::rpc::{Observe, describe_metrics};

/// The version that answers and the `User-Agent` name.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A part that a process can play.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// HTTP in, gRPC out.
    Gateway,
    /// Reading the book.
    Resolver,
    /// Writing the book.
    Contract,
    /// Principals.
    Gate,
    /// Running rows.
    Executor,
}

impl Role {
    /// Every role: what `up` plays.
    pub const ALL: [Role; 5] = [Role::Gateway, Role::Resolver, Role::Contract, Role::Gate, Role::Executor];
}

impl FromStr for Role {
    type Err = String;
    fn from_str(text: &str) -> Result<Role, String> {
        match text {
            "gateway" => Ok(Role::Gateway),
            "resolver" => Ok(Role::Resolver),
            "contract" => Ok(Role::Contract),
            "gate" => Ok(Role::Gate),
            "executor" => Ok(Role::Executor),
            _ => Err("a role is one of gateway, resolver, contract, gate, executor".to_owned()),
        }
    }
}

/// The two keys of a deployment.
#[derive(Clone, Debug)]
pub struct Keys {
    /// The owner's credential.
    pub owner: SecretString,
    /// The MAC key of cursors.
    pub internal: SecretString,
}

/// What answers at the gRPC port, for the gateway beside it.
type Services = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// A process that answers.
pub struct Node {
    /// Where its gateway listens, if it has one.
    pub http: Option<SocketAddr>,
    /// Where its gRPC services listen, if it has any.
    pub grpc: Option<SocketAddr>,
    /// What it still waits for.
    pub readiness: Readiness,
    clock: Clock,
    /// The book, where a role of the process holds it.
    directory: Option<Arc<Directory>>,
    stop: CancellationToken,
    /// Ends after everything else: the book is followed until the last call is done.
    last: CancellationToken,
    tasks: JoinSet<Result<()>>,
    followers: JoinSet<()>,
}

impl Node {
    /// Starts the roles. Everything that can be refused is refused before anything listens.
    ///
    /// # Errors
    /// One sentence: a setting, an address in use, a database that does not answer.
    pub async fn start(settings: &Settings, roles: &BTreeSet<Role>, keys: &Keys, clock: Clock) -> Result<Node> {
        let readiness = Readiness::waiting_for(["start"]);
        let mut node = Node {
            http: None,
            grpc: None,
            readiness: readiness.clone(),
            clock: clock.clone(),
            directory: None,
            stop: CancellationToken::new(),
            last: CancellationToken::new(),
            tasks: JoinSet::new(),
            followers: JoinSet::new(),
        };
        let has_services = roles.iter().any(|role| *role != Role::Gateway);
        let grpc = if has_services { Some(bind("grpc", &settings.grpc).await?) } else { None };
        let http = if roles.contains(&Role::Gateway) { Some(bind("http", &settings.http).await?) } else { None };
        let mut services = None;
        if let Some(listener) = grpc {
            node.grpc = Some(listener.local_addr()?);
            services = Some(node.serve_services(settings, roles, keys, clock, listener).await?);
        }
        if let Some(listener) = http {
            node.http = Some(listener.local_addr()?);
            node.serve_gateway(settings, keys, services, listener)?;
        }
        readiness.ready("start");
        Ok(node)
    }

    /// The book as this process holds it; a gateway alone holds none.
    pub fn directory(&self) -> Option<Arc<Directory>> {
        self.directory.clone()
    }

    /// The time of this process.
    pub fn clock(&self) -> Clock {
        self.clock.clone()
    }

    /// Whether it was told to stop.
    pub fn stopping(&self) -> CancellationToken {
        self.stop.clone()
    }

    /// Stops: new requests are refused, those in flight end, then the rest goes.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.cancel();
        let mut outcome = Ok(());
        while let Some(ended) = self.tasks.join_next().await {
            outcome = outcome.and(ended.context("a part of the process panicked").and_then(|ended| ended));
        }
        self.last.cancel();
        while self.followers.join_next().await.is_some() {}
        outcome
    }

    /// Waits until a part ends by itself, which none should.
    pub async fn failed(&mut self) -> Result<()> {
        match self.tasks.join_next().await {
            None => std::future::pending().await,
            Some(ended) => ended.context("a part of the process panicked")?,
        }
    }

    fn serve_gateway(
        &mut self,
        settings: &Settings,
        keys: &Keys,
        services: Option<Services>,
        listener: TcpListener,
    ) -> Result<()> {
        let encrypted = settings.peers.tls.as_ref().is_some_and(|tls| tls.identity.is_some());
        let scheme = if encrypted { "https" } else { "http" };
        let own = self.grpc.map_or_else(|| settings.grpc.to_string(), |at| at.to_string());
        let own: Uri = format!("{scheme}://{own}").parse()?;
        let mut config = callbook_gateway::Config::from_settings(settings, own.clone())?;
        config.near = services.map(|services| callbook_gateway::Near { at: own, services });
        let internal = keys.internal.expose_secret();
        if !internal.is_empty() {
            config.state_key = internal.as_bytes().to_vec();
        }
        let stop = self.stop.clone();
        self.tasks.spawn(async move { callbook_gateway::serve(listener, config, stop).await.map_err(Into::into) });
        Ok(())
    }

    async fn serve_services(
        &mut self,
        settings: &Settings,
        roles: &BTreeSet<Role>,
        keys: &Keys,
        clock: Clock,
        listener: TcpListener,
    ) -> Result<Services> {
        let shared = Shared::open(settings, keys, clock, &mut self.followers, &self.last).await?;
        self.directory = Some(shared.directory.clone());
        describe_metrics();
        let health = tonic_health::server::health_reporter();
        let mut server = Server::builder()
            .http2_keepalive_interval(Some(Duration::from_secs(20)))
            .http2_max_header_list_size(64 * 1_024)
            .max_concurrent_streams(Some(1_024));
        if let Some(tls) = &settings.peers.tls
            && let Some((certificate, key)) = &tls.identity
        {
            let identity = Identity::from_pem(std::fs::read(certificate)?, std::fs::read(key)?);
            server = server.tls_config(ServerTlsConfig::new().identity(identity))?;
        }
        let reflection = || {
            tonic_reflection::server::Builder::configure()
                .register_encoded_file_descriptor_set(callbook_wire::FILE_DESCRIPTOR_SET)
                .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
        };
        let mut routes =
            Routes::new(health.1).add_service(reflection().build_v1()?).add_service(reflection().build_v1alpha()?);
        if roles.contains(&Role::Resolver) {
            routes = routes.add_service(callbook_resolver::services(shared.resolver(self.stop.clone())));
        }
        if roles.contains(&Role::Contract) {
            let (directory, contract) = callbook_contract::services(shared.contract());
            routes = routes.add_service(directory).add_service(contract);
        }
        if roles.contains(&Role::Gate) {
            routes = routes.add_service(callbook_gate::services(shared.gate(settings).await?));
        }
        if roles.contains(&Role::Executor) {
            let app = shared.executor(settings)?;
            let (executor, receipt) = callbook_executor::grpc::services(app.clone());
            routes = routes.add_service(executor).add_service(receipt);
            let stop = self.stop.clone();
            self.tasks.spawn(async move {
                callbook_executor::serve(app, stop).await.context("the executor cannot say that it lives")
            });
        }
        let routes = routes.prepare();
        health.0.set_service_status("", tonic_health::ServingStatus::Serving).await;
        let stop = self.stop.clone();
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        let services = Services::new(Observe.layer(routes.clone()));
        let served = server.layer(Observe).add_routes(routes);
        self.tasks.spawn(async move {
            let stopped = stop.clone().cancelled_owned();
            let served = served.serve_with_incoming_shutdown(incoming, stopped);
            let late = async {
                stop.cancelled().await;
                health.0.set_service_status("", tonic_health::ServingStatus::NotServing).await;
                tokio::time::sleep(Duration::from_secs(30)).await;
            };
            tokio::select! {
                served = served => served.context("the gRPC server ended"),
                () = late => Ok(()),
            }
        });
        Ok(services)
    }
}

/// What the roles of one process have in common.
struct Shared {
    directory: Arc<Directory>,
    callers: Arc<Callers>,
    index: Arc<Shelf>,
    clock: Clock,
    internal: SecretString,
}

impl Shared {
    async fn open(
        settings: &Settings,
        keys: &Keys,
        clock: Clock,
        followers: &mut JoinSet<()>,
        last: &CancellationToken,
    ) -> Result<Shared> {
        let Some(url) = &settings.database_url else {
            bail!("setting `database_url`: these roles need a database, set DATABASE_URL");
        };
        let options = PgConnectOptions::from_str(url.expose_secret())
            .map_err(|_| anyhow::anyhow!("setting `database_url`: not the address of a Postgres database"))?;
        pool::migrate(&options).await.context("the database cannot be used")?;
        let pool = pool::connect(&options, settings.limits.database_connections.get());
        let rules = Rules {
            variables: Arc::new(settings.public.clone().into_iter().collect()),
            secrets: Arc::new(settings.secrets.clone()),
        };
        let index = Arc::new(Shelf::default());
        let follow = vec![callbook_resolver::follower(index.clone())];
        let directory = Directory::open(pool.clone(), rules, follow)
            .await
            .map_err(|fault| anyhow::anyhow!("the book cannot be read: {fault}"))?;
        followers.spawn(directory.clone().run(last.clone().cancelled_owned()));
        let public = settings.catalogue == Catalogue::Public;
        let callers = Callers::new(keys.owner.expose_secret(), pool, clock.clone(), public);
        let callers = callers.of(deployment(settings)?).believing(issuers(settings));
        let callers = Arc::new(callers.context("setting `issuers`: no client can be made for their keys")?);
        Ok(Shared { directory, callers, index, clock, internal: keys.internal.clone() })
    }

    fn resolver(&self, stop: CancellationToken) -> Arc<callbook_resolver::App> {
        callbook_resolver::App::new(
            self.directory.clone(),
            self.callers.clone(),
            self.index.clone(),
            self.internal.expose_secret().as_bytes().to_vec(),
            stop,
        )
    }

    fn contract(&self) -> Arc<callbook_contract::App> {
        Arc::new(callbook_contract::App {
            directory: self.directory.clone(),
            callers: self.callers.clone(),
            clock: self.clock.clone(),
        })
    }

    async fn gate(&self, settings: &Settings) -> Result<Arc<callbook_gate::App>> {
        let pool = self.directory.pool().clone();
        let signer = Signer::open(&pool, key_source(settings)?, &self.clock).await;
        Ok(Arc::new(callbook_gate::App {
            pool,
            callers: self.callers.clone(),
            clock: self.clock.clone(),
            directory: self.directory.clone(),
            deployment: deployment(settings)?,
            signer: signer.map_err(|fault| anyhow::anyhow!("the signing keys cannot be read: {fault}"))?,
        }))
    }

    fn executor(&self, settings: &Settings) -> Result<Arc<callbook_executor::App>> {
        let refused = |why: String| anyhow::anyhow!("setting `allow_origins`: {why}");
        let policy = Policy::parse(&settings.allow_origins.join(",")).map_err(refused)?;
        Ok(callbook_executor::App::new(callbook_executor::Parts {
            config: executor_config(settings)?,
            directory: self.directory.clone(),
            callers: self.callers.clone(),
            index: self.index.clone(),
            clock: self.clock.clone(),
            egress: Egress::new(policy, VERSION),
            secrets: secrets(settings)?,
        }))
    }
}

/// Whose tokens are taken, and minted.
fn deployment(settings: &Settings) -> Result<Deployment> {
    Ok(Deployment {
        audience: settings.audience.clone(),
        issuer: settings.token_issuer.clone(),
        max_ttl: settings.token_max.try_into().context("setting `token_max_seconds`")?,
    })
}

/// Who else's JWTs are taken.
fn issuers(settings: &Settings) -> Vec<callbook_caller::Issuer> {
    let issuer = |(name, issuer): (&String, &callbook_runtime::settings::Issuer)| callbook_caller::Issuer {
        name: name.clone(),
        iss: issuer.issuer.clone(),
        audience: issuer.audience.clone(),
        jwks_url: issuer.jwks_url.to_string(),
        scopes: issuer.scopes.clone(),
    };
    settings.issuers.iter().map(issuer).collect()
}

/// Where the gate has its signing keys.
fn key_source(settings: &Settings) -> Result<Source> {
    let Some(given) = key_file::issuer_key(settings)? else {
        return Ok(settings.data_dir.as_deref().map_or(Source::Nowhere, |dir| Source::Folder(KeyFolder::of(dir))));
    };
    let key = PrivateKey::parse(given.expose_secret());
    let key = key.context("setting `issuer_key`: is neither an Ed25519 key as PKCS#8 PEM nor 32 bytes in base64url")?;
    Ok(Source::Given(Arc::new(key)))
}

fn executor_config(settings: &Settings) -> Result<callbook_executor::config::Config> {
    let databases = settings.databases.iter().map(|(name, database)| {
        let url = database.url.clone();
        let own = callbook_executor::config::Database { url, max_rows: database.max_rows, timeout: database.timeout };
        (name.clone(), own)
    });
    Ok(callbook_executor::config::Config {
        pools: settings.pools.clone(),
        address: settings.grpc.to_string(),
        timezone: settings.timezone.clone(),
        in_flight: settings.limits.in_flight.map_or(0, std::num::NonZeroUsize::get),
        per_origin: settings.limits.per_origin.map_or(0, std::num::NonZeroUsize::get),
        read_mode: settings.read_mode,
        databases: databases.collect(),
        providers: settings.providers.iter().map(|(name, own)| (name.clone(), provider(own))).collect(),
        exec: settings.exec.as_ref().map(exec_config).transpose().context("setting `exec`")?,
        retention_days: settings.retention_days.map_or(0, std::num::NonZeroU32::get),
    })
}

fn provider(own: &Provider) -> callbook_executor::config::Provider {
    let price = |own: &Price| callbook_executor::config::Price { input: own.input, output: own.output };
    callbook_executor::config::Provider {
        base_url: own.base_url.clone(),
        form: match own.form {
            ProviderForm::OpenaiChat => WireForm::OpenaiChat,
            ProviderForm::AnthropicMessages => WireForm::AnthropicMessages,
        },
        secret: own.secret.clone(),
        models: own.models.clone(),
        prices: own.prices.iter().map(|(model, own)| (model.clone(), price(own))).collect(),
        calls: own.calls,
    }
}

/// What `exec` may start. Refused here where it could not be done as it is meant.
fn exec_config(exec: &Exec) -> Result<callbook_executor::config::Exec> {
    if !rustix::process::geteuid().is_root() {
        bail!("programs run as another user, and only root can start them so");
    }
    let account = Account::named(&exec.user);
    let account = account.with_context(|| format!("`{}` is no user of this machine, or is root", exec.user))?;
    if let Some(missing) = exec.programs.iter().find(|program| !program.is_file()) {
        bail!("{} is no program", missing.display());
    }
    // the link leads to the running binary also after a newer one was put in its place
    let running = PathBuf::from("/proc/self/exe");
    let launcher = if running.exists() { running } else { std::env::current_exe()? };
    Ok(callbook_executor::config::Exec {
        programs: exec.programs.clone(),
        launcher,
        uid: account.uid,
        gid: account.gid,
        timeout: exec.timeout,
        max_output_bytes: exec.max_output_bytes,
    })
}

fn secrets(settings: &Settings) -> Result<Secrets> {
    let names = settings.secrets.0.keys().map(|name| (name.clone(), settings.secret_files.get(name).cloned()));
    Secrets::new(names.collect(), settings.secrets_dir.clone())
        .map_err(|why| anyhow::anyhow!("setting `secrets`: {why}"))
}
