//! The code that runs one type of row. Every runner gives a typed outcome; none of them can refuse any more.

mod agent;
mod exchange;
pub mod flow;
pub mod function;
pub mod http;

pub use agent::{Frame, Turn};

use crate::call::{Ran, Work};
use crate::child::Running;

/// Runs a committed call.
pub async fn run(running: Running<'_>) -> Ran {
    let Running { app, call, limit, .. } = running;
    match &call.work {
        Work::Http(request) => http::run(app, call, request, limit).await,
        Work::Fn(arguments) => function::run(app, call, arguments, limit).await,
        Work::Flow => flow::run(running).await,
        Work::Agent => agent::run(running).await,
        Work::Turn(turn) => agent::run_turn(running, turn).await,
    }
}
