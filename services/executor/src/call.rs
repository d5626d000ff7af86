//! A call on its way: what was asked, and what it became once everything about it was decided.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callbook_domain::arguments::{Argument, Bound, Sent};
use callbook_domain::caller::Caller;
use callbook_domain::canonical;
use callbook_domain::invocation::{InvocationId, Mode};
use callbook_domain::outcome::{Failure, Outcome, Output};
use callbook_domain::target::HttpRequest;
use callbook_store::snapshot::{Entry, Snapshot};
use secrecy::SecretString;
use sha2::{Digest, Sha256};

use crate::approval::Approval;
use crate::runner::Turn;
use crate::tree::Place;

/// What a caller asks for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The row.
    pub key: String,
    /// Its arguments as they came.
    pub sent: Sent,
    /// Chosen by the caller; one answer a key and day.
    pub idempotency_key: Option<String>,
    /// The call that this one mends.
    pub repairs: Option<InvocationId>,
    /// The call that this one runs again.
    pub replay_of: Option<InvocationId>,
    /// When the caller no longer waits.
    pub deadline: Deadline,
    /// How long a held call waits for its decision before it is answered as held.
    pub wait: Duration,
    /// Which call makes it; absent for a caller's own.
    pub place: Option<Place>,
}

impl Request {
    /// SHA-256 over the key and what the caller sent, `body` as one JSON string or canonical `args`: what makes two calls
    /// the same call. It needs no row, so that an earlier answer can be given after the row is gone.
    pub fn argument_hash(&self) -> Vec<u8> {
        let sent = match &self.sent {
            Sent::Nothing => String::new(),
            Sent::Body(body) if body.is_empty() => String::new(),
            Sent::Body(body) => serde_json::Value::from(body.as_str()).to_string(),
            Sent::Args(raw) => match serde_json::from_str(raw.get()) {
                Ok(value) => canonical::to_string(&value),
                Err(_) => raw.get().to_owned(),
            },
            Sent::List(arguments) => Sent::list_text(arguments),
        };
        Sha256::new().chain_update(&self.key).chain_update([0]).chain_update(sent).finalize().to_vec()
    }
}

/// A moment by which a call must have ended.
#[derive(Clone, Copy, Debug)]
pub struct Deadline(Instant);

impl Deadline {
    /// This much from now.
    pub fn after(time: Duration) -> Self {
        Deadline(Instant::now() + time)
    }

    /// What is left; zero once it has passed.
    pub fn left(self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    /// Whether it passed at least this long ago.
    pub fn passed_by(self, time: Duration) -> bool {
        Instant::now() >= self.0 + time
    }
}

/// What runs once the call is committed. Everything that arguments could spoil has been built.
#[derive(Clone, Debug)]
pub enum Work {
    /// A request, without its credential.
    Http(HttpRequest),
    /// A function with its arguments.
    Fn(Vec<Argument>),
    /// The steps of the row's flow.
    Flow,
    /// The row's agent.
    Agent,
    /// What an agent does on its way beside calls of rows.
    Turn(Turn),
}

/// A call that passed admission.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who makes it: functions act with this caller's rights.
    pub caller: Caller,
    /// The row at the revision that we hold.
    pub entry: Arc<Entry>,
    /// Its arguments.
    pub bound: Bound,
    /// What runs.
    pub work: Work,
    /// Which call makes it; absent for a caller's own.
    pub place: Option<Place>,
    /// The book that it was admitted against.
    pub book: Arc<Snapshot>,
}

/// The arguments as they came, as the JSON that a replay reads: `{"body":…}`, `{"args":…}` or `{}`.
pub fn sent_json(sent: &Sent) -> String {
    match sent {
        Sent::Nothing => "{}".to_owned(),
        Sent::Body(body) => serde_json::json!({ "body": body }).to_string(),
        Sent::Args(raw) => format!("{{\"args\":{raw}}}"),
        Sent::List(arguments) => format!("{{\"args\":{}}}", Sent::list_text(arguments)),
    }
}

/// What a runner gave, with what went over the wire.
#[derive(Clone, Debug)]
pub struct Ran {
    /// The typed outcome.
    pub outcome: Outcome,
    /// The request as sent, its secrets taken out.
    pub request: Option<Vec<u8>>,
    /// Status and kept headers of the response, as JSON.
    pub response: Option<Vec<u8>>,
    /// The secrets that went out with it, by name: they may have other values by now, and are taken out all the same.
    pub used: Vec<(String, SecretString)>,
    /// The most bytes of output that are kept; the rest is cut off after secrets were taken out.
    pub most: Option<usize>,
    /// What it cost by itself, in US dollars; the calls that it made have their own.
    pub cost_usd: f64,
}

impl Ran {
    /// An outcome that touched no wire.
    pub fn local(outcome: Outcome) -> Self {
        Ran { outcome, request: None, response: None, used: Vec::new(), most: None, cost_usd: 0.0 }
    }
}

/// What the caller is told of a call that was accepted.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its id.
    pub id: InvocationId,
    /// It ran, now or before.
    pub ran: bool,
    /// It ran and succeeded.
    pub ok: bool,
    /// The answer of an earlier call with the same idempotency key.
    pub replayed: bool,
    /// The seed's text form.
    pub result: String,
    /// What it gave.
    pub output: Option<Output>,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// `DONE — KEY` or `FAILED — …`.
    pub did: String,
    /// The contract under which it ran.
    pub contract_hash: String,
    /// The trace that it belongs to.
    pub trace: String,
    /// What it cost with all calls that it made, in US dollars.
    pub cost_usd: f64,
    /// What was odd about the arguments.
    pub warnings: Vec<String>,
    /// How durable its receipt is.
    pub mode: Mode,
    /// The approval that it waits for; nothing was fired.
    pub held: Option<Approval>,
    /// It is committed, and runs on without a listener.
    pub accepted: bool,
}

impl Answer {
    /// The answer of a call that has not run yet.
    pub fn before_it_runs(call: &Call, id: InvocationId) -> Answer {
        Answer {
            id,
            ran: false,
            ok: false,
            replayed: false,
            result: String::new(),
            output: None,
            failure: None,
            did: String::new(),
            contract_hash: call.entry.row.contract_hash.clone(),
            trace: callbook_runtime::telemetry::trace_id(),
            cost_usd: 0.0,
            warnings: call.bound.warnings.clone(),
            mode: Mode::Durable,
            held: None,
            accepted: false,
        }
    }
}

/// What was done, in the seed's words.
pub fn did(key: &str, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ok(..) => format!("DONE — {key}"),
        Outcome::Failed(_) => {
            let text: String = outcome.render().chars().take(140).collect();
            format!("FAILED — {text}")
        }
    }
}
