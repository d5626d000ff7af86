//! `/api/principals`: the callers that the owner let in.

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::gate::v1 as wire;
use http::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Refused, json, json_with, moment, some};
use crate::app::App;
use crate::request::{At, Call, JsonBody, Limit, Query, Switch, nothing};
use crate::upstream::rpc;

/// One thing that a principal may do, over a part of the book.
#[derive(Clone, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct Grant {
    /// What it allows.
    may: May,
    /// Prefix of the keys that it covers; empty covers all.
    #[serde(default)]
    #[schema(max_length = 128)]
    prefix: String,
}

/// What a grant allows.
#[derive(Clone, Copy, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum May {
    /// Run rows.
    Invoke,
    /// Write rows and recommendations.
    Edit,
    /// Mint capability tokens within its own grants.
    Mint,
    /// Decide held calls, and lower a row's risk or effect.
    Approve,
    /// Read the receipts of others.
    ReadReceipts,
}

/// A principal, without its key.
#[derive(Serialize, ToSchema)]
struct Principal {
    name: String,
    grants: Vec<Grant>,
    #[schema(format = DateTime)]
    created_at: Option<String>,
    /// When it was ended. Null: it is alive.
    #[schema(format = DateTime)]
    revoked_at: Option<String>,
}

/// A principal to add.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = CreatePrincipalRequest)]
pub(crate) struct Wanted {
    /// Its name; one that exists, or existed, is refused.
    #[schema(pattern = "^[A-Za-z0-9_.-]{1,64}$")]
    name: String,
    /// What it may do. Absent or empty: nothing but what anonymous callers may.
    #[serde(default)]
    grants: Vec<Grant>,
}

/// The principal was added.
#[derive(Serialize, ToSchema)]
#[schema(as = PrincipalCreated)]
struct Created {
    /// Always true.
    ok: bool,
    #[serde(flatten)]
    principal: Principal,
    /// Its API key; it is never shown again.
    api_key: String,
}

/// Which principals.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// True: ended ones too.
    #[param(nullable = false, inline)]
    include_revoked: Option<Switch>,
    /// Entries a page, from 1; 100 where nothing is said, 500 at most.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// A page of principals.
#[derive(Serialize, ToSchema)]
#[schema(as = PrincipalsPage)]
struct Page {
    /// The principals, by name.
    principals: Vec<Principal>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// The principal is ended.
#[derive(Serialize, ToSchema)]
#[schema(as = PrincipalRevoked)]
struct Revoked {
    /// Always true.
    ok: bool,
    #[serde(flatten)]
    principal: Principal,
    /// Principals ended by this call: 1, or 0 when it was ended before.
    revoked: u32,
}

/// Adds a principal and gives its API key, once.
#[utoipa::path(
    post, path = "/api/principals", tag = "operator", operation_id = "create_principal", request_body = Wanted,
    responses((status = 201, description = "It was added", body = Created), Refused)
)]
pub(crate) async fn create(State(app): State<Arc<App>>, call: Call, JsonBody(wanted): JsonBody<Wanted>) -> Answer {
    let grants = wanted.grants.into_iter().map(Grant::into_wire).collect();
    let request = wire::CreatePrincipalRequest { name: wanted.name, grants };
    let done = app.upstreams.gate.write(&call, request, rpc!(gate.create_principal)).await?;
    let principal = Principal::require(done.principal)?;
    json_with(StatusCode::CREATED, &Created { ok: true, principal, api_key: done.api_key })
}

/// Lists principals by name, without their keys.
#[utoipa::path(
    get, path = "/api/principals", tag = "operator", operation_id = "list_principals", params(Filter),
    responses((status = 200, description = "A page", body = Page), Refused)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, call: Call, Query(filter): Query<Filter>) -> Answer {
    let request = wire::ListPrincipalsRequest {
        include_revoked: filter.include_revoked.unwrap_or_default().0,
        page_size: Limit::page_size(filter.limit),
        page_token: filter.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.gate.read(&call, request, rpc!(gate.list_principals)).await?;
    json(&Page {
        principals: found.principals.into_iter().map(Principal::read).collect(),
        next_cursor: some(found.next_page_token),
    })
}

/// Ends a principal. After the answer none of its calls passes the commit point anywhere.
#[utoipa::path(
    delete, path = "/api/principals/{name}", tag = "operator", operation_id = "delete_principal",
    params(("name" = String, Path, description = "Name of the principal")),
    responses((status = 200, description = "It is ended", body = Revoked), Refused)
)]
pub(crate) async fn delete(State(app): State<Arc<App>>, call: Call, At(name): At, uri: Uri) -> Answer {
    nothing(&uri)?;
    end(&app, &call, name).await
}

/// The same as the DELETE, for clients that only POST.
#[utoipa::path(
    post, path = "/api/principals/{name}/revoke", tag = "operator", operation_id = "revoke_principal",
    params(("name" = String, Path, description = "Name of the principal")),
    responses((status = 200, description = "It is ended", body = Revoked), Refused)
)]
pub(crate) async fn revoke(State(app): State<Arc<App>>, call: Call, At(name): At, uri: Uri) -> Answer {
    nothing(&uri)?;
    end(&app, &call, name).await
}

async fn end(app: &App, call: &Call, name: String) -> Answer {
    let request = wire::RevokePrincipalRequest { name };
    let done = app.upstreams.gate.write(call, request, rpc!(gate.revoke_principal)).await?;
    json(&Revoked { ok: true, principal: Principal::require(done.principal)?, revoked: done.revoked })
}

impl Principal {
    fn read(principal: wire::Principal) -> Self {
        Principal {
            name: principal.name,
            grants: principal.grants.into_iter().filter_map(Grant::read).collect(),
            created_at: moment(principal.created_at),
            revoked_at: moment(principal.revoked_at),
        }
    }

    fn require(principal: Option<wire::Principal>) -> Result<Self> {
        let empty = || Fault::new(Reason::Internal, "the write came without what it did");
        principal.map(Principal::read).ok_or_else(empty)
    }
}

impl Grant {
    /// A grant of a kind that this gateway is too old to know is left out.
    fn read(grant: wire::Grant) -> Option<Self> {
        let may = match wire::May::try_from(grant.may).ok()? {
            wire::May::Unspecified => return None,
            wire::May::Invoke => May::Invoke,
            wire::May::Edit => May::Edit,
            wire::May::Mint => May::Mint,
            wire::May::Approve => May::Approve,
            wire::May::ReadReceipts => May::ReadReceipts,
        };
        Some(Grant { may, prefix: grant.prefix })
    }

    fn into_wire(self) -> wire::Grant {
        let may = match self.may {
            May::Invoke => wire::May::Invoke,
            May::Edit => wire::May::Edit,
            May::Mint => wire::May::Mint,
            May::Approve => wire::May::Approve,
            May::ReadReceipts => wire::May::ReadReceipts,
        };
        wire::Grant { may: may.into(), prefix: self.prefix }
    }
}
