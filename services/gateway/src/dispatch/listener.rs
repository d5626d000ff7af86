//! Listening to a call, across executors that come and go.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::InvocationId;
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::progress::What;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tonic::Status;

use super::invoke;
use crate::app::App;
use crate::request::Call;
use crate::upstream::{fault_of_read, rpc};

/// How often an executor that went away is replaced by another one before the listener is told.
const TRIES: usize = 5;
/// How long it is waited before the next one is asked.
const PAUSE: Duration = Duration::from_millis(200);

/// One that listens. Where its executor goes away it goes on at another, which tells everything again.
pub(crate) struct Listener {
    app: Arc<App>,
    call: Call,
    /// The invocation, once it is known.
    id: Option<String>,
    messages: Option<Messages>,
    told: HashSet<String>,
    failed: usize,
}

type Messages = BoxStream<'static, std::result::Result<Option<wire::Progress>, Status>>;

impl Listener {
    /// Listens to a call that was accepted before.
    pub(crate) async fn of(app: Arc<App>, call: Call, id: InvocationId) -> Result<Self> {
        let id = id.to_string();
        let messages = open(&app, &call, &id).await?;
        Ok(Listener { app, call, id: Some(id), messages: Some(messages), told: HashSet::new(), failed: 0 })
    }

    /// Runs a row and listens to it. Going away before it is committed takes it back.
    ///
    /// # Errors
    /// What admission or the commit point refuses.
    pub(crate) async fn run(app: Arc<App>, call: Call, asked: wire::InvokeRequest) -> Result<Self> {
        let asked = wire::StreamInvocationRequest { call: Some(asked) };
        let messages = invoke::run(&app, &call, asked, rpc!(executor.stream_invocation)).await?;
        let messages = messages.map(|message| message.map(|message| message.progress)).boxed();
        Ok(Listener { app, call, id: None, messages: Some(messages), told: HashSet::new(), failed: 0 })
    }

    /// What happens next, each thing once. The answer is the last.
    pub(crate) async fn next(&mut self) -> Result<What> {
        loop {
            if self.app.health.is_stopping() {
                return Err(Fault::new(Reason::ShuttingDown, "the gateway is stopping").retry_after_ms(1_000));
            }
            match self.happened().await {
                Ok(What::Accepted(id)) => {
                    self.id = Some(id.clone());
                    if self.told.insert(id.clone()) {
                        return Ok(What::Accepted(id));
                    }
                }
                Ok(What::Step(step)) => {
                    if self.told.insert(step.invocation_id.clone()) {
                        return Ok(What::Step(step));
                    }
                }
                Ok(What::Answer(answer)) => return Ok(What::Answer(answer)),
                Err(fault) if self.id.is_some() && may_go_on(&fault) && self.failed < TRIES => {
                    self.failed += 1;
                    self.messages = None;
                    tokio::time::sleep(PAUSE).await;
                }
                Err(fault) => return Err(fault),
            }
        }
    }

    async fn happened(&mut self) -> Result<What> {
        let messages = match (&mut self.messages, &self.id) {
            (Some(messages), _) => messages,
            (None, Some(id)) => self.messages.insert(open(&self.app, &self.call, id).await?),
            (None, None) => return Err(silent()),
        };
        let message = tokio::select! {
            message = messages.next() => message.transpose().map_err(|status| fault_of_read(&status))?,
            () = self.app.health.stopping() => None,
        };
        message.flatten().and_then(|progress| progress.what).ok_or_else(silent)
    }
}

async fn open(app: &App, call: &Call, id: &str) -> Result<Messages> {
    let request = wire::FollowInvocationRequest { invocation_id: id.to_owned() };
    let messages = app.upstreams.receipts.read(call, request, rpc!(executor.follow_invocation)).await?;
    Ok(messages.map(|message| message.map(|message| message.progress)).boxed())
}

fn silent() -> Fault {
    Fault::new(Reason::ServiceUnavailable, "the executor stopped to tell what happens")
}

/// Whether another executor can tell what this one cannot.
fn may_go_on(fault: &Fault) -> bool {
    matches!(fault.reason(), Reason::ServiceUnavailable | Reason::ShuttingDown)
}
