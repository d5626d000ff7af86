//! The stream of changes.

use std::pin::Pin;

use callbook_runtime::grpc::to_status;
use callbook_wire::resolver::v1::WatchChangesResponse;
use futures::{Stream, stream};
use http::HeaderMap;
use tonic::Status;

use super::Grpc;
use crate::watch::Watch;

/// What a watching client is sent.
pub(super) type Changes = Pin<Box<dyn Stream<Item = Result<WatchChangesResponse, Status>> + Send>>;

/// One message a revision. It is made when the client is ready for it, and ends with the client, with the first
/// failure, or once the credential is no longer good: who calls is asked again before each message.
pub(super) fn changes(grpc: Grpc, headers: HeaderMap, watch: Watch) -> Changes {
    Box::pin(stream::try_unfold((grpc, headers, watch), |(grpc, headers, mut watch)| async move {
        while watch.moved().await {
            let caller = grpc.reader(&headers).await?;
            if let Some(change) = watch.next(&caller).await.map_err(|fault| to_status(&fault))? {
                let message = WatchChangesResponse {
                    revision: change.revision,
                    changed_keys: change.changed,
                    removed_keys: change.removed,
                };
                return Ok(Some((message, (grpc, headers, watch))));
            }
        }
        Ok(None)
    }))
}
