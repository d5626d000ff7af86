//! A call of a row, and its answer as content.

use std::sync::Arc;

use callbook_domain::fault::{Fault, Reason};
use callbook_domain::outcome::Output;
use callbook_domain::schema::Schema;
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::progress::What;
use serde_json::{Value, json};

use super::Surface;
use super::content::{self, Block, Form};
use super::endpoint::Context;
use super::page::{self, Rest};
use super::reply::Outcome;
use crate::answer::{Raw, address, raw};
use crate::dispatch::invoke;
use crate::dispatch::listener::Listener;
use crate::request::Call;
use crate::upstream::rpc;

/// Runs a row. Hanging up takes back what has not been committed, and only stops waiting for what has.
pub(super) async fn run(context: &Context, request: wire::InvokeRequest) -> Result<wire::Answer, Fault> {
    let call = match context.events.is_open() {
        // A stream is kept alive as long as it takes.
        true => context.call.clone().or_within(context.app.config.longest_deadline),
        false => context.call.clone(),
    };
    let answer = match context.meta.progress_token().filter(|_| context.events.is_open()) {
        Some(token) => Some(watched(context, call, token, request).await?),
        None => invoke::run(&context.app, &call, request, rpc!(executor.invoke)).await?.answer,
    };
    context.took_credential();
    answer.ok_or_else(|| Fault::new(Reason::Internal, "the executor's answer is empty").with("fired", "unknown"))
}

/// Runs a row and tells what happens: that it was accepted, each call below it that ended, and the end. How many of
/// these there will be is not known.
async fn watched(
    context: &Context,
    call: Call,
    token: &Value,
    request: wire::InvokeRequest,
) -> Result<wire::Answer, Fault> {
    let mut listener = Listener::run(Arc::clone(&context.app), call, request).await?;
    context.took_credential();
    let mut accepted = None;
    for done in 0_u32.. {
        let happened = listener.next().await.map_err(|fault| lost(fault, accepted.as_deref()))?;
        let (message, answer) = match happened {
            What::Accepted(id) => (accepted.insert(id).clone(), None),
            What::Step(step) => (format!("{} {}", step.key, step.status), None),
            What::Answer(answer) => ("done".to_owned(), Some(answer)),
        };
        let params = json!({"progressToken": token, "progress": done, "message": message});
        context.events.send("notifications/progress", &params).await;
        if let Some(answer) = answer {
            return Ok(answer);
        }
    }
    Err(Fault::new(Reason::Internal, "the call has no end").with("fired", "unknown"))
}

/// What a caller is told where a call that was accepted cannot be followed to its end.
fn lost(fault: Fault, accepted: Option<&str>) -> Fault {
    let is_told = |name: &str| fault.metadata().iter().any(|(told, _)| *told == name);
    let (fired, named) = (is_told("fired"), is_told("invocation_id"));
    let fault = if fired { fault } else { fault.with("fired", "unknown") };
    match accepted {
        Some(id) if !named => fault.with("invocation_id", id),
        Some(_) | None => fault,
    }
}

/// The answer of a row that ran. `output` is the schema that the listing gave for it.
pub(super) fn shown(context: &Context, answer: wire::Answer, output: Option<&Value>) -> Outcome {
    let proof = answer.proof.clone().unwrap_or_default();
    let mut shown = match answer.ok {
        true => succeeded(context, &answer, &proof.invocation_id, output),
        false => Shown::failed(failure(&answer)),
    };
    if answer.truncated {
        shown.blocks.push(Block::text("The upstream sent more than the row takes; this is the head of it."));
    }
    if !answer.warnings.is_empty() {
        shown.blocks.push(Block::text(format!("Warnings: {}", answer.warnings.join("; "))));
    }
    let base = &context.call.base;
    let confirm = address(base, format!("/api/dispatch?confirm={}", proof.invocation_id));
    if context.surface == Surface::Four {
        shown.blocks.push(Block::text(format!("{} · {} · confirm {confirm}", proof.did, proof.invocation_id)));
    }
    let outcome = Outcome::of("content", &shown.blocks).optional("structuredContent", shown.structured.as_ref());
    let outcome = if shown.is_error { outcome.field("isError", &true) } else { outcome };
    outcome
        .meta("callbook/invocation_id", proof.invocation_id.as_str())
        .meta("callbook/confirm", confirm)
        .meta("callbook/receipt", address(base, format!("/api/dispatch?receipt={}", proof.invocation_id)))
        .meta("callbook/contract_hash", proof.contract_hash)
        .meta("callbook/replayed", answer.replayed)
}

