//! The resolver over gRPC: decode, one call, encode.

mod decode;
mod encode;
mod signature;
mod stream;

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_ranking::Filters;
use callbook_runtime::grpc::to_status;
use callbook_wire::resolver::v1::resolver_service_server::{ResolverService, ResolverServiceServer};
use callbook_wire::resolver::v1::{
    self as wire, AskRequest, AskResponse, DescribeRequest, DescribeResponse, GetMapRequest, GetMapResponse,
    GetStampRequest, GetStampResponse, ListCapabilitiesRequest, ListCapabilitiesResponse, ListCategoriesRequest,
    ListCategoriesResponse, ListRegistryRequest, ListRegistryResponse, ListSignaturesRequest, ListSignaturesResponse,
    SearchRowsRequest, SearchRowsResponse, WatchChangesRequest,
};
use http::HeaderMap;
use tonic::{Request, Response, Status};

use crate::ask::{self, Asked};
use crate::kept::catalogue;
use crate::watch::Watch;
use crate::{App, categories, describe, list, map, registry, search};

/// The resolver's service.
#[derive(Clone)]
pub struct Grpc(Arc<App>);

/// The service of a resolver.
pub fn services(app: Arc<App>) -> ResolverServiceServer<Grpc> {
    ResolverServiceServer::new(Grpc(app))
}

impl Grpc {
    /// Who calls, if it may read the book.
    async fn reader(&self, headers: &HeaderMap) -> Result<Caller, Status> {
        let caller = self.0.callers.identify(headers).await.map_err(|fault| to_status(&fault))?;
        self.0.callers.require_catalogue(&caller).map_err(|fault| to_status(&fault))?;
        Ok(caller)
    }

    fn is_stale(&self) -> bool {
        self.0.directory.is_stale()
    }
}

#[tonic::async_trait]
impl ResolverService for Grpc {
    type WatchChangesStream = stream::Changes;

