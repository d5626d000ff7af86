//! What an agent does on its way that is no call of a row: it asks its model, or reads the book. Each has an intent, a
//! result and a receipt of its own, below the agent's.

use std::sync::Arc;
use std::time::Duration;

use callbook_domain::arguments::{Bound, Sent};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::{InvocationId, Mode};
use callbook_domain::outcome::{Failure, Outcome};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::oneshot;
use tracing::Instrument as _;

use super::book;
use super::model::{self, ModelCall};
use crate::App;
use crate::call::{Answer, Call, Deadline, Ran, Request, Work};
use crate::child::Running;
use crate::config::LEASE_AFTER_DEADLINE;
use crate::finish::run_to_the_end;
use crate::invoke;
use crate::store::commit::Candidate;
use crate::store::stopped;
use crate::tree::{Authority, Place};

/// One of them.
#[derive(Clone, Debug)]
pub enum Turn {
    /// One answer of the model.
    Model(Arc<ModelCall>),
    /// Rows that fit a question.
    Ask {
        /// The question.
        question: String,
        /// How many rows at most.
        limit: usize,
    },
    /// The contract of a row.
    Contract {
        /// Its key.
        key: String,
    },
}

impl Turn {
    /// What receipts call it.
    pub fn name(&self) -> &'static str {
        match self {
            Turn::Model(_) => "model",
            Turn::Ask { .. } => "ask",
            Turn::Contract { .. } => "contract",
        }
    }
}

/// Runs a committed one.
pub async fn run(running: Running<'_>, turn: &Turn) -> Ran {
    let given = match turn {
        Turn::Model(asked) => return model::run(running, asked).await,
        Turn::Ask { question, limit } => Ok(book::ask(running, question, *limit)),
        Turn::Contract { key } => book::contract(running, key).await,
    };
    Ran::local(given.map_or_else(Outcome::Failed, |output| Outcome::Ok(output, None)))
}

/// Commits it, runs it in a task of its own within `time`, and waits for its result.
///
/// # Errors
/// `row_moved` where the agent was edited since it began, `unauthorized` where its caller was shut out, and whatever else
/// keeps it from being committed or stored.
pub fn take(running: &Running<'_>, turn: Turn, sent: Sent, time: Duration) -> BoxFuture<'static, Result<Answer>> {
    let app = running.app.clone();
    let place = Place {
        parent: running.id,
        depth: running.depth().saturating_add(1),
        authority: Authority::Written,
        book: running.call.book.clone(),
        tree: running.tree.clone(),
        agent: None,
    };
    let request = Request {
        key: running.call.entry.key().to_string(),
        sent,
        idempotency_key: None,
        repairs: None,
        replay_of: None,
        deadline: Deadline::after(time.min(running.deadline.left())),
        wait: Duration::ZERO,
        place: Some(place.clone()),
    };
    let call = Call { work: Work::Turn(turn), bound: Bound::default(), place: Some(place), ..running.call.clone() };
    async move {
        let (reply, answer) = oneshot::channel();
        let wait = request.deadline.left() + LEASE_AFTER_DEADLINE;
        app.tasks.spawn(walk(app.clone(), call, request, reply).in_current_span());
        match tokio::time::timeout(wait, answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(Fault::new(Reason::Internal, "a part of the agent's run came to no end")),
        }
    }
    .boxed()
}

async fn walk(app: Arc<App>, call: Call, request: Request, reply: oneshot::Sender<Result<Answer>>) {
    let id = InvocationId::new(app.clock.now());
    let candidate = invoke::candidate(&app, &call.caller, &request, &call, id, Mode::Durable);
    let candidate = match &call.work {
        Work::Turn(turn) => Candidate { runner: turn.name(), ..candidate },
        Work::Http(_) | Work::Fn(_) | Work::Flow | Work::Agent => candidate,
    };
    let refusal = match app.committer.admit(candidate.clone()).await {
        Ok(true) => return run_to_the_end(app, call, candidate, request.deadline, reply).await,
        Ok(false) => match stopped::why(app.directory.pool(), &candidate, app.clock.now()).await {
            Ok(stopped) => invoke::refusal(&stopped),
            Err(fault) => fault,
        },
        Err(refused) => invoke::refused(refused),
    };
    let _ = reply.send(Err(refusal)); // the agent may have been stopped
}

/// A refusal inside of an agent's run, as what became of it.
pub fn failed(fault: &Fault) -> Failure {
    let failure = Failure::new(format!("agent:{}", fault.error_text()), fault.message());
    if fault.retry_after().is_some() { failure.retryable() } else { failure }
}
