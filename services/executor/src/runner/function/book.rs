//! Functions of the book and its receipts, with the caller's rights and the caller's sight.

use callbook_domain::arguments::Argument;
use callbook_domain::caller::Caller;
use callbook_domain::compile::Compiled;
use callbook_domain::contract::{self, Rendered, clean};
use callbook_domain::fault::{Fault, Reason};
use callbook_domain::invocation::unknown;
use callbook_domain::json;
use callbook_domain::key::Key;
use callbook_domain::outcome::{Failure, Output};
use callbook_domain::row::{Effect, Provenance, timestamp};
use callbook_ranking::{Hit, Question};
use callbook_store::snapshot::{Entry, Snapshot};
use callbook_store::write::{self, Options, Writer, Written};
use serde_json::{Map, Value, json};

use super::{Given, World, failed, refused, text_of};
use crate::App;
use crate::receipt;

/// The most matches of one question.
const MAX_MATCHES: usize = 100;

/// The rows that fit a question, best first; the second argument says how many at most, 12 unless said.
pub(super) async fn ask(world: &World<'_>, arguments: &[Argument]) -> Given {
    let mut question = Question::new(text_of(arguments, 0));
    if let Some(limit) = Some(text_of(arguments, 1).trim()).filter(|text| !text.is_empty()) {
        let limit = limit.parse().ok().filter(|limit| (1..=MAX_MATCHES).contains(limit));
        question.limit = limit.ok_or_else(|| refused(format!("a question has 1 to {MAX_MATCHES} matches")))?;
    }
    let caller = &world.call.caller;
    Ok(matches(world.app, &world.app.directory.snapshot(), &question, &|key| caller.sees(key)))
}

/// The rows that fit, among those that `visible` lets through.
pub(in crate::runner) fn matches(
    app: &App,
    snapshot: &Snapshot,
    question: &Question<'_>,
    visible: &dyn Fn(&Key) -> bool,
) -> Output {
    let ranked = app.index.ask(question, visible);
    let matches: Vec<Value> = ranked.hits.iter().filter_map(|hit| matched(snapshot, hit)).collect();
    let mut answer = json!({"question": question.text, "count": ranked.total, "matches": matches});
    if ranked.total == 0 {
        answer["hint"] = json!("no row fits: say it in other words, or read the map of the book");
    }
    Output::json(answer.to_string())
}

/// A hit as the gateway shows it. What third parties wrote stands apart.
fn matched(snapshot: &Snapshot, hit: &Hit) -> Option<Value> {
    let entry = snapshot.get(hit.key.as_str())?;
    let (row, definition) = (&entry.row, &entry.row.definition);
    let compiled = entry.compiled.as_ref().ok()?;
    let what = compiled.docstring.summary().unwrap_or_default();
    let when_to_use = compiled.docstring.when_to_use.as_deref().unwrap_or_default();
    let mut shown = json!({"key": hit.key});
    if definition.provenance == Provenance::ThirdParty {
        shown["untrusted_text"] = json!({"what": clean(what), "when_to_use": clean(when_to_use)});
    } else {
        shown["what"] = json!(what);
        shown["when_to_use"] = json!(when_to_use);
    }
    shown["type"] = json!(definition.row_type.as_str());
    shown["category"] = json!(definition.category);
    shown["effect"] = json!(row.effect.as_str());
    shown["risk"] = json!(row.risk.as_str());
    shown["example"] = json!(contract::example(definition, compiled).unwrap_or_default());
    shown["score"] = json!((hit.score * 10_000.0).round() / 10_000.0);
    shown["why"] = json!(hit.why);
    Some(shown)
}

/// The contract of a row: compact JSON, or with `markdown` or `typescript` as the second argument in that form.
pub(super) async fn contract(world: &World<'_>, arguments: &[Argument]) -> Given {
    let snapshot = world.app.directory.fresh().await.map_err(|fault| failed(&fault, Effect::Read))?;
    let (entry, compiled) =
        seen(world, &snapshot, text_of(arguments, 0).trim()).map_err(|f| failed(&f, Effect::Read))?;
    let rendered = Rendered { row: &entry.row, compiled, caller: &world.call.caller };
    match text_of(arguments, 1).trim() {
        "" | "json" => Ok(compact(entry, compiled, &world.call.caller)),
        "markdown" => Ok(Output::text(contract::markdown(&rendered))),
        "typescript" => match contract::typescript(&entry.row.definition, compiled) {
            Ok(text) => Ok(Output::text(text)),
            Err(_) => Err(Failure::new("fn:too_large", "the contract is too large for TypeScript: read it as JSON")),
        },
        _ => Err(refused("the form of a contract is `json`, `markdown` or `typescript`")),
    }
}

/// The compact contract of a row, as this caller may use it.
pub(in crate::runner) fn compact(entry: &Entry, compiled: &Compiled, caller: &Caller) -> Output {
    Output::json(contract::compact(&Rendered { row: &entry.row, compiled, caller }).to_string())
}

