//! Rows of type `agent`: a model that works with the book, in a loop with bounds.
//!
//! `run` is the loop. A `turn` is what happens in it that is no call of a row, with a receipt of its own; `model` is one
//! answer of the provider that `provider` chose, in the form that `wire` speaks. `tool` reads what the model's own turn
//! wants and says what came of it, `prompt` makes what it is given into words and data, `book` is what it sees, and
//! `frame` counts what it takes together with the agents around it.

#![allow(clippy::result_large_err, reason = "a failure is what a run gives and is moved a few times at most")]

mod book;
mod chat;
mod frame;
mod model;
mod prompt;
mod provider;
mod run;
mod tool;
mod turn;
mod wire;

pub use frame::Frame;
pub use run::run;
pub use turn::{Turn, run as run_turn};
