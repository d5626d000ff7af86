//! What happened: the public confirmation, the full receipt, the page for people, listings and sums.

mod confirmation;
mod full;
mod list;
mod page;
mod stats;

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::{Fault, Reason};
use callbook_domain::invocation::InvocationId;
use callbook_wire::receipt::v1 as wire;
use http::{HeaderMap, HeaderValue, Uri, header};
use serde_json::Value;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub(crate) use self::confirmation::Confirmation;
pub(crate) use self::full::Receipt;
use crate::answer::{Answer, Problem, Refusal, Refused, json};
use crate::app::App;
use crate::request::{At, Call, nothing};
use crate::upstream::rpc;

/// The routes of this part.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(person))
        .routes(routes!(list::list))
        .routes(routes!(stats::stats))
        .routes(routes!(one))
}

/// `?confirm=`: proof for everybody that a call happened.
pub(crate) async fn confirm(app: &App, call: &Call, id: &str) -> Answer {
    match confirmation(app, call, id).await {
        Ok(confirmation) => json(&confirmation),
        Err(fault) => Err(unconfirmed(fault)),
    }
}

/// `?receipt=`: the whole record, for whoever may see it.
pub(crate) async fn full(app: &App, call: &Call, id: &str) -> Answer {
    let request = wire::GetReceiptRequest { invocation_id: InvocationId::require(id)?.to_string() };
    let found = app.upstreams.receipts.read(call, request, rpc!(receipt.get_receipt)).await?;
    let receipt = found.receipt.ok_or_else(|| Fault::new(Reason::Internal, "the receipt came empty"))?;
    json(&Receipt::read(receipt))
}

/// Gives the whole record of an invocation.
#[utoipa::path(
    get, path = "/api/invocations/{id}", tag = "receipts", operation_id = "get_receipt",
    params(("id" = String, Path, description = "`inv_` and 26 characters")),
    responses((status = 200, description = "The record", body = Receipt), Refused)
)]
pub(crate) async fn one(State(app): State<Arc<App>>, call: Call, At(id): At, uri: Uri) -> Answer {
    nothing(&uri)?;
    full(&app, &call, &id).await
}

/// Shows the public receipt of an invocation to people, or as JSON to who accepts only that.
#[utoipa::path(
    get, path = "/receipt/{id}", tag = "receipts", operation_id = "show_receipt",
    params(("id" = String, Path, description = "`inv_` and 26 characters")),
    responses(
        (status = 200, description = "The receipt", content((String = "text/html"), (Confirmation = "application/json"))),
        Refused,
        (status = 404, description = "No such receipt", content((String = "text/html"), (Problem = "application/problem+json")))
    )
)]
pub(crate) async fn person(
    State(app): State<Arc<App>>,
    call: Call,
    At(id): At,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    nothing(&uri)?;
    if prefers_json(&headers) {
        return confirm(&app, &call, &id).await;
    }
    let mut page = match confirmation(&app, &call, &id).await {
        Ok(confirmation) => page::receipt(&confirmation, &call.base),
        Err(fault) if fault.reason() == Reason::UnknownInvocation => page::unknown(),
        Err(fault) => return Err(fault.into()),
    };
    page.headers_mut().append(header::VARY, HeaderValue::from_static("accept"));
    Ok(page)
}

/// What everybody may know of an invocation.
pub(crate) async fn confirmation(app: &App, call: &Call, id: &str) -> Result<Confirmation, Fault> {
    let request = wire::ConfirmRequest { invocation_id: InvocationId::require(id)?.to_string() };
    app.upstreams.receipts.read(call, request, rpc!(receipt.confirm)).await.map(Confirmation::read)
}

/// An unknown id is not confirmed, in the word that a reader of confirmations looks for.
fn unconfirmed(fault: Fault) -> Refusal {
    match fault.reason() {
        Reason::UnknownInvocation => Refusal::with_field(fault, "confirmed", Value::Bool(false)),
        _ => fault.into(),
    }
}

/// Whether JSON is accepted and HTML is not: browsers name HTML, programs that want JSON say so.
fn prefers_json(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let accepted: Vec<String> = accepted
        .flat_map(|value| value.split(','))
        .map(|media| media.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
        .collect();
    let names = |media: &str| accepted.iter().any(|accepted| accepted == media);
    (names("application/json") || names("application/*")) && !names("text/html")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_gets_the_page_and_a_program_what_it_asks_for() {
        let json = |accept: &str| prefers_json(&[(header::ACCEPT, accept.parse().unwrap())].into_iter().collect());
        assert!(json("application/json") && json("application/json;q=0.9, */*;q=0.1"));
        assert!(!json("text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8") && !json("*/*") && !json(""));
    }
}
