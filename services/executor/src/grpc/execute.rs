//! `ExecutorService`.

use std::sync::Arc;
use std::time::Duration;

use callbook_domain::fault::Result as Fallible;
use callbook_domain::invocation::Mode;
use callbook_runtime::grpc::to_status;
use callbook_wire::executor::v1::executor_service_server::ExecutorService;
use callbook_wire::executor::v1::{
    self as wire, InvokeRequest, InvokeResponse, RepairRequest, RepairResponse, ReplayRequest, ReplayResponse,
    ResetBreakerRequest, ResetBreakerResponse, ShapeRequest, ShapeResponse,
};
use callbook_wire::receipt::v1::CommitMode;
use futures::stream::BoxStream;
use http::HeaderMap;
use tonic::{Request, Response, Status};

use super::{Grpc, approvals, deadline, effect, failure, risk, sent, stream};
use crate::call::{self, Answer};
use crate::credential::Credential;
use crate::invoke::{Until, prove_and_invoke};
use crate::shape::Shaped;
use crate::{App, breaker, repair, shape};

#[tonic::async_trait]
impl ExecutorService for Grpc {
    async fn invoke(&self, request: Request<InvokeRequest>) -> Result<Response<InvokeResponse>, Status> {
        let (metadata, _, asked) = request.into_parts();
        let until = until(&asked);
        let answer = run(&self.0, metadata.as_ref(), asked, until).await;
        answer.map(|answer| Response::new(InvokeResponse { answer: Some(encode(answer)) })).map_err(|f| to_status(&f))
    }

    async fn shape(&self, request: Request<ShapeRequest>) -> Result<Response<ShapeResponse>, Status> {
        let (metadata, _, asked) = request.into_parts();
        let credential = Credential::of(&self.0, metadata.as_ref());
        let sent = sent(asked.arguments).map_err(|fault| to_status(&fault))?;
        let shaped = shape::shape(&self.0, credential, &asked.key, sent).await.map_err(|fault| to_status(&fault))?;
        Ok(Response::new(encode_shape(shaped)))
    }

    async fn repair(&self, request: Request<RepairRequest>) -> Result<Response<RepairResponse>, Status> {
        let (metadata, _, asked) = request.into_parts();
        let credential = Credential::of(&self.0, metadata.as_ref());
        let RepairRequest { invocation_id, key, arguments, idempotency_key } = asked;
        let asked = InvokeRequest { key, arguments, idempotency_key, ..InvokeRequest::default() };
        let request = decode(metadata.as_ref(), asked).map_err(|fault| to_status(&fault))?;
        let answer = repair::repair(&self.0, credential, &invocation_id, request, Until::Ended).await;
        answer.map(|answer| Response::new(RepairResponse { answer: Some(encode(answer)) })).map_err(|f| to_status(&f))
    }

    async fn replay(&self, request: Request<ReplayRequest>) -> Result<Response<ReplayResponse>, Status> {
        let (metadata, _, asked) = request.into_parts();
        let credential = Credential::of(&self.0, metadata.as_ref());
        let ReplayRequest { invocation_id, idempotency_key } = asked;
        let asked = InvokeRequest { idempotency_key, ..InvokeRequest::default() };
        let request = decode(metadata.as_ref(), asked).map_err(|fault| to_status(&fault))?;
        let answer = repair::replay(&self.0, credential, &invocation_id, request).await;
        answer.map(|answer| Response::new(ReplayResponse { answer: Some(encode(answer)) })).map_err(|f| to_status(&f))
    }

    async fn reset_breaker(
        &self,
        request: Request<ResetBreakerRequest>,
    ) -> Result<Response<ResetBreakerResponse>, Status> {
        let caller =
            Credential::of(&self.0, request.metadata().as_ref()).caller().await.map_err(|fault| to_status(&fault))?;
        let cleared = breaker::reset(&self.0, &caller, &request.into_inner().key).await.map_err(|f| to_status(&f))?;
        Ok(Response::new(ResetBreakerResponse { cleared: u32::try_from(cleared).unwrap_or(u32::MAX) }))
    }

    type InvokeBatchStream = BoxStream<'static, Result<wire::InvokeBatchResponse, Status>>;

    async fn invoke_batch(
        &self,
        request: Request<wire::InvokeBatchRequest>,
    ) -> Result<Response<Self::InvokeBatchStream>, Status> {
        stream::batch(&self.0, request).await
    }

    type StreamInvocationStream = BoxStream<'static, Result<wire::StreamInvocationResponse, Status>>;

    async fn stream_invocation(
        &self,
        request: Request<wire::StreamInvocationRequest>,
    ) -> Result<Response<Self::StreamInvocationStream>, Status> {
        stream::invocation(&self.0, request).await
    }

