//! Rows of type `fn`: the built-in functions.
//!
//! The names are those of `callbook_domain::function`; a function that changes the directory acts with the caller's
//! rights.

mod pure;

use std::sync::Arc;
use std::time::Duration;

use callbook_domain::arguments::Argument;
use callbook_domain::compile::Plan;
use callbook_domain::outcome::{Failure, Outcome};

use crate::App;
use crate::call::Call;

/// Runs the function that the row names. A name that this build does not have is a failed outcome.
pub async fn run(app: &Arc<App>, call: &Call, arguments: &[Argument], _limit: Duration) -> Outcome {
    let target = match call.entry.compiled.as_ref().map(|compiled| &compiled.plan) {
        Ok(Plan::Fn(plan)) => plan.target.as_str(),
        Ok(_) | Err(_) => return Outcome::Failed(Failure::new("internal", "the row is no function")),
    };
    match pure::run(app, target, arguments) {
        Some(outcome) => outcome,
        None => Outcome::Failed(Failure::new("fn:unknown_target", target)),
    }
}
