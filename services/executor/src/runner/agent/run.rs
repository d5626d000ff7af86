//! The loop of an agent: ask the model, do what its own turn wants, give it what came back, until it wants nothing more.

use std::sync::Arc;
use std::time::{Duration, Instant};

use callbook_domain::agent::CallForm;
use callbook_domain::arguments::Sent;
use callbook_domain::compile::{AgentPlan, Plan};
use callbook_domain::outcome::{Failure, Outcome, Output};
use serde_json::json;

use super::chat::{Chat, Finish, FunctionResult, Message, Reply, malformed};
use super::frame::Frame;
use super::model::ModelCall;
use super::provider::{Chosen, choose};
use super::tool::{self, Wanted};
use super::turn::{Turn, failed, take};
use super::{prompt, wire};
use crate::call::{Deadline, Ran};
use crate::child::Running;

/// The most tokens of one answer.
const MAX_ANSWER: u64 = 8_192;
/// What one turn may want at most; what goes beyond is not run, and the model is told so.
const MAX_WISHES: usize = 16;

/// Runs the row.
pub async fn run(running: Running<'_>) -> Ran {
    let plan = match running.call.entry.compiled.as_ref().map(|compiled| &compiled.plan) {
        Ok(Plan::Agent(plan)) => plan,
        Ok(Plan::Http(_) | Plan::Fn(_) | Plan::Flow(_) | Plan::Block) | Err(_) => {
            return Ran::local(Outcome::Failed(Failure::new("internal", "the row is no agent")));
        }
    };
    match Frame::inside(running.agent().cloned(), plan.bounds) {
        Err(failure) => Ran::local(Outcome::Failed(failure)),
        Ok(frame) => {
            let outcome = match Agent::new(running, plan, frame.clone()) {
                Ok(agent) => agent.converse().await,
                Err(failure) => Err(failure),
            };
            let taken = frame.taken();
            let usage = json!({"input": taken.usage.input, "output": taken.usage.output});
            let told =
                json!({"model": plan.model, "answers": taken.answers, "usage": usage, "cost_usd": taken.cost_usd});
            let outcome = outcome.map_or_else(Outcome::Failed, |output| Outcome::Ok(output, None));
            Ran { response: Some(told.to_string().into_bytes()), ..Ran::local(outcome) }
        }
    }
}

/// An agent at work.
struct Agent<'a> {
    running: Running<'a>,
    plan: &'a AgentPlan,
    chosen: Chosen<'a>,
    form: CallForm,
    frame: Arc<Frame>,
    chat: Chat,
    until: Instant,
}

impl<'a> Agent<'a> {
    fn new(running: Running<'a>, plan: &'a AgentPlan, frame: Arc<Frame>) -> Result<Self, Failure> {
        let definition = &running.call.entry.row.definition;
        let chosen = choose(&plan.model, &running.app.config.providers)?;
        let form = plan.calls.unwrap_or(chosen.provider.calls);
        let usable = (!definition.allowed_categories.is_empty()).then_some(form);
        let chat = Chat {
            system: prompt::system(&running.call.book, &definition.includes, &plan.prompt, usable)?,
            messages: vec![Message::User(prompt::request(&running.call.bound))],
            functions: if usable == Some(CallForm::Native) { tool::FUNCTIONS } else { &[] },
            max_tokens: MAX_ANSWER,
        };
        // what it starts ends in its own time
        let running = Running { deadline: Deadline::after(running.limit), ..running };
        let until = Instant::now() + running.limit;
        Ok(Agent { running, plan, chosen, form, frame, chat, until })
    }

    async fn converse(mut self) -> Result<Output, Failure> {
        for _ in 0..self.plan.bounds.rounds {
            let reply = self.next().await?;
            let wishes = match self.running.call.entry.row.definition.allowed_categories.is_empty() {
                true => Vec::new(),
                false => tool::wishes(self.form, &reply),
            };
            if reply.finish == Finish::Refused {
                return Err(Failure {
                    output: Some(Output::text(reply.text)),
                    ..Failure::new("agent:refused", "the model or its provider refuses to answer")
                });
            }
            if wishes.is_empty() {
                return last(reply);
            }
            let calls = if self.form == CallForm::Native { reply.calls } else { Vec::new() };
            self.chat.messages.push(Message::Model { text: reply.text, calls });
            let results = self.fulfil(wishes).await?;
            self.chat.messages.push(results);
        }
        let most = self.plan.bounds.rounds;
        Err(Failure::new("agent:loop_limit", format!("the model was asked {most} times and wants more")))
    }

    /// The model's next answer, with its own receipt.
    async fn next(&mut self) -> Result<Reply, Failure> {
        self.chat.max_tokens = MAX_ANSWER.min(self.frame.left()?);
        let body = wire::encode(self.chosen.provider.form, self.chosen.model, &self.chat);
        let asked = Turn::Model(Arc::new(ModelCall { model: self.plan.model.clone(), body }));
        let time = self.left()?;
        let answer = take(&self.running, asked, Sent::Nothing, time).await.map_err(|fault| failed(&fault))?;
        if let Some(failure) = answer.failure {
            return Err(Failure { at: Some("model".to_owned()), ..failure });
        }
        let body = answer.output.ok_or_else(|| malformed("it is empty"))?;
        let reply = wire::decode(self.chosen.provider.form, &body.bytes)?;
        self.frame.take(reply.usage, self.chosen.cost(reply.usage));
        Ok(reply)
    }

    /// Does what the model wants, one after the other and in its order, and gives what it is told of that.
    async fn fulfil(&self, wishes: Vec<Wanted>) -> Result<Message, Failure> {
        let within = Running { frame: Some(&self.frame), ..self.running };
        let mut results = Vec::new();
        for (at, (id, wish)) in wishes.into_iter().enumerate() {
            let (text, failed) = match at < MAX_WISHES {
                true => tool::fulfil(&self.running, &within, wish, self.left()?).await,
                false => {
                    let why = format!("not run: one turn may want {MAX_WISHES} things");
                    (prompt::data(&[("status", "not run")], &why), true)
                }
            };
            results.push(FunctionResult { id: id.unwrap_or_default(), text, failed });
        }
        Ok(match self.form {
            CallForm::Native => Message::Results(results),
            CallForm::Tags => Message::User(results.into_iter().map(|result| result.text).collect()),
        })
    }

    fn left(&self) -> Result<Duration, Failure> {
        let left = self.until.saturating_duration_since(Instant::now());
        let ms = self.running.limit.as_millis();
        (!left.is_zero()).then_some(left).ok_or_else(|| Failure::new("timeout", format!("no result within {ms} ms")))
    }
}

/// The answer that ends the run, as text. One that reached its bound of tokens is marked as cut.
fn last(reply: Reply) -> Result<Output, Failure> {
    match (reply.text.trim().is_empty(), reply.finish) {
        (true, _) => Err(Failure::new("agent:empty_answer", "the model gave no text and wants nothing")),
        (false, finish) => Ok(Output { truncated: finish == Finish::Length, ..Output::text(reply.text) }),
    }
}
