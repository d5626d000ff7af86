//! `/api/approvals`: calls that wait for a person.

use std::sync::Arc;

use axum::body::HttpBody as _;
use axum::extract::{FromRequest as _, Request, State};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::executor::v1 as wire;
use http::Uri;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, ApprovalState, Raw, Refusal, Refused, Word, address, json, moment, only, raw, some};
use crate::app::App;
use crate::dispatch::Shape;
use crate::request::{At, Call, JsonBody, Limit, Query, nothing};
use crate::upstream::rpc;

/// The routes of this part.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(look)).routes(routes!(approve)).routes(routes!(refuse))
}

/// A call that waits for a person, or did.
#[derive(Serialize, ToSchema)]
struct Approval {
    /// `apr_` and 26 characters.
    id: String,
    /// The id under which the call will run, if it does.
    invocation_id: String,
    /// How far it came.
    state: Option<ApprovalState>,
    /// The row.
    key: String,
    /// Who calls, as receipts name it.
    actor: String,
    /// Why it waits: the reason of a rule, `sensitive` where no rule spoke, or `owner_gate`.
    reason: String,
    /// Contract hash that the call is bound to.
    contract_hash: String,
    /// When it was held.
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// Until when it may be decided, and an approved call be fired.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Who decided. Null: nobody yet.
    decided_by: Option<String>,
    /// When it was decided. Null: not yet.
    #[schema(format = DateTime)]
    decided_at: Option<String>,
    /// What the one who decided said. Null: nothing.
    decision_reason: Option<String>,
    /// Address of what a person sees before it decides.
    url: String,
}

/// Which approvals.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// Only those in this state.
    #[param(nullable = false, inline)]
    state: Option<ApprovalState>,
    /// Entries a page, from 1; 100 where nothing is said, 500 at most.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before, with the same filter.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// A page of approvals.
#[derive(Serialize, ToSchema)]
#[schema(as = ApprovalsPage)]
struct Page {
    /// The approvals, newest first.
    approvals: Vec<Approval>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// What a held call would do.
#[derive(Serialize, ToSchema)]
#[schema(as = ApprovalLook)]
struct Look {
    #[serde(flatten)]
    approval: Approval,
    /// Text hash of the row as it was held.
    text_hash: String,
    /// True: the row is still the one that the call is bound to. False: the call cannot be fired any more.
    is_current: bool,
    /// Host that the request would go to. Null: it goes nowhere.
    egress_host: Option<String>,
    /// What the caller sent: `{"body":…}`, `{"args":…}` or `{}`. Null: it was erased.
    #[schema(value_type = Value)]
    input: Option<Raw>,
    /// The request that would go out, names of secrets in the place of their values. Null: nothing would.
    shape: Option<Shape>,
}

/// What the one who decides says.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DecisionRequest)]
struct Said {
    /// Why. The caller reads it where its call is refused.
    #[serde(default)]
    #[schema(max_length = 256)]
    reason: Option<String>,
}

/// The call is decided.
#[derive(Serialize, ToSchema)]
#[schema(as = ApprovalDecided)]
struct Decided {
    /// Always true.
    ok: bool,
    #[serde(flatten)]
    approval: Approval,
}

/// Lists calls that wait for a person, or did, newest first: those of rows that the caller may approve, and its own.
#[utoipa::path(
    get, path = "/api/approvals", tag = "approvals", operation_id = "list_approvals", params(Filter),
    responses((status = 200, description = "A page", body = Page), Refused)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, call: Call, Query(filter): Query<Filter>) -> Answer {
    let request = wire::ListApprovalsRequest {
        state: only(filter.state),
        page_size: Limit::page_size(filter.limit),
        page_token: filter.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.receipts.read(&call, request, rpc!(executor.list_approvals)).await?;
    json(&Page {
        approvals: found.approvals.into_iter().map(|approval| Approval::read(approval, &call.base)).collect(),
        next_cursor: some(found.next_page_token),
    })
}

/// Shows what a held call would do: the whole outbound request, and nothing runs.
#[utoipa::path(
    get, path = "/api/approvals/{id}", tag = "approvals", operation_id = "get_approval",
    params(("id" = String, Path, description = "Id of the approval")),
    responses((status = 200, description = "What it would do", body = Look), Refused)
)]
pub(crate) async fn look(State(app): State<Arc<App>>, call: Call, At(id): At, uri: Uri) -> Answer {
    nothing(&uri)?;
    let request = wire::GetApprovalRequest { id };
    let found = app.upstreams.receipts.read(&call, request, rpc!(executor.get_approval)).await?;
    let approval = Approval::require(found.approval, &call.base)?;
    json(&Look {
        shape: found.shape.map(|shape| Shape::read(shape, &approval.key)),
        approval,
        text_hash: found.text_hash,
        is_current: found.is_current,
        egress_host: some(found.egress_host),
        input: (!found.input_json.is_empty()).then(|| raw(&found.input_json)),
    })
}

