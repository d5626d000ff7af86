//! `?key=`: one row as a contract.

use axum::response::IntoResponse;
use callbook_wire::contract::v1 as wire;
use http::{HeaderMap, StatusCode, header};
use utoipa::ToSchema;

use super::Parameters;
use crate::answer::{Answer, marked, media, only};
use crate::app::App;
use crate::request::{Call, Etag, is_fresh};
use crate::upstream::rpc;

/// Compact contract of a row; further fields are of the row's type.
#[derive(ToSchema)]
#[expect(dead_code, reason = "describes in the API document what the contract service renders")]
pub(super) struct Contract {
    /// Key of the row.
    key: String,
    /// `sha256:` and 64 hex digits over all that a call depends on.
    contract_hash: String,
}

/// Asks the contract service; its bytes go on as they are.
pub(super) async fn contract(app: &App, call: &Call, asked: Parameters, headers: &HeaderMap) -> Answer {
    let request = wire::GetContractRequest { key: asked.key.unwrap_or_default(), format: only(asked.format) };
    let found = app.upstreams.contract.read(call, request, rpc!(contract.get_contract)).await?;
    let etag = Etag::of_contract(&found.contract_hash, &found.text_hash, &found.content);
    let mut response = match is_fresh(headers, &etag) {
        true => StatusCode::NOT_MODIFIED.into_response(),
        false => media(StatusCode::OK, &with_charset(found.media_type), found.content),
    };
    response.headers_mut().insert(header::ETAG, etag.value());
    Ok(marked(response, found.stale))
}

/// Text says that it is UTF-8, because HTTP's readers assume something else.
fn with_charset(media_type: String) -> String {
    match media_type.starts_with("text/") && !media_type.contains("charset") {
        true => format!("{media_type}; charset=utf-8"),
        false => media_type,
    }
}
