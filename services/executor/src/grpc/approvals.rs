//! The part of `ExecutorService` that is about calls that wait for a person.

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_runtime::grpc::to_status;
use callbook_wire::executor::v1::{
    self as wire, ApprovalState, DecideApprovalRequest, DecideApprovalResponse, DeleteWatchRuleRequest,
    DeleteWatchRuleResponse, GetApprovalRequest, GetApprovalResponse, ListApprovalsRequest, ListApprovalsResponse,
    ListWatchRulesRequest, ListWatchRulesResponse, PutWatchRuleRequest, PutWatchRuleResponse, WatchAction,
};
use tonic::{Request, Response, Status};

use super::at;
use super::execute::encode_shape;
use crate::App;
use crate::approval::{self, Action, Approval, Rule, State, id_text, parse_id};
use crate::credential::Credential;

/// The page size where none is asked for, and the largest.
const PAGE: (u32, u32) = (100, 500);

/// Who calls.
async fn caller<T>(app: &App, request: &Request<T>) -> Result<Caller, Status> {
    app.callers.identify(request.metadata().as_ref()).await.map_err(refused)
}

fn refused(fault: Fault) -> Status {
    to_status(&fault)
}

/// `ListApprovals`.
pub async fn list(
    app: &Arc<App>,
    request: Request<ListApprovalsRequest>,
) -> Result<Response<ListApprovalsResponse>, Status> {
    let caller = caller(app, &request).await?;
    let asked = request.into_inner();
    let bad_token = |_| Fault::new(Reason::CursorInvalid, "the page token is not one of ours").with("field", "cursor");
    let before = match asked.page_token.as_str() {
        "" => None,
        token => Some(parse_id(token).map_err(bad_token).map_err(refused)?),
    };
    let state = state(asked.state).map_err(refused)?;
    let limit = if asked.page_size == 0 { PAGE.0 } else { asked.page_size.min(PAGE.1) };
    let found = approval::list(app, &caller, state, before, i64::from(limit) + 1).await;
    let mut found = found.map_err(refused)?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| more).map(|approval| id_text(approval.id));
    Ok(Response::new(ListApprovalsResponse {
        approvals: found.into_iter().map(encode).collect(),
        next_page_token: last.unwrap_or_default(),
    }))
}

/// `GetApproval`.
pub async fn get(
    app: &Arc<App>,
    request: Request<GetApprovalRequest>,
) -> Result<Response<GetApprovalResponse>, Status> {
    let (metadata, _, asked) = request.into_parts();
    let headers = metadata.into_headers();
    let look = approval::look(app, Credential::of(app, &headers), &asked.id).await.map_err(refused)?;
    Ok(Response::new(GetApprovalResponse {
        text_hash: look.approval.text_hash.clone(),
        approval: Some(encode(look.approval)),
        shape: look.shaped.map(encode_shape),
        input_json: look.input.into(),
        egress_host: look.egress_host,
        is_current: look.is_current,
    }))
}

/// `DecideApproval`.
pub async fn decide(
    app: &Arc<App>,
    request: Request<DecideApprovalRequest>,
) -> Result<Response<DecideApprovalResponse>, Status> {
    let caller = caller(app, &request).await?;
    caller.require_credential().map_err(refused)?;
    let asked = request.into_inner();
    let id = parse_id(&asked.id).map_err(refused)?;
    let decided = approval::decide(app, &caller, id, asked.approve, &asked.reason).await.map_err(refused)?;
    Ok(Response::new(DecideApprovalResponse { approval: Some(encode(decided)) }))
}

/// `PutWatchRule`.
pub async fn put_rule(
    app: &Arc<App>,
    request: Request<PutWatchRuleRequest>,
) -> Result<Response<PutWatchRuleResponse>, Status> {
    let caller = caller(app, &request).await?;
    caller.require_owner().map_err(refused)?;
    let rule = decode_rule(request.into_inner().rule.unwrap_or_default()).map_err(refused)?;
    let created = approval::put_rule(app, &caller, &rule).await.map_err(refused)?;
    Ok(Response::new(PutWatchRuleResponse { rule: Some(encode_rule(rule)), created }))
}

