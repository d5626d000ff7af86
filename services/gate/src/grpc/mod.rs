//! The gate over gRPC: decode, one call, encode.

mod token;

use std::sync::Arc;

use callbook_domain::caller::{Caller, Grant, May};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_runtime::grpc::to_status;
use callbook_wire::gate::v1 as wire;
use callbook_wire::gate::v1::gate_service_server::{GateService, GateServiceServer};
use prost_types::Timestamp;
use time::OffsetDateTime;
use tonic::{Request, Response, Status};

use crate::principal::Kept;
use crate::{App, create, list, revoke};

type Answer<T> = std::result::Result<Response<T>, Status>;

/// The gate's service.
#[derive(Clone)]
pub struct Grpc(Arc<App>);

/// The service that keeps the principals.
pub fn services(app: Arc<App>) -> GateServiceServer<Grpc> {
    GateServiceServer::new(Grpc(app))
}

#[tonic::async_trait]
impl GateService for Grpc {
    async fn create_principal(
        &self,
        request: Request<wire::CreatePrincipalRequest>,
    ) -> Answer<wire::CreatePrincipalResponse> {
        answer(self.create(request).await)
    }

    async fn list_principals(
        &self,
        request: Request<wire::ListPrincipalsRequest>,
    ) -> Answer<wire::ListPrincipalsResponse> {
        answer(self.list(request).await)
    }

    async fn revoke_principal(
        &self,
        request: Request<wire::RevokePrincipalRequest>,
    ) -> Answer<wire::RevokePrincipalResponse> {
        answer(self.revoke(request).await)
    }

    async fn mint_token(&self, request: Request<wire::MintTokenRequest>) -> Answer<wire::MintTokenResponse> {
        answer(self.mint(request).await)
    }

    async fn narrow_token(&self, request: Request<wire::NarrowTokenRequest>) -> Answer<wire::NarrowTokenResponse> {
        answer(self.narrow(request).await)
    }

    async fn explain_token(&self, request: Request<wire::ExplainTokenRequest>) -> Answer<wire::ExplainTokenResponse> {
        answer(self.explain(request).await)
    }

    async fn revoke_token(&self, request: Request<wire::RevokeTokenRequest>) -> Answer<wire::RevokeTokenResponse> {
        answer(self.take_back(request).await)
    }

    async fn list_tokens(&self, request: Request<wire::ListTokensRequest>) -> Answer<wire::ListTokensResponse> {
        answer(self.tokens(request).await)
    }

    async fn get_keys(&self, _: Request<wire::GetKeysRequest>) -> Answer<wire::GetKeysResponse> {
        answer(self.keys().await)
    }

    async fn rotate_key(&self, request: Request<wire::RotateKeyRequest>) -> Answer<wire::RotateKeyResponse> {
        answer(self.rotate(request).await)
    }
}

impl Grpc {
    async fn create(&self, request: Request<wire::CreatePrincipalRequest>) -> Result<wire::CreatePrincipalResponse> {
        let caller = self.owner(&request).await?;
        let asked = request.into_inner();
        let grants = asked.grants.into_iter().map(grant).collect::<Result<_>>()?;
        let (kept, api_key) = create::create(&self.0, &caller, asked.name, grants).await?;
        Ok(wire::CreatePrincipalResponse { principal: Some(principal(kept)), api_key })
    }

    async fn list(&self, request: Request<wire::ListPrincipalsRequest>) -> Result<wire::ListPrincipalsResponse> {
        let caller = self.owner(&request).await?;
        let asked = request.into_inner();
        let size = page_size(asked.page_size);
        let (found, next) = list::list(&self.0, &caller, asked.include_revoked, size, &asked.page_token).await?;
        Ok(wire::ListPrincipalsResponse {
            principals: found.into_iter().map(principal).collect(),
            next_page_token: next,
        })
    }

    async fn revoke(&self, request: Request<wire::RevokePrincipalRequest>) -> Result<wire::RevokePrincipalResponse> {
        let caller = self.owner(&request).await?;
        let (kept, now) = revoke::revoke(&self.0, &caller, &request.into_inner().name).await?;
        Ok(wire::RevokePrincipalResponse { principal: Some(principal(kept)), revoked: u32::from(now) })
    }

    /// The owner: for anybody else nothing of the request is looked at.
    async fn owner<T>(&self, request: &Request<T>) -> Result<Caller> {
        let caller = self.caller(request).await?;
        caller.require_owner()?;
        Ok(caller)
    }

    async fn caller<T>(&self, request: &Request<T>) -> Result<Caller> {
        self.0.callers.identify(request.metadata().as_ref()).await
    }
}

fn answer<T>(result: Result<T>) -> Answer<T> {
    result.map(Response::new).map_err(|fault| to_status(&fault))
}

fn page_size(asked: u32) -> usize {
    match asked {
        0 => 100,
        size => usize::try_from(size).unwrap_or(500).min(500),
    }
}

fn grant(grant: wire::Grant) -> Result<Grant> {
    let unknown = || {
        Fault::new(Reason::InvalidRequest, "`may` is one of invoke, edit, mint, approve, read_receipts")
            .with("field", "grants")
    };
    let may = match wire::May::try_from(grant.may).map_err(|_| unknown())? {
        wire::May::Unspecified => return Err(unknown()),
        wire::May::Invoke => May::Invoke,
        wire::May::Edit => May::Edit,
        wire::May::Mint => May::Mint,
        wire::May::Approve => May::Approve,
        wire::May::ReadReceipts => May::ReadReceipts,
    };
    Ok(Grant { may, prefix: grant.prefix })
}

fn principal(kept: Kept) -> wire::Principal {
    let grants = kept.grants.into_iter().map(|grant| {
        let may = match grant.may {
            May::Invoke => wire::May::Invoke,
            May::Edit => wire::May::Edit,
            May::Mint => wire::May::Mint,
            May::Approve => wire::May::Approve,
            May::ReadReceipts => wire::May::ReadReceipts,
        };
        wire::Grant { may: may.into(), prefix: grant.prefix }
    });
    wire::Principal {
        name: kept.name,
        grants: grants.collect(),
        created_at: Some(at(kept.created_at)),
        revoked_at: kept.revoked_at.map(at),
    }
}

fn at(time: OffsetDateTime) -> Timestamp {
    Timestamp { seconds: time.unix_timestamp(), nanos: i32::try_from(time.nanosecond()).unwrap_or(0) }
}
