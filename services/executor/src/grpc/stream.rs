//! Calls that answer in several messages: batches, and progress.

use std::sync::Arc;

use callbook_domain::fault::{Fault, Reason, Result};
use callbook_runtime::grpc::to_status;
use callbook_runtime::status::statuses;
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::invoke_batch_response::Result as Given;
use callbook_wire::executor::v1::progress::What;
use futures::stream::{self, BoxStream, Stream, StreamExt as _};
use tonic::{Request, Response, Status};

use super::deadline;
use super::execute::{encode, run, until};
use crate::App;
use crate::credential::Credential;
use crate::invoke::Until;
use crate::progress::{Progress, follow, follow_as};

/// The most calls of one batch.
const MAX_CALLS: usize = 100;
/// How many calls of one batch run at once.
const AT_ONCE: usize = 16;

/// A stream of messages.
pub type Messages<M> = std::result::Result<Response<BoxStream<'static, std::result::Result<M, Status>>>, Status>;

/// `InvokeBatch`. Each call is admitted, committed and refused by itself.
pub async fn batch(app: &Arc<App>, request: Request<wire::InvokeBatchRequest>) -> Messages<wire::InvokeBatchResponse> {
    let (metadata, _, asked) = request.into_parts();
    let headers = Arc::new(metadata.into_headers());
    let caller = Credential::of(app, &headers).caller().await.map_err(|fault| to_status(&fault))?;
    caller.require_credential().map_err(|fault| to_status(&fault))?;
    if !(1..=MAX_CALLS).contains(&asked.calls.len()) {
        let fault = Fault::new(Reason::InvalidRequest, format!("a batch has 1 to {MAX_CALLS} calls"));
        return Err(to_status(&fault.with("field", "calls")));
    }
    let app = app.clone();
    let calls = (0u32..).zip(asked.calls).map(move |(index, call)| {
        let (app, headers, until) = (app.clone(), headers.clone(), until(&call));
        async move {
            let given = match run(&app, &headers, call, until).await {
                Ok(answer) => Given::Answer(encode(answer)),
                Err(fault) => Given::Refusal(refusal(&fault)),
            };
            Ok(wire::InvokeBatchResponse { index, result: Some(given) })
        }
    });
    Ok(Response::new(stream::iter(calls).buffer_unordered(AT_ONCE).boxed()))
}

fn refusal(fault: &Fault) -> wire::Refusal {
    let statuses = statuses(fault.reason());
    let variables = fault.metadata().iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    wire::Refusal {
        error: fault.error_text(),
        message: fault.message().to_owned(),
        fix: fault.how_to_fix().unwrap_or_default().to_owned(),
        code: statuses.grpc as u32,
        http_status: statuses.http.into(),
        retry_after_ms: fault.retry_after().unwrap_or_default(),
        metadata: variables.collect(),
    }
}

/// `StreamInvocation`. A call that an earlier one answers for, or that waits for a person, has its answer at once.
pub async fn invocation(
    app: &Arc<App>,
    request: Request<wire::StreamInvocationRequest>,
) -> Messages<wire::StreamInvocationResponse> {
    let (metadata, _, asked) = request.into_parts();
    let headers = metadata.into_headers();
    let call = asked.call.unwrap_or_default();
    let answer = run(app, &headers, call, Until::Committed).await.map_err(|fault| to_status(&fault))?;
    let progress = match answer.accepted {
        true => {
            let caller = Credential::of(app, &headers).caller().await.map_err(|fault| to_status(&fault))?;
            follow(app.clone(), caller, answer.id, deadline(&headers)).boxed()
        }
        false => {
            let told = [Progress::Accepted(answer.id), Progress::Ended(Box::new(answer))];
            stream::iter(told.map(Ok)).boxed()
        }
    };
    Ok(messages(progress, |progress| wire::StreamInvocationResponse { progress }))
}

/// `FollowInvocation`.
pub async fn following(
    app: &Arc<App>,
    request: Request<wire::FollowInvocationRequest>,
) -> Messages<wire::FollowInvocationResponse> {
    let (metadata, _, asked) = request.into_parts();
    let headers = metadata.into_headers();
    let progress = follow_as(app, Credential::of(app, &headers), &asked.invocation_id, deadline(&headers)).await;
    let progress = progress.map_err(|fault| to_status(&fault))?;
    Ok(messages(progress, |progress| wire::FollowInvocationResponse { progress }))
}

fn messages<M: Send + 'static>(
    progress: impl Stream<Item = Result<Progress>> + Send + 'static,
    message: fn(Option<wire::Progress>) -> M,
) -> Response<BoxStream<'static, std::result::Result<M, Status>>> {
    let told = progress.map(move |happened| match happened {
        Ok(happened) => Ok(message(Some(wire::Progress { what: Some(what(happened)) }))),
        Err(fault) => Err(to_status(&fault)),
    });
    Response::new(told.boxed())
}

fn what(happened: Progress) -> What {
    match happened {
        Progress::Accepted(id) => What::Accepted(id.to_string()),
        Progress::Step { id, key, status } => {
            What::Step(wire::StepEnded { invocation_id: id.to_string(), key, status: status.as_str().to_owned() })
        }
        Progress::Ended(answer) => What::Answer(encode(*answer)),
    }
}