/// `ListWatchRules`.
pub async fn list_rules(
    app: &Arc<App>,
    request: Request<ListWatchRulesRequest>,
) -> Result<Response<ListWatchRulesResponse>, Status> {
    let caller = caller(app, &request).await?;
    let rules = approval::rules(app, &caller).await.map_err(refused)?;
    Ok(Response::new(ListWatchRulesResponse { rules: rules.into_iter().map(encode_rule).collect() }))
}

/// `DeleteWatchRule`.
pub async fn delete_rule(
    app: &Arc<App>,
    request: Request<DeleteWatchRuleRequest>,
) -> Result<Response<DeleteWatchRuleResponse>, Status> {
    let caller = caller(app, &request).await?;
    let deleted = approval::delete_rule(app, &caller, &request.into_inner().name).await.map_err(refused)?;
    Ok(Response::new(DeleteWatchRuleResponse { deleted: deleted.into() }))
}

/// The state that a listing is narrowed to.
fn state(wire: i32) -> Result<Option<State>> {
    match ApprovalState::try_from(wire) {
        Ok(ApprovalState::Unspecified) => Ok(None),
        Ok(ApprovalState::Held) => Ok(Some(State::Held)),
        Ok(ApprovalState::Approved) => Ok(Some(State::Approved)),
        Ok(ApprovalState::Refused) => Ok(Some(State::Refused)),
        Ok(ApprovalState::Used) => Ok(Some(State::Used)),
        Ok(ApprovalState::Expired) => Ok(Some(State::Expired)),
        Err(_) => Err(Fault::new(Reason::InvalidRequest, "no such state").with("field", "state")),
    }
}

fn decode_rule(rule: wire::WatchRule) -> Result<Rule> {
    let action = match rule.action() {
        WatchAction::Allow => Action::Allow,
        WatchAction::Deny => Action::Deny,
        WatchAction::Hold => Action::Hold,
        WatchAction::Unspecified => {
            return Err(Fault::new(Reason::InvalidRequest, "a rule's action is `allow`, `deny` or `hold`")
                .with("field", "action"));
        }
    };
    Ok(Rule {
        name: rule.name,
        position: rule.position,
        pattern_key: rule.pattern_key,
        pattern_body: rule.pattern_body,
        action,
        reason: rule.reason,
    })
}

fn encode_rule(rule: Rule) -> wire::WatchRule {
    let action = match rule.action {
        Action::Allow => WatchAction::Allow,
        Action::Deny => WatchAction::Deny,
        Action::Hold => WatchAction::Hold,
    };
    wire::WatchRule {
        name: rule.name,
        position: rule.position,
        pattern_key: rule.pattern_key,
        pattern_body: rule.pattern_body,
        action: action.into(),
        reason: rule.reason,
    }
}

/// A held call.
pub fn encode(approval: Approval) -> wire::Approval {
    let state = match approval.state {
        State::Held => ApprovalState::Held,
        State::Approved => ApprovalState::Approved,
        State::Refused => ApprovalState::Refused,
        State::Used => ApprovalState::Used,
        State::Expired => ApprovalState::Expired,
    };
    wire::Approval {
        id: id_text(approval.id),
        invocation_id: approval.invocation.to_string(),
        state: state.into(),
        key: approval.key,
        contract_hash: approval.contract_hash,
        actor: approval.actor,
        reason: approval.reason,
        created_at: Some(at(approval.created_at)),
        expires_at: Some(at(approval.expires_at)),
        decided_by: approval.decided_by.unwrap_or_default(),
        decided_at: approval.decided_at.map(at),
        decision_reason: approval.decision_reason,
    }
}
