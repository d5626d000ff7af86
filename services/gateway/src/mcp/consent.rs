//! Calls that wait for a person, and arguments that only a person gives.
//!
//! A held call is released by the decision of somebody who may approve it, in Callbook and under a credential of its own:
//! no answer that comes with the call's own credential releases it, whoever typed it. The elicitation shows the person
//! at the client what would go out and where it is decided; its answer only says whether to go on waiting for the
//! decision or to give up.

use callbook_domain::fault::Fault;
use callbook_wire::executor::v1 as wire;
use callbook_wire::resolver::v1::Signature;
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::ask::{Response, Responses, questions};
use super::endpoint::Context;
use super::era::{Era, needs_form};
use super::message::{Params, RpcError};
use super::refusal::failed;
use super::reply::Outcome;
use super::state::{Bound, State, Told};
use crate::answer::{address, moment};
use crate::upstream::rpc;

/// The key under which the decision of a held call is asked about.
const DECISION: &str = "decision";
/// How long a call waits for the decision once the person says that it was made or is being made, in milliseconds.
const WAIT_MS: u32 = 20_000;
/// Characters of a body that are shown to a person.
const SHOWN: usize = 2_000;

/// What a client brought for the next round of a request.
pub(super) struct Round {
    responses: Responses,
    state: Option<String>,
    bound: Bound,
}

/// How a call that was held goes on.
pub(super) enum Wait {
    /// It waits so long for its decision, in milliseconds.
    Ms(u32),
    /// The person does not wait for it: why nothing ran.
    GivenUp(String),
}

/// What to do now.
pub(super) enum Next {
    /// Run with these arguments, some of which a person told. `wait_ms`: how long a held call waits for its decision.
    Run { arguments: Map<String, Value>, told: Told, wait_ms: u32 },
    /// Ask a person first.
    Ask(Outcome),
    /// Nothing runs: why.
    Refuse(String),
}

impl Round {
    /// Reads what belongs to rounds out of a request about a row; `sent` is the text of its arguments.
    pub(super) fn take(
        context: &Context,
        params: &mut Params,
        about: (&str, &str, &str),
        sent: &str,
    ) -> Result<Round, RpcError> {
        let (method, key, contract_hash) = about;
        Ok(Round {
            responses: Responses::take(params)?,
            state: params.take("requestState")?,
            bound: Bound::new(&context.call.credential(), method, key, contract_hash, sent),
        })
    }

    /// The state that came, if it is one of this request.
    fn opened(&self, context: &Context) -> Result<Option<State>, RpcError> {
        let opened = |sealed: &str| State::opened(context.state_key(), sealed, &self.bound, context.clock.now());
        self.state.as_deref().map(opened).transpose()
    }

    /// Puts what is to be asked of a person, and takes in what was answered.
    pub(super) fn next(
        &self,
        context: &Context,
        row: &Signature,
        mut sent: Map<String, Value>,
    ) -> Result<Next, RpcError> {
        let Era::Modern(client) = &context.era else {
            return Ok(Next::Run { arguments: sent, told: Told::nothing(), wait_ms: 0 });
        };
        let wait_ms = match self.wait(context)? {
            Wait::Ms(wait_ms) => wait_ms,
            Wait::GivenUp(why) => return Ok(Next::Refuse(why)),
        };
        let state = self.opened(context)?;
        let schema = serde_json::from_slice(&row.input_schema).unwrap_or(Value::Bool(true));
        let questions = questions(&schema);
        if let Some(question) = questions.iter().find(|question| sent.contains_key(question.name())) {
            let why = format!("`{}` is asked of a person and cannot be sent along\nNothing ran.", question.name());
            return Ok(Next::Refuse(why));
        }
        let mut told = state.map_or_else(Told::nothing, |state| state.told);
        for question in &questions {
            if !question.is_due(&told.answers) {
                continue;
            }
            match self.responses.get(question.name())? {
                Some(Response::Declined) => {
                    return Ok(Next::Refuse("The person declined to answer.\nNothing ran.".to_owned()));
                }
                Some(Response::Accepted(content)) => {
                    if let Some(value) = question.value(content) {
                        told.answers.insert(question.name().to_owned(), value);
                    }
                }
                None => {}
            }
        }
        let due: Vec<_> = questions.iter().filter(|question| question.is_due(&told.answers)).collect();
        if !due.is_empty() && client.can_show_form() {
            let requests: Map<String, Value> =
                due.iter().map(|question| (question.name().to_owned(), question.request())).collect();
            let state = State::new(self.bound.clone(), told, None, context.clock.now());
            return Ok(Next::Ask(asking(context, &requests, &state)));
        }
        if due.iter().any(|question| question.is_required()) {
            return Err(needs_form());
        }
        sent.extend(told.answers.clone());
        Ok(Next::Run { arguments: sent, told, wait_ms })
    }

