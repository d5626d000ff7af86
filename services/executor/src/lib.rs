//! Owns running: admission, the commit point, the runners, receipts, and what becomes of the calls of the dead.

pub mod config;

pub mod committer;

mod call;
mod tree;
mod credential;
mod admit;
mod approval;
mod invoke;
mod child;
mod finish;
mod stored_answer;
mod shape;
mod repair;
mod receipt;
mod progress;
mod breaker;
mod live;
mod retain;
mod revocable;
mod denied;
mod origin;

mod runner;
pub mod egress;
pub mod group;
mod store;

pub mod grpc;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use callbook_caller::Callers;
use callbook_domain::clock::Clock;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::uuid_at;
use callbook_domain::outcome::{Failure, Outcome, Output};
use callbook_ranking::Shelf;
use callbook_store::directory::Directory;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::call::{Call, Ran, Work};
use crate::committer::Committer;
use crate::config::Config;
use crate::egress::{Egress, Gate, Redactor, Secrets};
use crate::origin::Origins;

pub use live::serve;

/// How long the values of secrets are believed when they are looked for in outputs.
const REDACTOR_AGE: Duration = Duration::from_millis(500);

/// The most calls that wait for a decision at once, each of which looks for it five times a second.
const MAX_WAITERS: usize = 256;

/// The executor: what its verbs work with.
pub struct App {
    /// This executor among the others.
    pub id: Uuid,
    /// What it was told.
    pub config: Config,
    /// The book.
    pub directory: Arc<Directory>,
    /// Who calls.
    pub callers: Arc<Callers>,
    /// The index that `ask` rows use.
    pub index: Arc<Shelf>,
    /// The time.
    pub clock: Clock,
    pub(crate) committer: Committer,
    pub(crate) tasks: TaskTracker,
    pub(crate) egress: Egress,
    pub(crate) secrets: Secrets,
    pub(crate) databases: runner::function::Databases,
    pub(crate) watcher: approval::Watcher,
    pub(crate) denials: denied::Denials,
    pub(crate) revocable: revocable::Revocable,
    slots: Option<Arc<Semaphore>>,
    /// Places of calls that wait for a decision; where none is free, a held call is answered at once.
    waiters: Semaphore,
    pub(crate) origins: Origins,
    redactor: Mutex<HeldRedactor>,
}

/// The redactor, the values that it knows and when they were read.
struct HeldRedactor {
    read_at: Instant,
    values: Vec<(String, SecretString)>,
    redactor: Arc<Redactor>,
}

/// What an executor is made of.
pub struct Parts {
    /// What it is told.
    pub config: Config,
    /// The book.
    pub directory: Arc<Directory>,
    /// Who calls.
    pub callers: Arc<Callers>,
    /// The index that `ask` rows use.
    pub index: Arc<Shelf>,
    /// The time.
    pub clock: Clock,
    /// The way out.
    pub egress: Egress,
    /// The secrets' values.
    pub secrets: Secrets,
}

impl App {
    /// An executor that has not served yet.
    pub fn new(parts: Parts) -> Arc<App> {
        let Parts { config, directory, callers, index, clock, egress, secrets } = parts;
        let committer = Committer::start(directory.pool(), &clock);
        let denials = denied::Denials::start(directory.pool());
        let values = secrets.live_values();
        let redactor = Arc::new(Redactor::new(&values));
        let redactor = Mutex::new(HeldRedactor { read_at: Instant::now(), values, redactor });
        let origins = Origins::new(config.per_origin);
        let slots = (config.in_flight > 0).then(|| Arc::new(Semaphore::new(config.in_flight)));
        let id = uuid_at(clock.now());
        Arc::new(App {
            id,
            config,
            directory,
            callers,
            index,
            clock,
            committer,
            tasks: TaskTracker::new(),
            egress,
            secrets,
            databases: runner::function::Databases::default(),
            watcher: approval::Watcher::default(),
            denials,
            revocable: revocable::Revocable::default(),
            slots,
            waiters: Semaphore::new(MAX_WAITERS),
            origins,
            redactor,
        })
    }

    /// Refuses a caller's call while the executor stops.
    fn check_open(&self) -> Result<()> {
        if self.tasks.is_closed() {
            return Err(Fault::new(Reason::ShuttingDown, "the executor is stopping").retry_after_ms(1_000));
        }
        Ok(())
    }

