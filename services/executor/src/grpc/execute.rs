//! `ExecutorService`.

use callbook_domain::invocation::Mode;
use callbook_runtime::grpc::to_status;
use callbook_wire::executor::v1::executor_service_server::ExecutorService;
use callbook_wire::executor::v1::{
    self as wire, InvokeRequest, InvokeResponse, RepairRequest, RepairResponse, ReplayRequest, ReplayResponse,
    ResetBreakerRequest, ResetBreakerResponse, ShapeRequest, ShapeResponse,
};
use callbook_wire::receipt::v1::CommitMode;
use futures::stream::BoxStream;
use tonic::{Request, Response, Status};

use super::{Grpc, deadline, effect, failure, risk, sent};
use crate::call::{self, Answer};
use crate::{breaker, invoke, repair, shape};

#[tonic::async_trait]
impl ExecutorService for Grpc {
    async fn invoke(&self, request: Request<InvokeRequest>) -> Result<Response<InvokeResponse>, Status> {
        let headers = request.metadata().as_ref();
        let caller = self.0.callers.identify(headers).await.map_err(|fault| to_status(&fault))?;
        let deadline = deadline(headers);
        let asked = request.into_inner();
        let repairs = asked.repairs.as_deref().filter(|id| !id.is_empty()).map(str::to_owned);
        let request = call::Request {
            key: asked.key,
            sent: sent(asked.arguments).map_err(|fault| to_status(&fault))?,
            idempotency_key: asked.idempotency_key,
            repairs: None,
            replay_of: None,
            deadline,
            place: None,
        };
        let answer = match repairs {
            None => invoke::invoke(&self.0, &caller, request).await,
            Some(source) => repair::repair(&self.0, &caller, &source, request).await,
        };
        answer.map(|answer| Response::new(InvokeResponse { answer: Some(encode(answer)) })).map_err(|f| to_status(&f))
    }

    async fn shape(&self, request: Request<ShapeRequest>) -> Result<Response<ShapeResponse>, Status> {
        let caller = self.0.callers.identify(request.metadata().as_ref()).await.map_err(|fault| to_status(&fault))?;
        let asked = request.into_inner();
        let sent = sent(asked.arguments).map_err(|fault| to_status(&fault))?;
        let shaped = shape::shape(&self.0, &caller, &asked.key, sent).await.map_err(|fault| to_status(&fault))?;
        Ok(Response::new(ShapeResponse {
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
        }))
    }

    async fn repair(&self, request: Request<RepairRequest>) -> Result<Response<RepairResponse>, Status> {
        let headers = request.metadata().as_ref();
        let caller = self.0.callers.identify(headers).await.map_err(|fault| to_status(&fault))?;
        let deadline = deadline(headers);
        let asked = request.into_inner();
        let request = call::Request {
            key: asked.key,
            sent: sent(asked.arguments).map_err(|fault| to_status(&fault))?,
            idempotency_key: asked.idempotency_key,
            repairs: None,
            replay_of: None,
            deadline,
            place: None,
        };
        let answer = repair::repair(&self.0, &caller, &asked.invocation_id, request).await;
        answer.map(|answer| Response::new(RepairResponse { answer: Some(encode(answer)) })).map_err(|f| to_status(&f))
    }

    async fn replay(&self, request: Request<ReplayRequest>) -> Result<Response<ReplayResponse>, Status> {
        let headers = request.metadata().as_ref();
        let caller = self.0.callers.identify(headers).await.map_err(|fault| to_status(&fault))?;
        let deadline = deadline(headers);
        let asked = request.into_inner();
        let request = call::Request {
            key: String::new(),
            sent: callbook_domain::arguments::Sent::Nothing,
            idempotency_key: asked.idempotency_key,
            repairs: None,
            replay_of: None,
            deadline,
            place: None,
        };
        let answer = repair::replay(&self.0, &caller, &asked.invocation_id, request).await;
        answer.map(|answer| Response::new(ReplayResponse { answer: Some(encode(answer)) })).map_err(|f| to_status(&f))
    }

    async fn reset_breaker(
        &self,
        request: Request<ResetBreakerRequest>,
    ) -> Result<Response<ResetBreakerResponse>, Status> {
        let caller = self.0.callers.identify(request.metadata().as_ref()).await.map_err(|fault| to_status(&fault))?;
        let cleared = breaker::reset(&self.0, &caller, &request.into_inner().key).await.map_err(|f| to_status(&f))?;
        Ok(Response::new(ResetBreakerResponse { cleared: u32::try_from(cleared).unwrap_or(u32::MAX) }))
    }

    type InvokeBatchStream = BoxStream<'static, Result<wire::InvokeBatchResponse, Status>>;

    async fn invoke_batch(&self, _: Request<wire::InvokeBatchRequest>) -> Result<Response<Self::InvokeBatchStream>, Status> {
        Err(Status::unimplemented("invoke_batch"))
    }

    type StreamInvocationStream = BoxStream<'static, Result<wire::StreamInvocationResponse, Status>>;

    async fn stream_invocation(&self, _: Request<wire::StreamInvocationRequest>) -> Result<Response<Self::StreamInvocationStream>, Status> {
        Err(Status::unimplemented("stream_invocation"))
    }

    type FollowInvocationStream = BoxStream<'static, Result<wire::FollowInvocationResponse, Status>>;

    async fn follow_invocation(&self, _: Request<wire::FollowInvocationRequest>) -> Result<Response<Self::FollowInvocationStream>, Status> {
        Err(Status::unimplemented("follow_invocation"))
    }

    async fn list_approvals(&self, _: Request<wire::ListApprovalsRequest>) -> Result<Response<wire::ListApprovalsResponse>, Status> {
        Err(Status::unimplemented("list_approvals"))
    }

    async fn get_approval(&self, _: Request<wire::GetApprovalRequest>) -> Result<Response<wire::GetApprovalResponse>, Status> {
        Err(Status::unimplemented("get_approval"))
    }

    async fn decide_approval(&self, _: Request<wire::DecideApprovalRequest>) -> Result<Response<wire::DecideApprovalResponse>, Status> {
        Err(Status::unimplemented("decide_approval"))
    }

    async fn put_watch_rule(&self, _: Request<wire::PutWatchRuleRequest>) -> Result<Response<wire::PutWatchRuleResponse>, Status> {
        Err(Status::unimplemented("put_watch_rule"))
    }

    async fn list_watch_rules(&self, _: Request<wire::ListWatchRulesRequest>) -> Result<Response<wire::ListWatchRulesResponse>, Status> {
        Err(Status::unimplemented("list_watch_rules"))
    }

    async fn delete_watch_rule(&self, _: Request<wire::DeleteWatchRuleRequest>) -> Result<Response<wire::DeleteWatchRuleResponse>, Status> {
        Err(Status::unimplemented("delete_watch_rule"))
    }
}

fn encode(answer: Answer) -> wire::Answer {
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
        ran: true,
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
        held: None,
        accepted: false,
    }
}
