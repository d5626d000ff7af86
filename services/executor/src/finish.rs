//! What happens after the commit point: run, redact, commit the result, answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use callbook_domain::event::{Body, EventKind, Sealed};
use callbook_domain::fault::Result;
use callbook_domain::invocation::{InvocationId, Mode, Status};
use callbook_domain::outcome::{Failure, Outcome, Output};
use callbook_domain::row::{Effect, timestamp};
use futures::FutureExt as _;
use tokio::sync::oneshot;

use crate::App;
use crate::call::{Answer, Call, Deadline, Ran, did};
use crate::child::Running;
use crate::config::LEASE_AFTER_DEADLINE;
use crate::group::Refused;
use crate::invoke::not_stored;
use crate::runner;
use crate::store::commit::Candidate;
use crate::store::finish::{Finished, Part};
use crate::tree::Tree;

/// Runs the call, commits its result and only then answers. If the result cannot be written it goes on trying until
/// the lease ends.
pub async fn run_to_the_end(
    app: Arc<App>,
    call: Call,
    candidate: Candidate,
    deadline: Deadline,
    reply: oneshot::Sender<Result<Answer>>,
) {
    let began = Instant::now();
    let tree = match &call.place {
        Some(place) => place.tree.clone(),
        None => Tree::new(candidate.id),
    };
    let ran = match app.revocable.hold(&candidate) {
        None => bounded(&app, &call, candidate.id, deadline, &tree).await,
        Some(held) => tokio::select! {
            ran = bounded(&app, &call, candidate.id, deadline, &tree) => ran,
            () = held.revoked() => cancelled(),
        },
    };
    count(&candidate, &ran, began.elapsed());
    let ran = app.redacted(ran);
    let cost_usd = ran.cost_usd + tree.spent_below(candidate.id);
    let finished = finished(&app, &call, &candidate, &ran, cost_usd);
    let stored = match candidate.mode {
        Mode::Durable => store(|| app.committer.finish(finished.clone()), deadline).await,
        Mode::Read => store(|| app.committer.record(candidate.clone(), finished.clone()), deadline).await,
    };
    if let Some(place) = &call.place {
        tree.spend(place.parent, cost_usd);
    }
    let answer = match stored {
        true => Ok(answer(&call, &candidate, ran.outcome, cost_usd)),
        false => Err(not_stored(candidate.id)),
    };
    let _ = reply.send(answer); // the caller may have gone
}

fn count(candidate: &Candidate, ran: &Ran, took: Duration) {
    let outcome = if ran.outcome.is_ok() { "ok" } else { "failed" };
    metrics::counter!("invocations_total", "type" => candidate.row_type, "outcome" => outcome).increment(1);
    metrics::histogram!("invocation_run_seconds", "type" => candidate.row_type).record(took.as_secs_f64());
}

/// What a call that only reads gives when its token is taken back while it runs.
fn cancelled() -> Ran {
    Ran::local(Outcome::Failed(Failure::new("cancelled:revoked", "the token was taken back while the call ran")))
}

/// A runner ends in time, and a runner that panics is a failed outcome like another.
async fn bounded(app: &Arc<App>, call: &Call, id: InvocationId, deadline: Deadline, tree: &Arc<Tree>) -> Ran {
    let own = call
        .entry
        .row
        .definition
        .timeout_ms
        .map_or(Duration::from_secs(30), |ms| Duration::from_millis(u64::try_from(ms).unwrap_or(0)));
    // what is left of the deadline has to carry the answer too
    let left = deadline.left();
    let limit = own.min(left.saturating_sub((left / 10).min(Duration::from_millis(250))));
    let running = Running { app, call, id, tree, deadline, limit, frame: None };
    let running = AssertUnwindSafe(runner::run(running)).catch_unwind();
    // a runner keeps its own time and says more; this is the wall behind it
    match tokio::time::timeout(limit + Duration::from_millis(250), running).await {
        Ok(Ok(ran)) => ran,
        Ok(Err(_)) => Ran::local(Outcome::Failed(Failure::new("internal", "the runner stopped"))),
        Err(_) => {
            let failure = Failure::new("timeout", format!("no result within {} ms", limit.as_millis()));
            let reads = call.entry.row.effect == Effect::Read;
            Ran::local(Outcome::Failed(if reads { failure.retryable() } else { failure }))
        }
    }
}

