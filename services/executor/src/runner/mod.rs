//! The code that runs one type of row. Every runner gives a typed outcome; none of them can refuse any more.

mod exchange;
pub mod function;
pub mod http;

use std::sync::Arc;
use std::time::Duration;

use crate::App;
use crate::call::{Call, Ran, Work};

/// Runs a committed call within `limit`.
pub async fn run(app: &Arc<App>, call: &Call, limit: Duration) -> Ran {
    match &call.work {
        Work::Http(request) => http::run(app, call, request, limit).await,
        Work::Fn(arguments) => function::run(app, call, arguments, limit).await,
    }
}