/// Approves a held call: its caller may repeat it once, exactly as it was, until its time is over.
#[utoipa::path(
    post, path = "/api/approvals/{id}/approve", tag = "approvals", operation_id = "approve_call",
    params(("id" = String, Path, description = "Id of the approval")), request_body = Option<Said>,
    responses((status = 200, description = "It is approved", body = Decided), Refused)
)]
pub(crate) async fn approve(State(app): State<Arc<App>>, call: Call, At(id): At, uri: Uri, request: Request) -> Answer {
    nothing(&uri)?;
    decide(&app, &call, id, true, request).await
}

/// Refuses a held call: its caller is told why, and asks anew once the approval's time is over.
#[utoipa::path(
    post, path = "/api/approvals/{id}/refuse", tag = "approvals", operation_id = "refuse_call",
    params(("id" = String, Path, description = "Id of the approval")), request_body = Option<Said>,
    responses((status = 200, description = "It is refused", body = Decided), Refused)
)]
pub(crate) async fn refuse(State(app): State<Arc<App>>, call: Call, At(id): At, uri: Uri, request: Request) -> Answer {
    nothing(&uri)?;
    decide(&app, &call, id, false, request).await
}

async fn decide(app: &Arc<App>, call: &Call, id: String, approve: bool, request: Request) -> Answer {
    let said = Said::read(app, request).await?;
    let request = wire::DecideApprovalRequest { id, approve, reason: said.reason.unwrap_or_default() };
    let done = app.upstreams.receipts.write(call, request, rpc!(executor.decide_approval)).await?;
    json(&Decided { ok: true, approval: Approval::require(done.approval, &call.base)? })
}

impl Said {
    /// A decision may come without a body.
    async fn read(app: &Arc<App>, request: Request) -> Result<Self, Refusal> {
        if request.body().is_end_stream() {
            return Ok(Said::default());
        }
        JsonBody::from_request(request, app).await.map(|JsonBody(said)| said)
    }
}

impl Approval {
    fn read(approval: wire::Approval, base: &str) -> Self {
        Approval {
            url: address(base, format!("/api/approvals/{}", approval.id)),
            id: approval.id,
            invocation_id: approval.invocation_id,
            state: ApprovalState::read(approval.state),
            key: approval.key,
            actor: approval.actor,
            reason: approval.reason,
            contract_hash: approval.contract_hash,
            created_at: moment(approval.created_at),
            expires_at: moment(approval.expires_at),
            decided_by: some(approval.decided_by),
            decided_at: moment(approval.decided_at),
            decision_reason: some(approval.decision_reason),
        }
    }

    fn require(approval: Option<wire::Approval>, base: &str) -> Result<Self> {
        let empty = || Fault::new(Reason::Internal, "the answer came without its approval");
        approval.map(|approval| Approval::read(approval, base)).ok_or_else(empty)
    }
}