fn finished(app: &App, call: &Call, candidate: &Candidate, ran: &Ran, cost_usd: f64) -> Finished {
    let now = app.clock.now();
    let wrote = call.entry.row.effect != Effect::Read;
    let outcome = &ran.outcome;
    let material = outcome.is_material(wrote);
    let parts = parts(ran);
    let commitment = |name| parts.iter().find(|part| part.name == name).map(|part| part.sealed.commitment());
    let failure = match outcome {
        Outcome::Ok(..) => None,
        Outcome::Failed(failure) => Some(failure),
    };
    let ms = i64::try_from((now - candidate.started_at).whole_milliseconds()).unwrap_or(0);
    let bytes = outcome.output().map_or(0, |output| output.bytes.len());
    let event = Body::new(EventKind::Result)
        .set("inv", candidate.id.to_string())
        .set("key", candidate.key.as_str())
        .set("revision", candidate.row_revision)
        .set("contract", candidate.contract_hash.as_str())
        .set("text", candidate.text_hash.as_str())
        .set("actor", candidate.actor.as_str())
        .set("lineage", candidate.lineage_ids())
        .set("parent", candidate.parent.map(|parent| InvocationId(parent).to_string()))
        .set("risk", candidate.risk)
        .set("effect", candidate.effect)
        .set("in", candidate.input.commitment())
        .set("out", commitment("output"))
        .set("req", commitment("request"))
        .set("res", commitment("response"))
        .set("status", Status::of(callbook_domain::invocation::State::Done, material).as_str())
        .set("code", failure.map(|failure| failure.code.chars().take(200).collect::<String>()))
        .set("http", outcome.upstream_status())
        .set("ms", ms)
        .set("bytes", bytes)
        .set("cost", ran.cost_usd)
        .set("mode", candidate.mode.as_str())
        .set("ts", timestamp(now));
    Finished {
        id: candidate.id.0,
        key: candidate.key.clone(),
        actor: candidate.actor.clone(),
        at: now,
        ok: outcome.is_ok(),
        material,
        code: failure.map(|failure| failure.code.clone()),
        message: failure.map(|failure| without_nul(&failure.message)),
        retryable: failure.map(|failure| failure.retryable),
        failed_at: failure.and_then(|failure| failure.at.clone()),
        upstream_status: outcome.upstream_status().map(i32::from),
        truncated: outcome.output().is_some_and(|output| output.truncated),
        own_cost_usd: ran.cost_usd,
        cost_usd,
        parts,
        event: event.canonical(),
    }
}

/// Postgres text has no NUL; an upstream's words may.
fn without_nul(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}

fn parts(ran: &Ran) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut keep = |name, bytes: Vec<u8>, media_type: &str| {
        parts.push(Part { name, sealed: Sealed::new(bytes), media_type: media_type.to_owned() });
    };
    if let Some(request) = &ran.request {
        keep("request", request.clone(), "message/http");
    }
    if let Some(response) = &ran.response {
        keep("response", response.clone(), "application/json");
    }
    if let Some(Output { bytes, media_type, .. }) = ran.outcome.output() {
        keep("output", bytes.clone(), &without_nul(media_type));
    }
    parts
}

async fn store<F>(submit: impl Fn() -> F, deadline: Deadline) -> bool
where
    F: Future<Output = std::result::Result<bool, Refused>>,
{
    let mut pause = Duration::from_millis(50);
    loop {
        match submit().await {
            Ok(stored) => return stored,
            Err(refused) => tracing::warn!(?refused, "a result cannot be stored yet"),
        }
        if deadline.passed_by(LEASE_AFTER_DEADLINE) {
            return false;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(1));
    }
}

fn answer(call: &Call, candidate: &Candidate, outcome: Outcome, cost_usd: f64) -> Answer {
    let (result, did) = (outcome.render(), did(&candidate.key, &outcome));
    let ok = outcome.is_ok();
    let (output, failure) = match outcome {
        Outcome::Ok(output, _) => (Some(output), None),
        Outcome::Failed(failure) => (failure.output.clone(), Some(failure)),
    };
    Answer {
        id: candidate.id,
        ran: true,
        ok,
        replayed: false,
        result,
        output,
        failure,
        did,
        contract_hash: candidate.contract_hash.clone(),
        trace: candidate.trace.clone(),
        cost_usd,
        warnings: call.bound.warnings.clone(),
        mode: candidate.mode,
        held: None,
        accepted: false,
    }
}
