//! The service that renders rows and keeps the standing answers.

use callbook_domain::fault::Result;
use callbook_domain::key::Key;
use callbook_store::snapshot::Recommended;
use callbook_wire::contract::v1 as wire;
use callbook_wire::contract::v1::contract_service_server::ContractService;
use tonic::{Request, Response, Status};

use super::decode::{some, unknown};
use super::{Grpc, answer, encode};
use crate::page::size;
use crate::recommend::{self, Standing};
use crate::render::{self, Format};

type Answer<T> = std::result::Result<Response<T>, Status>;

#[tonic::async_trait]
impl ContractService for Grpc {
    async fn get_contract(&self, request: Request<wire::GetContractRequest>) -> Answer<wire::GetContractResponse> {
        answer(self.contract(request).await)
    }

    async fn recommend(&self, request: Request<wire::RecommendRequest>) -> Answer<wire::RecommendResponse> {
        answer(self.stand(request).await)
    }

    async fn list_recommendations(
        &self,
        request: Request<wire::ListRecommendationsRequest>,
    ) -> Answer<wire::ListRecommendationsResponse> {
        answer(self.standing(request).await)
    }

    async fn delete_recommendation(
        &self,
        request: Request<wire::DeleteRecommendationRequest>,
    ) -> Answer<wire::DeleteRecommendationResponse> {
        answer(self.take_back(request).await)
    }
}

impl Grpc {
    async fn contract(&self, request: Request<wire::GetContractRequest>) -> Result<wire::GetContractResponse> {
        let caller = self.caller(&request).await?;
        let asked = request.into_inner();
        let format = match wire::ContractFormat::try_from(asked.format).map_err(|_| unknown("format"))? {
            wire::ContractFormat::Unspecified | wire::ContractFormat::Json => Format::Json,
            wire::ContractFormat::Markdown => Format::Markdown,
            wire::ContractFormat::Typescript => Format::TypeScript,
        };
        let contract = render::render(&self.0, &caller, &asked.key, format).await?;
        Ok(wire::GetContractResponse {
            key: contract.key,
            content: contract.content.into(),
            media_type: contract.media_type.to_owned(),
            contract_hash: contract.contract_hash,
            text_hash: contract.text_hash,
            revision: contract.revision,
            version: contract.version,
            stale: contract.stale,
        })
    }

    async fn stand(&self, request: Request<wire::RecommendRequest>) -> Result<wire::RecommendResponse> {
        let caller = self.writer(&request).await?;
        let asked = request.into_inner();
        let key = Key::parse(&asked.key)?;
        let standing = Standing { pattern: &asked.pattern, key: &key, demote: asked.demote, reason: &asked.reason };
        let stored = recommend::recommend(&self.0, &caller, standing).await?;
        Ok(wire::RecommendResponse { recommendation: Some(recommendation(stored)) })
    }

    async fn standing(
        &self,
        request: Request<wire::ListRecommendationsRequest>,
    ) -> Result<wire::ListRecommendationsResponse> {
        let caller = self.caller(&request).await?;
        let asked = request.into_inner();
        let (key, size) = (some(asked.key), size(asked.page_size, 100, 500));
        let (found, next) = recommend::list(&self.0, &caller, key.as_deref(), size, &asked.page_token).await?;
        Ok(wire::ListRecommendationsResponse {
            recommendations: found.into_iter().map(recommendation).collect(),
            next_page_token: next,
        })
    }

    async fn take_back(
        &self,
        request: Request<wire::DeleteRecommendationRequest>,
    ) -> Result<wire::DeleteRecommendationResponse> {
        let caller = self.writer(&request).await?;
        let asked = request.into_inner();
        let key = Key::parse(&asked.key)?;
        let deleted = callbook_store::write::unrecommend(&self.0.writer(&caller), &asked.pattern, &key).await?;
        Ok(wire::DeleteRecommendationResponse { deleted: u32::from(deleted.deleted) })
    }
}

fn recommendation(stored: Recommended) -> wire::Recommendation {
    wire::Recommendation {
        pattern: stored.pattern,
        key: stored.key.to_string(),
        demote: stored.demote,
        reason: stored.reason,
        actor: stored.actor,
        updated_at: Some(encode::at(stored.created_at)),
    }
}
