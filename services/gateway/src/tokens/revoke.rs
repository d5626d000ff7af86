//! `POST /api/tokens/revoke`: taking tokens back.

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::gate::v1 as wire;
use callbook_wire::gate::v1::revoke_token_request::What;
use http::Uri;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::given;
use crate::answer::{Answer, Refused, json};
use crate::app::App;
use crate::request::{Call, JsonBody, nothing};
use crate::upstream::rpc;

/// What is taken back: exactly one of `jti`, `root`, `holder`, `subject` and `kid`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RevokeTokenRequest)]
pub(crate) struct Wanted {
    /// Id of one link: it and all that was derived from it.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    jti: Option<String>,
    /// Id of a root: it and all that was derived from it, by holders or by the gate.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    root: Option<String>,
    /// Thumbprint of a holder's key: every token with a link of that holder.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    holder: Option<String>,
    /// Every token that was issued for this subject.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    subject: Option<String>,
    /// Every token that this key signed.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    kid: Option<String>,
    /// Why, for people.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false, max_length = 256)]
    reason: Option<String>,
}

/// The tokens are taken back.
#[derive(Serialize, ToSchema)]
#[schema(as = TokenRevoked)]
struct Revoked {
    /// Always true.
    ok: bool,
    /// Revocations that this call made: 1, or 0 when the same was taken back before.
    revoked: u32,
}

/// Takes tokens back. After the answer none of their calls passes the commit point anywhere.
#[utoipa::path(
    post, path = "/api/tokens/revoke", tag = "tokens", operation_id = "revoke_token", request_body = Wanted,
    responses((status = 200, description = "They are taken back", body = Revoked), Refused)
)]
pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    call: Call,
    uri: Uri,
    JsonBody(wanted): JsonBody<Wanted>,
) -> Answer {
    nothing(&uri)?;
    let done = app.upstreams.gate.write(&call, wanted.into_wire()?, rpc!(gate.revoke_token)).await?;
    json(&Revoked { ok: true, revoked: done.revoked })
}

impl Wanted {
    fn into_wire(self) -> Result<wire::RevokeTokenRequest> {
        let named = [
            self.jti.map(What::Jti),
            self.root.map(What::Root),
            self.holder.map(What::Holder),
            self.subject.map(What::Subject),
            self.kid.map(What::Kid),
        ];
        let mut named = named.into_iter().flatten();
        match (named.next(), named.next()) {
            (what @ Some(_), None) => Ok(wire::RevokeTokenRequest { what, reason: self.reason.unwrap_or_default() }),
            (..) => Err(Fault::new(Reason::InvalidRequest, "say what is taken back, and one thing at a time")
                .fix("send exactly one of `jti`, `root`, `holder`, `subject` and `kid`")),
        }
    }
}