/// The row of this key, enabled, if the caller may see it.
fn seen<'a>(world: &World<'_>, snapshot: &'a Snapshot, key: &str) -> Result<(&'a Entry, &'a Compiled), Fault> {
    let caller = &world.call.caller;
    let entry = snapshot.get(key).filter(|entry| entry.row.definition.enabled && caller.sees(entry.key()));
    let entry = entry.ok_or_else(|| snapshot.unknown_key(caller, key))?;
    Ok((entry, entry.compiled.as_ref().map_err(Clone::clone)?))
}

/// The confirmation of an invocation: that it is on record, and how it stands. No input, no output, no names.
pub(super) async fn receipt(world: &World<'_>, arguments: &[Argument]) -> Given {
    let confirmed = receipt::confirm(world.app, text_of(arguments, 0).trim()).await;
    let confirmed = confirmed.map_err(|fault| failed(&fault, Effect::Read))?;
    if !Key::parse(&confirmed.key).is_ok_and(|key| world.call.caller.sees(&key)) {
        return Err(failed(&unknown(), Effect::Read));
    }
    let logged = |part| Some(confirmed.commitment(part)).filter(|text| !text.is_empty());
    let value = json!({
        "confirmed": true,
        "invocation_id": confirmed.id,
        "status": confirmed.status.as_str(),
        "key": confirmed.key,
        "contract_hash": confirmed.contract_hash,
        "started_at": timestamp(confirmed.started_at),
        "ended_at": confirmed.ended_at.map(timestamp),
        "mode": confirmed.mode.as_str(),
        "repairs": confirmed.repairs,
        "replay_of": confirmed.replay_of,
        "commitments": {
            "input": logged("input"),
            "output": logged("output"),
            "request": logged("request"),
            "response": logged("response"),
        },
    });
    Ok(Output::json(value.to_string()))
}

/// Puts a row, given as one JSON object, in the place of the one that has its key, or adds it.
pub(super) async fn row_put(world: &World<'_>, arguments: &[Argument]) -> Given {
    let fields = object(text_of(arguments, 0))?;
    let key = fields.get("key").and_then(Value::as_str).ok_or_else(|| {
        let fault = Fault::new(Reason::InvalidRequest, "key and type required").with("field", "key");
        failed(&fault, Effect::Write)
    })?;
    let key = Key::parse(key).map_err(|fault| failed(&fault, Effect::Write))?;
    let written = write::put(&writer(world), &key, &fields, Options::default()).await;
    written.map(|written| done(&written)).map_err(|fault| failed(&fault, Effect::Write))
}

/// Changes the columns of a row that a JSON object names.
pub(super) async fn row_patch(world: &World<'_>, arguments: &[Argument]) -> Given {
    let key = Key::parse(text_of(arguments, 0).trim()).map_err(|fault| failed(&fault, Effect::Write))?;
    let fields = object(text_of(arguments, 1))?;
    let written = write::patch(&writer(world), &key, &fields, Options::default()).await;
    written.map(|written| done(&written)).map_err(|fault| failed(&fault, Effect::Write))
}

/// Takes a row out; a key that no row has is no failure.
pub(super) async fn row_delete(world: &World<'_>, arguments: &[Argument]) -> Given {
    let key = Key::parse(text_of(arguments, 0).trim()).map_err(|fault| failed(&fault, Effect::Destructive))?;
    let deleted = write::delete(&writer(world), &key, Options::default()).await;
    let deleted = deleted.map_err(|fault| failed(&fault, Effect::Destructive))?;
    let mut answer = json!({"ok": true, "key": key, "deleted": u8::from(deleted.deleted)});
    if let Some(revision) = deleted.revision {
        answer["revision"] = json!(revision);
    }
    Ok(Output::json(answer.to_string()))
}

fn writer(world: &World<'_>) -> Writer {
    let app = world.app;
    Writer { directory: app.directory.clone(), clock: app.clock.clone(), caller: world.call.caller.clone() }
}

fn object(text: &str) -> Result<Map<String, Value>, Failure> {
    match json::value(text.trim()) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(refused("the row is not a JSON object")),
        Err(problem) => Err(Failure::new("fn:not_json", format!("the row is not taken as JSON: {problem}"))),
    }
}

fn done(written: &Written) -> Output {
    let mut answer = json!({
        "ok": true,
        "key": written.key,
        "updated_at": timestamp(written.updated_at),
        "revision": written.revision,
        "version": written.version,
        "warnings": written.warnings,
    });
    if !written.fields.is_empty() {
        answer["fields"] = json!(written.fields);
    }
    if !written.ignored_fields.is_empty() {
        answer["ignored_fields"] = json!(written.ignored_fields);
    }
    Output::json(answer.to_string())
}
