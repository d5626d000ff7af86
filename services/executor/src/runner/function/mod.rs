//! Rows of type `fn`: the built-in functions.
//!
//! The names and the counts of arguments are those of `callbook_domain::function`. A function that reads or changes the
//! book acts with the caller's rights.

#![allow(clippy::result_large_err, reason = "a failure is what a run gives and is moved a few times at most")]

pub(super) mod book;
mod content;
mod exec;
mod fetch;
mod json;
mod kv;
mod path;
mod pure;
mod sql;
pub(super) mod tags;
mod text;

pub(in crate::runner) use json::get as json_get;
pub(crate) use sql::Databases;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use callbook_domain::arguments::Argument;
use callbook_domain::compile::Plan;
use callbook_domain::fault::{Fault, Kind};
use callbook_domain::function::{self, Function};
use callbook_domain::outcome::{Failure, Outcome, Output};
use callbook_domain::row::Effect;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::App;
use crate::call::{Call, Ran};
use crate::config::MAX_RESPONSE;

/// A function that keeps its own time says more about its end than the clock behind it.
const GRACE: Duration = Duration::from_millis(100);

/// What a function gives.
type Given = Result<Output, Failure>;

/// What a function works with beside its arguments.
struct World<'a> {
    app: &'a Arc<App>,
    call: &'a Call,
    /// How long it may take.
    limit: Duration,
}

impl World<'_> {
    /// The most bytes that it may give.
    fn max_bytes(&self) -> usize {
        let own = self.call.entry.row.definition.max_response_bytes;
        own.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(MAX_RESPONSE).min(MAX_RESPONSE)
    }
}

/// How a function runs.
enum Body {
    /// Of its arguments alone, at once.
    Quick(fn(&[Argument]) -> Given),
    /// Of its arguments alone, and for some of them long: not on a thread that others wait for.
    Long(fn(&[Argument]) -> Given),
    /// Of the clock and the settings too, at once.
    Here(fn(&App, &[Argument]) -> Given),
    /// With the book or a database.
    Asks(for<'a> fn(&'a World<'a>, &'a [Argument]) -> BoxFuture<'a, Given>),
    /// With an upstream: what went over the wire is kept too.
    Calls(for<'a> fn(&'a World<'a>, &'a [Argument]) -> BoxFuture<'a, Ran>),
}

/// What runs for each name, in the order of `callbook_domain::function`.
const BODIES: &[(&str, Body)] = &[
    ("ask", Body::Asks(|world, arguments| book::ask(world, arguments).boxed())),
    ("base64_decode", Body::Quick(text::base64_decode)),
    ("base64_encode", Body::Quick(text::base64_encode)),
    ("content", Body::Long(content::content)),
    ("contract", Body::Asks(|world, arguments| book::contract(world, arguments).boxed())),
    ("echo", Body::Quick(pure::echo)),
    ("exec", Body::Asks(|world, arguments| exec::exec(world, arguments).boxed())),
    ("http_fetch", Body::Calls(|world, arguments| fetch::fetch(world, arguments).boxed())),
    ("json_get", Body::Long(json::get)),
    ("json_merge", Body::Long(json::merge)),
    ("kv_append", Body::Asks(|world, arguments| kv::append(world, arguments).boxed())),
    ("kv_delete", Body::Asks(|world, arguments| kv::delete(world, arguments).boxed())),
    ("kv_get", Body::Asks(|world, arguments| kv::get(world, arguments).boxed())),
    ("kv_list", Body::Asks(|world, arguments| kv::list(world, arguments).boxed())),
    ("kv_put", Body::Asks(|world, arguments| kv::put(world, arguments).boxed())),
    ("last_reply_of", Body::Quick(tags::last_reply_of)),
    ("lower", Body::Quick(text::lower)),
    ("noop", Body::Quick(pure::noop)),
    ("now", Body::Here(pure::now)),
    ("parse_tags", Body::Quick(tags::parse_tags)),
    ("random", Body::Quick(pure::random)),
    ("receipt", Body::Asks(|world, arguments| book::receipt(world, arguments).boxed())),
    ("regex_match", Body::Long(text::regex_match)),
    ("row_delete", Body::Asks(|world, arguments| book::row_delete(world, arguments).boxed())),
    ("row_patch", Body::Asks(|world, arguments| book::row_patch(world, arguments).boxed())),
    ("row_put", Body::Asks(|world, arguments| book::row_put(world, arguments).boxed())),
    ("sha256", Body::Quick(text::sha256)),
    ("sql_query", Body::Asks(|world, arguments| sql::query(world, arguments).boxed())),
    ("template", Body::Quick(text::template)),
    ("trim", Body::Quick(text::trim)),
    ("upper", Body::Quick(text::upper)),
    ("url_encode", Body::Quick(text::url_encode)),
    ("uuid", Body::Here(pure::uuid)),
];

