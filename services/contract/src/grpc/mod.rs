//! The two services over gRPC: decode, one call, encode.

mod contract;
mod decode;
mod directory;
mod encode;

use std::sync::Arc;

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Result};
use callbook_runtime::grpc::to_status;
use callbook_wire::contract::v1::contract_service_server::ContractServiceServer;
use callbook_wire::directory::v1::directory_service_server::DirectoryServiceServer;
use tonic::{Request, Response, Status};

use crate::App;

/// The largest request of a single row, in bytes: its columns are bounded by the book, this bounds what is read.
const MAX_REQUEST: usize = 4 * 1024 * 1024;

/// Both services.
#[derive(Clone)]
pub struct Grpc(Arc<App>);

/// The services that write the book and render its rows.
pub fn services(app: Arc<App>) -> (DirectoryServiceServer<Grpc>, ContractServiceServer<Grpc>) {
    (
        DirectoryServiceServer::new(Grpc(app.clone())).max_decoding_message_size(MAX_REQUEST),
        ContractServiceServer::new(Grpc(app)),
    )
}

impl Grpc {
    async fn caller<T>(&self, request: &Request<T>) -> Result<Caller> {
        self.0.callers.identify(request.metadata().as_ref()).await
    }

    /// The caller of a write: without a credential nothing of the request is looked at.
    async fn writer<T>(&self, request: &Request<T>) -> Result<Caller> {
        let caller = self.caller(request).await?;
        caller.require_credential()?;
        Ok(caller)
    }
}

fn answer<T>(result: Result<T, Fault>) -> Result<Response<T>, Status> {
    result.map(Response::new).map_err(|fault| to_status(&fault))
}
