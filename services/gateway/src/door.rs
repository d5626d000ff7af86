//! What every request passes before and after its handler: measure, bound, limit, compress, log.

mod access;
mod bounds;
mod limits;
mod pretty;
mod share;

use std::any::Any;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Method;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use callbook_domain::fault::{Fault, Reason};
use http::StatusCode;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{NotForContentType, Predicate as _, SizeAbove};

pub(crate) use self::access::{RequestId, describe_metrics};
pub(crate) use self::limits::{Judged, Limiter};
pub(crate) use self::share::Shared;
use crate::answer::Refusal;
use crate::app::App;

/// Below this many bytes compression costs more than it saves.
const WORTH_COMPRESSING: u16 = 1_024;

/// Puts the door around the routes. The last layer is the first that a request meets.
pub(crate) fn around(routes: Router<Arc<App>>, app: &Arc<App>) -> Router {
    // Events must leave when they happen.
    let worth = SizeAbove::new(WORTH_COMPRESSING.into()).and(NotForContentType::SSE);
    let compress = CompressionLayer::new().gzip(true).compress_when(worth);
    routes
        .method_not_allowed_fallback(not_allowed)
        .fallback(nothing_here)
        .layer(CatchPanicLayer::custom(panicked))
        .layer(axum::middleware::from_fn(pretty::render))
        .layer(compress)
        .layer(from_fn_with_state(Arc::clone(app), limits::check))
        .layer(axum::middleware::from_fn(share::lift))
        .layer(from_fn_with_state(Arc::clone(app), bounds::check))
        .layer(axum::middleware::from_fn(access::record))
        .with_state(Arc::clone(app))
}

async fn nothing_here() -> Refusal {
    Fault::new(Reason::NotFound, "nothing at this address").fix("see /openapi.json for what there is").into()
}

async fn not_allowed(method: Method) -> Refusal {
    let fault = Fault::new(Reason::InvalidRequest, format!("{method} is not possible at this address"))
        .fix("the header `allow` names the methods that are");
    Refusal::with_status(StatusCode::METHOD_NOT_ALLOWED, fault)
}

/// The panic's own words were logged by the panic hook and stay inside.
fn panicked(_: Box<dyn Any + Send + 'static>) -> Response<Body> {
    Refusal::from(Fault::new(Reason::Internal, "something went wrong inside")).into_response()
}
