//! `POST /api/tokens/narrow`: a narrower token, for holders without a crypto library.

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::Result;
use callbook_wire::gate::v1 as wire;
use http::Uri;
use serde::Deserialize;
use utoipa::ToSchema;

use super::scope::Scope;
use super::{Made, given, made};
use crate::answer::{Answer, Effect, Raw, Refused, Risk};
use crate::app::App;
use crate::request::{Call, JsonBody, nothing};
use crate::upstream::rpc;

/// A narrower token. What is left out is as in the token that the caller shows.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NarrowTokenRequest)]
pub(crate) struct Wanted {
    /// Keys that it covers.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    keys: Option<Vec<String>>,
    /// Prefixes whose keys it covers.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    prefixes: Option<Vec<String>>,
    /// True: every key is pinned to its contract hash of now.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pin: Option<bool>,
    /// Life in seconds. Absent: 900, or what is left.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 60)]
    ttl: Option<u32>,
    /// Most calls.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 1)]
    uses: Option<u64>,
    /// Highest risk of a row.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    risk: Option<Risk>,
    /// Gravest effect of a row.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    effect: Option<Effect>,
    /// Most bytes of a call's arguments.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    max_bytes: Option<u64>,
    /// The only arguments that it may be used with: an object or list of `args`, or a string for `body`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Object, nullable = false)]
    body: Option<Raw>,
    /// True: every call waits for a person.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    owner_gate: Option<bool>,
    /// True: it may travel in an address, as `?share=`.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    url: Option<bool>,
    /// What it is for, for people.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, max_length = 256)]
    purpose: Option<String>,
}

/// Mints a bearer token that is narrower than the one that the caller bears, shares its uses and ends with it. Tokens with
/// a holder's key are narrowed by that holder.
#[utoipa::path(
    post, path = "/api/tokens/narrow", tag = "tokens", operation_id = "narrow_token", request_body = Wanted,
    responses((status = 201, description = "It was minted", body = Made), Refused)
)]
pub(crate) async fn narrow(
    State(app): State<Arc<App>>,
    call: Call,
    uri: Uri,
    JsonBody(wanted): JsonBody<Wanted>,
) -> Answer {
    nothing(&uri)?;
    let done = app.upstreams.gate.write(&call, wanted.into_wire()?, rpc!(gate.narrow_token)).await?;
    made(done.token, done.issued)
}

impl Wanted {
    fn into_wire(self) -> Result<wire::NarrowTokenRequest> {
        let scope = Scope {
            keys: self.keys,
            prefixes: self.prefixes,
            pin: self.pin,
            risk: self.risk,
            effect: self.effect,
            max_bytes: self.max_bytes,
            uses: self.uses,
            body: self.body,
            owner_gate: self.owner_gate,
        };
        Ok(wire::NarrowTokenRequest {
            scope: Some(scope.into_wire()?),
            ttl_seconds: self.ttl,
            url: self.url.unwrap_or_default(),
            purpose: self.purpose.unwrap_or_default(),
        })
    }
}
