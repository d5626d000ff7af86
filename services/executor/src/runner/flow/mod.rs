//! Rows of type `flow`: steps that are calls of other rows, each with a receipt of its own.

#![allow(clippy::result_large_err, reason = "a failure is what a run gives and is moved a few times at most")]

mod walk;
mod fill;
mod value;
mod halt;
pub mod plan;

#[cfg(test)]
mod tests;

use std::time::Duration;

use callbook_domain::arguments::Sent;
use callbook_domain::compile::Plan;
use callbook_domain::fault::{Fault, Kind, Reason, Result};
use callbook_domain::key::Key;
use callbook_domain::outcome::{Failure, Outcome, Output};
use callbook_domain::row::Effect;
use futures::FutureExt as _;

use self::halt::Halt;
use self::walk::Walk;
use crate::call::{Answer, Deadline, Ran};
use crate::child::Running;
use crate::config::MAX_RESPONSE;
use crate::tree::Authority;

/// A step that keeps its own time says more about its end than the clock behind it.
const GRACE: Duration = Duration::from_millis(100);

/// Runs the steps of the row's flow within the row's time. A step that fails ends it; what ran keeps its receipts.
pub async fn run(running: Running<'_>) -> Ran {
    let Running { app, call, limit, .. } = running;
    let flow = match call.entry.compiled.as_ref().map(|compiled| &compiled.plan) {
        Ok(Plan::Flow(flow)) => flow,
        Ok(Plan::Http(_) | Plan::Fn(_) | Plan::Agent(_) | Plan::Block) | Err(_) => {
            return Ran::local(Outcome::Failed(Failure::new("internal", "the row is no flow")));
        }
    };
    // the flow's time is its steps' too, so that none of them is still firing when the flow has answered
    let running = Running { deadline: Deadline::after(limit), ..running };
    let call_row = |key: &Key, arguments| {
        let asked = running.invoke(key.as_str(), Sent::List(arguments), Authority::Written);
        asked.map(outcome).boxed()
    };
    let walk = Walk::new(flow, &call.bound, &app.directory.rules().variables, &call_row);
    let ended = match tokio::time::timeout(limit + GRACE, walk.run()).await {
        Ok(ended) => ended,
        Err(_) => Err(too_late(&walk, limit)),
    };
    let definition = &call.entry.row.definition;
    let own = definition.max_response_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let most = own.unwrap_or(MAX_RESPONSE).min(MAX_RESPONSE);
    let outcome = match ended {
        Ok(output) => Outcome::Ok(bounded(output, most), None),
        Err(failure) => Outcome::Failed(Failure {
            // a flow that changed something is not run again as a whole
            retryable: failure.retryable && call.entry.row.effect == Effect::Read,
            output: failure.output.map(|output| bounded(output, most)),
            ..failure
        }),
    };
    Ran { most: Some(most), ..Ran::local(outcome) }
}

/// An output that says that it will be cut.
fn bounded(output: Output, most: usize) -> Output {
    Output { truncated: output.truncated || output.bytes.len() > most, ..output }
}

fn too_late(walk: &Walk<'_>, limit: Duration) -> Failure {
    let message = format!("no result within {} ms; part {} had not ended", limit.as_millis(), walk.part());
    Failure::new("timeout", message).retryable()
}

/// What became of a step's call.
fn outcome(asked: Result<Answer>) -> std::result::Result<Output, Halt> {
    match asked {
        Ok(Answer { failure: Some(failure), .. }) => Err(Halt::Failed(failure)),
        Ok(answer) => Ok(answer.output.unwrap_or_else(Output::empty)),
        Err(fault) => Err(refused(&fault)),
    }
}

/// A step that was refused failed like another where the reason is its row or its arguments. Any other reason, such as a
/// budget, a row that moved or a credential that ended, is the whole flow's: no condition may take it for an answer.
fn refused(fault: &Fault) -> Halt {
    let message = match fault.how_to_fix() {
        Some(fix) => format!("{}: {fix}", fault.message()),
        None => fault.message().to_owned(),
    };
    let failure = Failure::new(fault.error_text(), message);
    let may_pass = matches!(fault.kind(), Kind::Exhausted | Kind::Unavailable);
    let failure = if may_pass && fault.reason() != Reason::BudgetExhausted { failure.retryable() } else { failure };
    let of_the_row = match fault.kind() {
        Kind::Invalid | Kind::NotFound => true,
        Kind::Unavailable => {
            matches!(fault.reason(), Reason::BreakerOpen | Reason::RunnerNotAvailable | Reason::NoExecutorForPool)
        }
        Kind::Unauthenticated | Kind::Forbidden | Kind::Conflict => false,
        Kind::Precondition | Kind::Exhausted | Kind::Internal => false,
    };
    if of_the_row { Halt::Failed(failure) } else { Halt::Ended(failure) }
}