    /// What the person said about a held call, where this is the round after one.
    pub(super) fn wait(&self, context: &Context) -> Result<Wait, RpcError> {
        let Some(approval) = self.opened(context)?.and_then(|state| state.approval) else { return Ok(Wait::Ms(0)) };
        let goes_on = |content: &Map<String, Value>| content.get("decided") != Some(&Value::Bool(false));
        Ok(match self.responses.get(DECISION)? {
            Some(Response::Accepted(content)) if goes_on(&content) => Wait::Ms(WAIT_MS),
            Some(Response::Accepted(_) | Response::Declined) => Wait::GivenUp(given_up(context, &approval)),
            None => Wait::Ms(0),
        })
    }

    /// The answer to a call that is held: an elicitation where the client can show one, else what to do.
    pub(super) async fn held(&self, context: &Context, held: &wire::Approval, told: Told) -> Result<Outcome, Fault> {
        let url = approval_url(context, &held.id);
        let Era::Modern(client) = &context.era else { return Ok(in_words(held, &url)) };
        if !client.can_show_form() && !client.can_open_url() {
            return Ok(in_words(held, &url));
        }
        let request = wire::GetApprovalRequest { id: held.id.clone() };
        let executors = context.app.upstreams.executor().ok_or_else(super::nobody)?;
        let look = executors.read(&context.call, request, rpc!(executor.get_approval)).await?;
        let message = message(held, &look, &url);
        let params = match client.can_open_url() {
            true => json!({"mode": "url", "message": message, "url": url, "elicitationId": held.id}),
            false => json!({"mode": "form", "message": message, "requestedSchema": {
                "type": "object", "required": ["decided"],
                "properties": {"decided": {"type": "boolean", "title": "It has been decided there: go on", "default": true}},
            }}),
        };
        let request = json!({"method": "elicitation/create", "params": params});
        let requests: Map<String, Value> = [(DECISION.to_owned(), request)].into_iter().collect();
        let state = State::new(self.bound.clone(), told, Some(held.id.clone()), context.clock.now());
        Ok(asking(context, &requests, &state))
    }
}

fn asking(context: &Context, requests: &Map<String, Value>, state: &State) -> Outcome {
    Outcome::of("inputRequests", requests).field("requestState", &state.sealed(context.state_key())).input_required()
}

/// Where a person decides.
fn approval_url(context: &Context, id: &str) -> String {
    address(&context.call.base, format!("/api/approvals/{id}"))
}

/// What a person reads before it decides: the request as it would go out.
fn message(held: &wire::Approval, look: &wire::GetApprovalResponse, url: &str) -> String {
    let mut lines = vec![format!("A call of {} waits for approval ({}).", held.key, held.reason)];
    if let Some(shape) = &look.shape {
        if !shape.method.is_empty() {
            lines.push(format!("{} {}", shape.method, shape.url));
        }
        let body = shape.body.as_deref().or(shape.plan_json.as_deref()).unwrap_or_default();
        if !body.is_empty() {
            let text = String::from_utf8_lossy(body);
            let shown: String = text.chars().take(SHOWN).collect();
            let rest = if shown.len() < text.len() { format!(" … ({} bytes)", body.len()) } else { String::new() };
            lines.push(format!("{shown}{rest}"));
        }
        if !shape.secret_name.is_empty() {
            lines.push(format!("With the secret {}.", shape.secret_name));
        }
    }
    lines.push(format!("Contract {}.", held.contract_hash));
    lines.push(format!("Somebody who may approve it decides with `callbook approvals show {}` or at {url}", held.id));
    lines.join("\n")
}

/// A held call, told to a client that cannot put anything before a person.
fn in_words(held: &wire::Approval, url: &str) -> Outcome {
    failed(&words(held, url)).meta("callbook/approval", held.id.as_str())
}

/// A held call where there is no result that could say so: a text or an address whose row is sensitive.
pub(super) fn refused(context: &Context, held: &wire::Approval) -> RpcError {
    let words = words(held, &approval_url(context, &held.id));
    RpcError::new(StatusCode::OK, i64::from(StatusCode::FORBIDDEN.as_u16()), words)
}

fn words(held: &wire::Approval, url: &str) -> String {
    let until = moment(held.expires_at).unwrap_or_default();
    format!(
        "held: this call of {} waits for a person ({}). Nothing ran.\nTo do: have somebody who may approve it decide at \
         {url} or with `callbook approvals show {}` until {until}, then make the same call again.",
        held.key, held.reason, held.id
    )
}

fn given_up(context: &Context, approval: &str) -> String {
    let url = approval_url(context, approval);
    format!("The person did not go on. Nothing ran; until it expires the call can still be decided at {url}")
}
