//! The size of an address and of headers.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use callbook_domain::fault::{Fault, Reason};
use http::{HeaderMap, StatusCode, header};

use crate::answer::Refusal;
use crate::app::App;
use crate::config::Config;

/// Refuses an address or headers over their bounds.
pub(super) async fn check(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let most = app.config.limits.url_bytes.map_or(usize::MAX, std::num::NonZero::get);
    let length = request.uri().path_and_query().map_or(0, |path| path.as_str().len());
    if length > most {
        let fault = Fault::new(Reason::RequestTooLarge, format!("the address is longer than {most} bytes"));
        return Refusal::with_status(StatusCode::URI_TOO_LONG, fault).into_response();
    }
    match headers_over(request.headers(), &app.config) {
        Some(fault) => Refusal::with_status(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, fault).into_response(),
        None => next.run(request).await,
    }
}

fn headers_over(headers: &HeaderMap, config: &Config) -> Option<Fault> {
    if headers.len() > config.header_count {
        let sentence = format!("the request has more than {} headers", config.header_count);
        return Some(Fault::new(Reason::RequestTooLarge, sentence));
    }
    let over = headers.iter().find_map(|(name, value)| {
        let most = if name == header::AUTHORIZATION { config.authorization_bytes } else { config.header_bytes };
        (value.len() > most).then_some((name, most))
    });
    over.map(|(name, most)| {
        Fault::new(Reason::RequestTooLarge, format!("the header `{name}` is longer than {most} bytes"))
    })
}
