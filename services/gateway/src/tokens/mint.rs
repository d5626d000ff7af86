//! `POST /api/tokens`: a new token.

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::Result;
use callbook_wire::gate::v1 as wire;
use http::Uri;
use serde::Deserialize;
use utoipa::ToSchema;

use super::scope::Scope;
use super::{Made, given, invalid, made, text};
use crate::answer::{Answer, Effect, Raw, Refused, Risk};
use crate::app::App;
use crate::request::{Call, JsonBody, nothing};
use crate::upstream::rpc;

/// A token to mint. What is left out takes its narrowest value; only `keys` or `prefixes` must be there.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = MintTokenRequest)]
pub(crate) struct Wanted {
    /// Keys that it covers; each must be that of a row.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    keys: Option<Vec<String>>,
    /// Prefixes whose keys it covers; the empty one is that of all.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    prefixes: Option<Vec<String>>,
    /// True: every key is pinned to its contract hash of now.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pin: Option<bool>,
    /// Life in seconds. Absent: 900.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 60, maximum = 604_800)]
    ttl: Option<u32>,
    /// Most calls under it and all that is derived from it. Absent: no limit.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, minimum = 1)]
    uses: Option<u64>,
    /// Highest risk of a row. Absent: low.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    risk: Option<Risk>,
    /// Gravest effect of a row. Absent: read.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    effect: Option<Effect>,
    /// Most bytes of a call's arguments. Absent: as many as a request may have.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    max_bytes: Option<u64>,
    /// The only arguments that it may be used with: an object or list of `args`, or a string for `body`. Absent: any.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Object, nullable = false)]
    body: Option<Raw>,
    /// True: every call waits for a person.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    owner_gate: Option<bool>,
    /// The holder's public Ed25519 key as a JWK of `crv`, `kty` and `x`. Absent: whoever bears the token may use it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Object, nullable = false)]
    holder: Option<Raw>,
    /// True: it may travel in an address, as `?share=`.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    url: Option<bool>,
    /// What it is for, for people.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, max_length = 256)]
    purpose: Option<String>,
    /// For whom it is. Absent: the caller's name.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, min_length = 1, max_length = 256)]
    subject: Option<String>,
    /// Audience names of the executors that may take it. Absent: those of this deployment.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, min_items = 1)]
    audience: Option<Vec<String>>,
    /// How often it may be derived from. Absent: 3 with a holder, 0 without one.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, maximum = 3)]
    max_depth: Option<u32>,
}

/// Mints a token and gives its text, once. The owner's, or a principal's with `mint` over all that it covers.
#[utoipa::path(
    post, path = "/api/tokens", tag = "tokens", operation_id = "mint_token", request_body = Wanted,
    responses((status = 201, description = "It was minted", body = Made), Refused)
)]
pub(crate) async fn mint(
    State(app): State<Arc<App>>,
    call: Call,
    uri: Uri,
    JsonBody(wanted): JsonBody<Wanted>,
) -> Answer {
    nothing(&uri)?;
    let done = app.upstreams.gate.write(&call, wanted.into_wire()?, rpc!(gate.mint_token)).await?;
    made(done.token, done.issued)
}

impl Wanted {
    fn into_wire(self) -> Result<wire::MintTokenRequest> {
        if self.holder.as_ref().is_some_and(|holder| !holder.get().starts_with('{')) {
            return Err(invalid("holder", "`holder` is the public JWK of an Ed25519 key"));
        }
        if self.subject.as_ref().is_some_and(String::is_empty) {
            return Err(invalid("subject", "`subject` is empty"));
        }
        if self.audience.as_ref().is_some_and(Vec::is_empty) {
            return Err(invalid("audience", "`audience` is empty"));
        }
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
        Ok(wire::MintTokenRequest {
            scope: Some(scope.into_wire()?),
            ttl_seconds: self.ttl,
            holder_jwk: self.holder.map(text).unwrap_or_default(),
            url: self.url.unwrap_or_default(),
            subject: self.subject.unwrap_or_default(),
            purpose: self.purpose.unwrap_or_default(),
            max_depth: self.max_depth,
            audience: self.audience.unwrap_or_default(),
        })
    }
}
