//! What carries a call to a service: a connection, or a function call where the service is in this process.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Request, Response, Uri};
use tonic::Status;
use tonic::body::Body;
use tonic::transport::Channel;
use tower::Service;
use tower::util::BoxCloneSyncService;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The services of this process. The same that answer its port answer here, so that nothing is decided otherwise.
#[derive(Clone, Debug)]
pub struct Near {
    /// Where other processes reach them.
    pub at: Uri,
    /// What answers there.
    pub services: BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>,
}

/// How long a call may take; it goes along with the request, as `grpc-timeout` does for services elsewhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Within(pub(crate) Duration);

/// A way to the services of one process.
#[derive(Clone)]
pub(crate) enum Wire {
    /// Over a connection.
    Far(Channel),
    /// By a function call.
    Near(Near),
}

impl Service<Request<Body>> for Wire {
    type Response = Response<Body>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<Body>, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Wire::Far(channel) => channel.poll_ready(context).map_err(Into::into),
            Wire::Near(near) => near.services.poll_ready(context).map_err(|never| match never {}),
        }
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        match self {
            Wire::Far(channel) => {
                let answer = channel.call(request);
                Box::pin(async { Ok(answer.await?) })
            }
            Wire::Near(near) => {
                let within = request.extensions().get().map_or(Duration::MAX, |Within(time)| *time);
                let answer = AssertUnwindSafe(near.services.call(request)).catch_unwind();
                Box::pin(async move {
                    match tokio::time::timeout(within, answer).await {
                        Ok(Ok(Ok(answer))) => Ok(answer),
                        Ok(Err(_)) => Err(Status::internal("the service stopped").into()),
                        Err(_) => Err(Status::deadline_exceeded("the deadline passed").into()),
                    }
                })
            }
        }
    }
}