    type FollowInvocationStream = BoxStream<'static, Result<wire::FollowInvocationResponse, Status>>;

    async fn follow_invocation(
        &self,
        request: Request<wire::FollowInvocationRequest>,
    ) -> Result<Response<Self::FollowInvocationStream>, Status> {
        stream::following(&self.0, request).await
    }

    async fn list_approvals(
        &self,
        request: Request<wire::ListApprovalsRequest>,
    ) -> Result<Response<wire::ListApprovalsResponse>, Status> {
        approvals::list(&self.0, request).await
    }

    async fn get_approval(
        &self,
        request: Request<wire::GetApprovalRequest>,
    ) -> Result<Response<wire::GetApprovalResponse>, Status> {
        approvals::get(&self.0, request).await
    }

    async fn decide_approval(
        &self,
        request: Request<wire::DecideApprovalRequest>,
    ) -> Result<Response<wire::DecideApprovalResponse>, Status> {
        approvals::decide(&self.0, request).await
    }

    async fn put_watch_rule(
        &self,
        request: Request<wire::PutWatchRuleRequest>,
    ) -> Result<Response<wire::PutWatchRuleResponse>, Status> {
        approvals::put_rule(&self.0, request).await
    }

    async fn list_watch_rules(
        &self,
        request: Request<wire::ListWatchRulesRequest>,
    ) -> Result<Response<wire::ListWatchRulesResponse>, Status> {
        approvals::list_rules(&self.0, request).await
    }

    async fn delete_watch_rule(
        &self,
        request: Request<wire::DeleteWatchRuleRequest>,
    ) -> Result<Response<wire::DeleteWatchRuleResponse>, Status> {
        approvals::delete_rule(&self.0, request).await
    }
}

/// Runs a call, or one that mends another.
pub async fn run(app: &Arc<App>, headers: &HeaderMap, asked: wire::InvokeRequest, until: Until) -> Fallible<Answer> {
    let credential = Credential::of(app, headers);
    let repairs = asked.repairs.clone().filter(|id| !id.is_empty());
    let request = decode(headers, asked)?;
    match repairs {
        Some(source) => repair::repair(app, credential, &source, request, until).await,
        None => prove_and_invoke(app, credential, request, until).await,
    }
}

/// When the answer to this call comes.
pub fn until(asked: &wire::InvokeRequest) -> Until {
    if asked.r#async { Until::Committed } else { Until::Ended }
}

/// The call that is asked for, with the caller's deadline.
fn decode(headers: &HeaderMap, asked: InvokeRequest) -> Fallible<call::Request> {
    Ok(call::Request {
        key: asked.key,
        sent: sent(asked.arguments)?,
        idempotency_key: asked.idempotency_key,
        repairs: None,
        replay_of: None,
        deadline: deadline(headers),
        wait: Duration::from_millis(asked.wait_ms.into()),
        place: None,
    })
}

/// What is told of a call.
pub fn encode(answer: Answer) -> wire::Answer {
    let mode = match answer.mode {
        Mode::Durable => CommitMode::Before,
        Mode::Read => CommitMode::Read,
    };
    let (output, media_type, truncated) = match answer.output {
        Some(output) => (output.bytes, output.media_type, output.truncated),
        None => (Vec::new(), String::new(), false),
    };
    wire::Answer {
        ok: answer.ok,
        ran: answer.ran,
        replayed: answer.replayed,
        result: answer.result,
        output: output.into(),
        media_type,
        truncated,
        error: answer.failure.map(failure),
        proof: Some(wire::Proof {
            invocation_id: answer.id.to_string(),
            contract_hash: answer.contract_hash,
            did: answer.did,
            ok: answer.ok,
            trace: answer.trace,
        }),
        cost_usd: answer.cost_usd,
        warnings: answer.warnings,
        mode: mode.into(),
        held: answer.held.map(approvals::encode),
        accepted: answer.accepted,
    }
}

/// A request that was built and not sent.
pub fn encode_shape(shaped: Shaped) -> ShapeResponse {
    ShapeResponse {
        method: shaped.method,
        url: shaped.url,
        headers: shaped.headers.into_iter().map(|(name, value)| wire::Header { name, value }).collect(),
        body: shaped.body.map(Into::into),
        secret_name: shaped.secret_name,
        secret_allowed: shaped.secret_allowed,
        verdict: shaped.verdict,
        effect: effect(shaped.effect),
        risk: risk(shaped.risk),
        plan_json: shaped.plan.map(|plan| plan.to_string().into()),
        contract_hash: shaped.contract_hash,
        warnings: shaped.warnings,
    }
}
