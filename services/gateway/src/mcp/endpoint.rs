//! The endpoint: one message a POST, one answer, as JSON or as a stream of events. Nothing is kept between requests, so
//! any gateway may answer any of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Bytes;
use axum::extract::{FromRequestParts, Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use callbook_domain::clock::Clock;
use callbook_domain::fault::{Fault, Reason};
use callbook_runtime::telemetry;
use callbook_wire::resolver::v1::ListSignaturesRequest;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde::Deserialize;
use tracing::Instrument as _;

use super::era::{self, Era, Meta};
use super::message::{self, Message, Params, Request, RpcError, code};
use super::reply::{self, Outcome};
use super::stream::{self, Events};
use super::{Surface, completion, discover, four, header as mirrored, listen, prompt, resource, typed};
use crate::answer::Refusal;
use crate::app::App;
use crate::door::Judged;
use crate::request::{Call, Query, json_text};
use crate::upstream::rpc;

/// The credential of the seed's clients.
const SEED_TOKEN: &str = "x-mcp-token";

/// Which rows a listing has, as its address says.
#[derive(Clone, Debug, Default, Deserialize, utoipa::IntoParams)]
pub(super) struct Shelf {
    /// Only rows of this category.
    pub(super) category: Option<String>,
    /// Only rows whose key begins so.
    pub(super) prefix: Option<String>,
}

/// One request, as the methods need to know it.
pub(super) struct Context {
    pub(super) app: Arc<App>,
    pub(super) call: Call,
    pub(super) surface: Surface,
    pub(super) era: Era,
    pub(super) headers: HeaderMap,
    pub(super) meta: Meta,
    pub(super) shelf: Shelf,
    pub(super) events: Events,
    pub(super) clock: Clock,
    /// A service has taken the caller's credential.
    judged: AtomicBool,
}

impl Context {
    /// Asks a service whether the caller may read here at all, for answers that no service is asked for.
    pub(super) async fn identify(&self) -> Result<(), RpcError> {
        let one = ListSignaturesRequest { page_size: 1, ..ListSignaturesRequest::default() };
        self.app.upstreams.resolver.read(&self.call, one, rpc!(resolver.list_signatures)).await?;
        self.took_credential();
        Ok(())
    }

    /// The key that seals what clients carry.
    pub(super) fn state_key(&self) -> &[u8] {
        &self.app.config.state_key
    }

    /// Remembers that a service has taken the credential.
    pub(super) fn took_credential(&self) {
        self.judged.store(true, Ordering::Relaxed);
    }
}

/// Answers a request to a surface.
pub(super) async fn handle(surface: Surface, State(app): State<Arc<App>>, request: HttpRequest) -> Response {
    let (mut parts, body) = request.into_parts();
    if surface == Surface::Seed {
        take_seed_token(&mut parts.headers);
    }
    if !super::guard::is_welcome(&parts.headers, &app.config) {
        let error = RpcError::new(StatusCode::FORBIDDEN, code::INVALID_REQUEST, "this origin or host is not welcome");
        return reply::refused(None, &error, "", "", &app.config);
    }
    let call = match Call::from_request_parts(&mut parts, &app).await {
        Ok(call) => call,
        Err(refusal) => return refusal.into_response(),
    };
    let shelf = match Query::<Shelf>::read(&parts.uri) {
        Ok(shelf) => shelf,
        Err(fault) => return Refusal::from(fault).into_response(),
    };
    match parts.method {
        Method::POST => match json_text(HttpRequest::from_parts(parts.clone(), body), &app).await {
            Ok(body) => post(surface, app, call, parts, shelf, body).await,
            Err(refusal) => refusal.into_response(),
        },
        Method::GET => listen::legacy(surface, app, call, &parts.headers, shelf).await,
        _ => not_allowed(),
    }
}

async fn post(surface: Surface, app: Arc<App>, call: Call, parts: Parts, shelf: Shelf, body: Bytes) -> Response {
    let (base, path) = (call.base.clone(), surface.path());
    let mut request = match message::read(&body) {
        Ok(Message::Request(request)) => request,
        Ok(Message::Notification | Message::Answer) => return StatusCode::ACCEPTED.into_response(),
        Err((id, error)) => return reply::refused(id.as_ref(), &error, &base, path, &app.config),
    };
    let id = request.id.clone();
    let (events, told) = stream::events(&parts.headers);
    let context = opened(&mut request.params, &request.method, &parts.headers).map(|(era, meta)| Context {
        app: Arc::clone(&app),
        call,
        surface,
        era,
        headers: parts.headers,
        meta,
        shelf,
        events,
        clock: Clock::system(),
        judged: AtomicBool::new(false),
    });
    let refuse = move |error: RpcError| reply::refused(Some(&id), &surface.own(error), &base, path, &app.config);
    match context {
        Ok(context) => stream::answer(context, request, told, refuse).await,
        Err(error) => refuse(error),
    }
}

/// The era and `_meta` of a request, once its headers repeat what it says.
fn opened(params: &mut Params, method: &str, headers: &HeaderMap) -> Result<(Era, Meta), RpcError> {
    let meta = Meta::new(params.take("_meta")?);
    let era = era::of(headers, &meta)?;
    if era.is_modern() {
        mirrored::check_method(headers, method)?;
    }
    Ok((era, meta))
}

/// Answers one request, as a part of the trace that its `_meta` names.
pub(super) async fn answer(context: &Context, request: Request) -> Result<Outcome, RpcError> {
    let span = tracing::info_span!("mcp", method = %request.method);
    let within = async {
        telemetry::extract_context(&context.meta.trace());
        result(context, request).await
    };
    within.instrument(span).await
}

async fn result(context: &Context, request: Request) -> Result<Outcome, RpcError> {
    let Request { method, params, id } = request;
    match (method.as_str(), context.era.is_modern()) {
        ("server/discover", true) => discover::discover(context).await,
        ("initialize", false) => discover::initialize(context, params).await,
        ("ping", false) => Ok(Outcome::default()),
        ("resources/subscribe" | "resources/unsubscribe", false) => resource::subscribe(context, params).await,
        ("subscriptions/listen", true) => listen::listen(context, params, &id).await,
        ("tools/list", _) => match context.surface {
            Surface::Four => four::list(context).await,
            Surface::Typed | Surface::Seed => typed::list(context, params).await,
        },
        ("tools/call", _) => match context.surface {
            Surface::Four => four::call(context, params).await,
            Surface::Typed | Surface::Seed => typed::call(context, params).await,
        },
        ("resources/list", _) => resource::list(context, params).await,
        ("resources/templates/list", _) => resource::templates(context, params).await,
        ("resources/read", _) => resource::read(context, params).await,
        ("prompts/list", _) => prompt::list(context, params).await,
        ("prompts/get", _) => prompt::give(context, params).await,
        ("completion/complete", _) => completion::complete(context, params).await,
        (other, modern) => Err(RpcError::method(if modern { StatusCode::NOT_FOUND } else { StatusCode::OK }, other)),
    }
}

/// Marks the answer, so that the limits know a credential that a service has taken.
pub(super) fn marked(mut response: Response, context: &Context) -> Response {
    if context.judged.load(Ordering::Relaxed) {
        response.extensions_mut().insert(Judged);
    }
    response
}

/// The seed's clients show their credential under a name of its own.
fn take_seed_token(headers: &mut HeaderMap) {
    if headers.contains_key(header::AUTHORIZATION) {
        return;
    }
    let token = headers.get(SEED_TOKEN).and_then(|token| token.to_str().ok());
    let bearer = token.and_then(|token| HeaderValue::from_str(&format!("Bearer {token}")).ok());
    if let Some(bearer) = bearer {
        headers.insert(header::AUTHORIZATION, bearer);
    }
}

pub(super) fn not_allowed() -> Response {
    let fault = Fault::new(Reason::InvalidRequest, "this address takes POST").fix("send one JSON-RPC message a POST");
    let mut response = Refusal::with_status(StatusCode::METHOD_NOT_ALLOWED, fault).into_response();
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, POST"));
    response
}