    /// Comes when the executor stops.
    async fn closing(&self) {
        while !self.tasks.is_closed() {
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    /// A place among the calls in flight, held until the result is stored.
    fn slot(&self) -> Result<Option<OwnedSemaphorePermit>> {
        self.check_open()?;
        match &self.slots {
            None => Ok(None),
            Some(slots) => slots.clone().try_acquire_owned().map(Some).map_err(|_| invoke::overloaded()),
        }
    }

    /// Refuses a call whose credential is dead, before anything is committed.
    async fn check_breaker(&self, call: &Call) -> Result<()> {
        let Work::Http(request) = &call.work else { return Ok(()) };
        let Some(credential) = runner::http::credential_of(self, call, &request.url) else { return Ok(()) };
        let mut breaker =
            store::breaker::look(self.directory.pool(), &credential).await.map_err(callbook_store::fault::fault)?;
        let key = call.entry.key().as_str();
        match breaker.enter(&credential.fingerprint, self.clock.now()) {
            Gate::Pass | Gate::Probe => Ok(()),
            Gate::Open { until } => {
                let wait = (until - self.clock.now()).whole_milliseconds();
                Err(Fault::new(Reason::BreakerOpen, "8 consecutive auth failures; credential is dead until replaced")
                    .detail(key)
                    .with("rendered", format!("ERR:{}", runner::http::open_breaker(key).code))
                    .retry_after_ms(u64::try_from(wait).unwrap_or(0)))
            }
        }
    }

    /// What finds the values of the secrets in any encoding, also those that a call used and that are others by now.
    fn redactor(&self, ran: &Ran) -> Arc<Redactor> {
        let mut held = self.redactor.lock().unwrap_or_else(PoisonError::into_inner);
        if ran.request.is_some() || held.read_at.elapsed() > REDACTOR_AGE {
            let values = self.secrets.live_values();
            let pairs = values.iter().zip(&held.values);
            if values.len() != held.values.len() || !pairs.into_iter().all(|(new, old)| is_same(new, old)) {
                held.redactor = Arc::new(Redactor::new(&values));
                held.values = values;
            }
            held.read_at = Instant::now();
        }
        let gone = ran.used.iter().filter(|used| !held.values.iter().any(|value| is_same(used, value)));
        let gone: Vec<(String, SecretString)> = gone.cloned().collect();
        match gone.is_empty() {
            true => held.redactor.clone(),
            false => Arc::new(Redactor::new(&[gone, held.values.clone()].concat())),
        }
    }

    /// Takes every secret's value out of what a run gave, before it is stored or answered.
    fn redacted(&self, ran: Ran) -> Ran {
        let redactor = self.redactor(&ran);
        let clean = |bytes: Vec<u8>| redactor.redact(&bytes).into_owned();
        let output = |output: Output| Output {
            bytes: cut(clean(output.bytes), ran.most),
            // an upstream that hides a secret here gets no type at all
            media_type: if redactor.finds_in_any_case(&output.media_type) { String::new() } else { output.media_type },
            ..output
        };
        let outcome = match ran.outcome {
            Outcome::Ok(given, status) => Outcome::Ok(output(given), status),
            Outcome::Failed(failure) => Outcome::Failed(Failure {
                message: redactor.redact_str(&failure.message).into_owned(),
                output: failure.output.map(output),
                ..failure
            }),
        };
        Ran {
            outcome,
            request: ran.request.map(clean),
            response: ran.response.map(clean),
            used: Vec::new(),
            most: None,
            cost_usd: ran.cost_usd,
        }
    }
}

fn is_same(one: &(String, SecretString), other: &(String, SecretString)) -> bool {
    one.0 == other.0 && one.1.expose_secret() == other.1.expose_secret()
}

/// The first `most` bytes, and no half of a character.
fn cut(mut bytes: Vec<u8>, most: Option<usize>) -> Vec<u8> {
    let Some(most) = most.filter(|most| bytes.len() > *most) else { return bytes };
    let end = std::str::from_utf8(&bytes).map_or(most, |text| text.floor_char_boundary(most));
    bytes.truncate(end);
    bytes
}
