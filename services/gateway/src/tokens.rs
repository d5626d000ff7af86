//! `/api/tokens`: capability tokens and the keys that sign them. The gate decides; its text of a token goes out once, in
//! the answer that made it.

mod explain;
mod issuer;
mod list;
mod mint;
mod narrow;
mod revoke;
mod scope;

use std::sync::Arc;

use axum::response::Response;
use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason};
use callbook_wire::gate::v1 as wire;
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde::de::{Deserialize, Deserializer};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::answer::{Answer, Raw, json_with, moment, raw};
use crate::app::App;

/// The routes of this part.
pub(crate) fn routes() -> OpenApiRouter<Arc<App>> {
    OpenApiRouter::new()
        .routes(routes!(list::list, mint::mint))
        .routes(routes!(narrow::narrow))
        .routes(routes!(explain::explain))
        .routes(routes!(revoke::revoke))
        .routes(routes!(issuer::keys))
        .routes(routes!(issuer::rotate))
}

/// A token that was made.
#[derive(Serialize, ToSchema)]
#[schema(as = TokenMade)]
struct Made {
    /// Its text, which is never shown again.
    token: String,
    /// Its id.
    jti: String,
    /// The first moment at which it is no longer good.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// What it says.
    #[schema(value_type = Object)]
    claims: Raw,
}

/// 201 with the token. No cache may keep it.
fn made(token: String, issued: Option<wire::Token>) -> Answer {
    let issued = issued.ok_or_else(|| Fault::new(Reason::Internal, "the token came without what it says"))?;
    let mut response: Response = json_with(
        StatusCode::CREATED,
        &Made { token, jti: issued.jti, expires_at: moment(issued.expires_at), claims: raw(&issued.claims_json) },
    )?;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// A field that is left out where it is not meant. Null is refused: who writes it may have lost a limit on the way.
fn given<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

/// The JSON text of a field as it was written.
fn text(value: Raw) -> Bytes {
    Bytes::from(String::from(Box::<str>::from(value)))
}

fn invalid(field: &'static str, sentence: &'static str) -> Fault {
    Fault::new(Reason::InvalidRequest, sentence).with("field", field)
}