/// Runs the function that the row names, within `limit`. A name that this build does not have is a failed outcome.
pub async fn run(app: &Arc<App>, call: &Call, arguments: &[Argument], limit: Duration) -> Ran {
    let name = match call.entry.compiled.as_ref().map(|compiled| &compiled.plan) {
        Ok(Plan::Fn(plan)) => plan.target.as_str(),
        Ok(Plan::Http(_) | Plan::Flow(_) | Plan::Agent(_) | Plan::Block) | Err(_) => {
            return failure(Failure::new("internal", "the row is no function"));
        }
    };
    let Some((function, body)) = find(name) else {
        return failure(Failure::new("fn:unknown_target", name));
    };
    if let Err(refused) = check_count(function, arguments.len()) {
        return failure(refused);
    }
    let world = World { app, call, limit };
    match tokio::time::timeout(limit + GRACE, body.run(&world, arguments)).await {
        Ok(ran) => ran,
        Err(_) => failure(too_late(function, limit)),
    }
}

fn failure(failure: Failure) -> Ran {
    Ran::local(Outcome::Failed(failure))
}

fn find(name: &str) -> Option<(&'static Function, &'static Body)> {
    let function = function::find(name)?;
    let (_, body) = BODIES.iter().find(|(known, _)| *known == name)?;
    Some((function, body))
}

fn check_count(function: &Function, given: usize) -> Result<(), Failure> {
    let Function { name, min, max, .. } = *function;
    if (min..=max).contains(&given) {
        return Ok(());
    }
    let takes = match (min, max) {
        (0, 0) => "no arguments".to_owned(),
        (1, 1) => "1 argument".to_owned(),
        (min, max) if min == max => format!("{min} arguments"),
        (0, 1) => "at most 1 argument".to_owned(),
        (0, max) => format!("at most {max} arguments"),
        (min, max) => format!("{min} to {max} arguments"),
    };
    Err(refused(format!("`{name}` takes {takes}, {given} given")))
}

/// A change that ran out of time may have been made, so only reading is called safe to repeat.
fn too_late(function: &Function, limit: Duration) -> Failure {
    let failure = Failure::new("timeout", format!("no result within {} ms", limit.as_millis()));
    match function.effect {
        Effect::Read => failure.retryable(),
        Effect::Write | Effect::Destructive => failure,
    }
}

impl Body {
    async fn run<'a>(&self, world: &'a World<'a>, arguments: &'a [Argument]) -> Ran {
        let given = match self {
            Body::Quick(function) => function(arguments),
            Body::Here(function) => function(world.app, arguments),
            Body::Long(function) => aside(*function, arguments.to_vec()).await,
            Body::Asks(function) => function(world, arguments).await,
            Body::Calls(function) => return function(world, arguments).await,
        };
        match given {
            Ok(output) => Ran::local(Outcome::Ok(output, None)),
            Err(failed) => failure(failed),
        }
    }
}

async fn aside(function: fn(&[Argument]) -> Given, arguments: Vec<Argument>) -> Given {
    let running = tokio::task::spawn_blocking(move || function(&arguments));
    running.await.unwrap_or_else(|_| Err(Failure::new("internal", "the function stopped")))
}

/// The text of an argument; empty where it was not given.
fn text_of(arguments: &[Argument], at: usize) -> &str {
    arguments.get(at).map_or("", Argument::as_text)
}

/// Arguments that the function does not take.
fn refused(why: impl Into<String>) -> Failure {
    Failure::new("fn:arguments", why)
}

/// More than a function may give.
fn too_large(max: usize) -> Failure {
    Failure::new("fn:too_large", format!("the result is larger than {max} bytes"))
}

/// A fault as what a run gave. Only reading is called safe to repeat.
fn failed(fault: &Fault, effect: Effect) -> Failure {
    let message = match fault.how_to_fix() {
        Some(fix) => format!("{}: {fix}", fault.message()),
        None => fault.message().to_owned(),
    };
    let failure = Failure::new(fault.error_text(), message);
    let may_pass = matches!(fault.kind(), Kind::Exhausted | Kind::Unavailable);
    if may_pass && effect == Effect::Read { failure.retryable() } else { failure }
}