    async fn ask(&self, request: Request<AskRequest>) -> Result<Response<AskResponse>, Status> {
        let caller = self.reader(request.metadata().as_ref()).await?;
        let asked = request.into_inner();
        let filters = Filters {
            row_type: decode::row_type(asked.r#type)?,
            effect: decode::effect(asked.effect)?,
            risk: decode::risk(asked.risk)?,
            category: decode::some(asked.category),
            namespace: decode::some(asked.namespace),
        };
        let asked =
            Asked { question: asked.question, filters, page_size: asked.page_size, page_token: asked.page_token };
        let answered = ask::ask(&self.0, &caller, asked).map_err(|fault| to_status(&fault))?;
        Ok(Response::new(AskResponse { stale: self.is_stale(), ..encode::answered(answered) }))
    }

    async fn list_capabilities(
        &self,
        request: Request<ListCapabilitiesRequest>,
    ) -> Result<Response<ListCapabilitiesResponse>, Status> {
        let caller = self.reader(request.metadata().as_ref()).await?;
        let asked = request.into_inner();
        let wanted = list::Wanted {
            row_type: decode::row_type(asked.r#type)?,
            namespace: asked.namespace,
            category: asked.category,
            page_size: asked.page_size,
            page_token: asked.page_token,
        };
        let listed = list::list(&self.0, &caller, wanted).await.map_err(|fault| to_status(&fault))?;
        Ok(Response::new(ListCapabilitiesResponse {
            results: listed.rows.iter().map(|entry| encode::summary(entry)).collect(),
            total: encode::count(listed.total),
            stamp: listed.stamp,
            revision: listed.revision,
            next_page_token: listed.next,
            stale: self.is_stale(),
        }))
    }

    async fn describe(&self, request: Request<DescribeRequest>) -> Result<Response<DescribeResponse>, Status> {
        let caller = self.reader(request.metadata().as_ref()).await?;
        let asked = request.into_inner();
        let answer =
            describe::describe(&self.0, &caller, asked.keys, asked.namespace).await.map_err(|f| to_status(&f))?;
        Ok(Response::new(DescribeResponse { answer: Some(encode::description(answer)), stale: self.is_stale() }))
    }

    async fn get_stamp(&self, request: Request<GetStampRequest>) -> Result<Response<GetStampResponse>, Status> {
        let caller = self.reader(request.metadata().as_ref()).await?;
        let catalogue = catalogue(&self.0, &caller).await.map_err(|fault| to_status(&fault))?;
        Ok(Response::new(GetStampResponse {
            stamp: catalogue.stamp.clone(),
            revision: catalogue.revision,
            count: catalogue.counts.planner,
            stale: self.is_stale(),
        }))
    }

    async fn get_map(&self, request: Request<GetMapRequest>) -> Result<Response<GetMapResponse>, Status> {
        let caller = self.reader(request.metadata().as_ref()).await?;
        let asked = request.into_inner();
        let map = map::map(&self.0, &caller, asked.shelf, asked.page_size, &asked.page_token)
            .await
            .map_err(|fault| to_status(&fault))?;
        Ok(Response::new(GetMapResponse { view: Some(encode::map(map)), stale: self.is_stale() }))
    }

    async fn list_registry(
        &self,
        request: Request<ListRegistryRequest>,
    ) -> Result<Response<ListRegistryResponse>, Status> {
        let caller = self.reader(request.metadata().as_ref()).await?;
        let asked = request.into_inner();
        let registered = registry::registry(&self.0, &caller, &asked.category, asked.page_size, &asked.page_token)
            .await
            .map_err(|fault| to_status(&fault))?;
        Ok(Response::new(ListRegistryResponse {
            count: encode::count(registered.count),
            stamp: registered.stamp,
            objects: registered.rows.iter().map(|entry| encode::object(entry)).collect(),
            next_page_token: registered.next,
            stale: self.is_stale(),
        }))
    }

    async fn list_signatures(
        &self,
        request: Request<ListSignaturesRequest>,
    ) -> Result<Response<ListSignaturesResponse>, Status> {
        let caller = self.reader(request.metadata().as_ref()).await?;
        let wanted = signature::wanted(request.into_inner())?;
        let page = crate::signature::signatures(&self.0, &caller, wanted).await.map_err(|fault| to_status(&fault))?;
        Ok(Response::new(ListSignaturesResponse { stale: self.is_stale(), ..signature::page(page) }))
    }

    async fn search_rows(&self, request: Request<SearchRowsRequest>) -> Result<Response<SearchRowsResponse>, Status> {
        let caller = self.reader(request.metadata().as_ref()).await?;
        let asked = request.into_inner();
        let wanted = search::Wanted {
            query: asked.query,
            category: asked.category,
            page_size: asked.page_size,
            page_token: asked.page_token,
        };
        let found = search::search(&self.0, &caller, wanted).await.map_err(|fault| to_status(&fault))?;
        Ok(Response::new(SearchRowsResponse {
            count: encode::count(found.count),
            rows: found.rows.iter().map(|entry| encode::found(entry)).collect(),
            next_page_token: found.next,
            stale: self.is_stale(),
        }))
    }

    async fn list_categories(
        &self,
        request: Request<ListCategoriesRequest>,
    ) -> Result<Response<ListCategoriesResponse>, Status> {
        let caller = self.reader(request.metadata().as_ref()).await?;
        let asked = request.into_inner();
        let (page, next_page_token) = categories::categories(&self.0, &caller, asked.page_size, &asked.page_token)
            .await
            .map_err(|fault| to_status(&fault))?;
        let categories = page.into_iter().map(|(category, count)| wire::Shelf { category, count }).collect();
        Ok(Response::new(ListCategoriesResponse { categories, next_page_token, stale: self.is_stale() }))
    }

    async fn watch_changes(&self, request: Request<WatchChangesRequest>) -> Result<Response<stream::Changes>, Status> {
        let (metadata, _, asked) = request.into_parts();
        let headers = metadata.into_headers();
        self.reader(&headers).await?;
        let watch = Watch::begin(self.0.clone(), asked.since_revision).map_err(|fault| to_status(&fault))?;
        Ok(Response::new(stream::changes(self.clone(), headers, watch)))
    }
}