/// What a client gets to see.
struct Shown {
    blocks: Vec<Block>,
    structured: Option<Raw>,
    is_error: bool,
}

impl Shown {
    fn blocks(blocks: Vec<Block>) -> Self {
        Shown { blocks, structured: None, is_error: false }
    }

    fn failed(text: String) -> Self {
        Shown { blocks: vec![Block::text(text)], structured: None, is_error: true }
    }
}

fn succeeded(context: &Context, answer: &wire::Answer, id: &str, schema: Option<&Value>) -> Shown {
    let output =
        Output { bytes: answer.output.to_vec(), media_type: answer.media_type.clone(), truncated: answer.truncated };
    let form = content::form(output);
    if let Some(why) = schema.and_then(|schema| misfit(schema, &form)) {
        let told = failure_of_schema(&why, &answer.result);
        return Shown::failed(told);
    }
    match form {
        Form::Blocks(list) if list.is_empty() => Shown::blocks(vec![Block::text("Done. It gave no content.")]),
        Form::Blocks(list) => Shown::blocks(list.into_iter().map(Block::Raw).collect()),
        Form::Json(text) => {
            let (blocks, is_whole) = parts(context, &text, true, id);
            // The older era knows objects alone; what was left out of the text is too long for its twin as well.
            let is_taken = context.era.is_modern() || text.starts_with('{');
            let structured = (is_taken && (is_whole || schema.is_some())).then(|| raw(text.as_bytes()));
            Shown { blocks, structured, is_error: false }
        }
        Form::Text(text) => Shown::blocks(parts(context, &text, false, id).0),
        Form::Bytes(bytes, media_type) => {
            Shown::blocks(vec![content::bytes(&bytes, media_type, format!("callbook://output/{id}"))])
        }
        Form::Nothing => Shown::blocks(vec![Block::text("Done. The row gives no output.")]),
    }
}

/// The first part of a text, and whether that is all.
fn parts(context: &Context, text: &str, is_json: bool, id: &str) -> (Vec<Block>, bool) {
    let Some(page) = page::part(text, is_json, 0) else { return (vec![Block::text(text)], true) };
    let is_whole = page.rest.is_none();
    let mut blocks = vec![Block::text(page.text)];
    blocks.extend(page.rest.map(|rest| Block::text(left_out(context.surface, &rest, id))));
    (blocks, is_whole)
}

/// What a part leaves out, and how to get it.
pub(super) fn left_out(surface: Surface, rest: &Rest, id: &str) -> String {
    let Rest { offset, total, unit } = rest;
    let left = total - offset;
    match surface {
        Surface::Four => {
            format!("{left} of {total} {unit} are left out. Go on: `receipt` with id {id} and offset {offset}.")
        }
        Surface::Typed | Surface::Seed => {
            format!("{left} of {total} {unit} are left out. Go on: read callbook://output/{id}?offset={offset}")
        }
    }
}

/// Why an output does not fit the schema that was promised. Nothing: it does.
fn misfit(schema: &Value, form: &Form) -> Option<String> {
    let text = match form {
        Form::Json(text) => text,
        Form::Blocks(_) | Form::Text(_) | Form::Bytes(..) | Form::Nothing => {
            return Some("it is no JSON".to_owned());
        }
    };
    let value: Value = serde_json::from_str(text).ok()?;
    let schema = Schema::parse(&schema.to_string()).ok()?;
    schema.check(&value).err().map(|fault| fault.error_text())
}

fn failure_of_schema(why: &str, result: &str) -> String {
    let shown = page::part(result, false, 0).map(|page| page.text).unwrap_or_default();
    format!("The row ran and its output does not fit its output schema: {why}\n{shown}")
}

/// A failure in words: the row's own, and whether to try again.
fn failure(answer: &wire::Answer) -> String {
    let mut lines = vec![page::part(&answer.result, false, 0).map(|page| page.text).unwrap_or_default()];
    if let Some(error) = &answer.error {
        if !answer.result.contains(&error.message) {
            lines.push(error.message.clone());
        }
        if !error.r#where.is_empty() {
            lines.push(format!("Where: {}", error.r#where));
        }
        lines.push(match error.retryable {
            true => "The same call may succeed later.".to_owned(),
            false => "The same call will fail again; change what the reason names.".to_owned(),
        });
    }
    lines.join("\n")
}
