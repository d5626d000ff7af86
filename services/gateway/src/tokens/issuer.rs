//! The keys that sign tokens: their public parts for everybody, and the owner's turn of them.

use std::sync::Arc;

use axum::extract::State;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::gate::v1 as wire;
use http::Uri;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::answer::{Answer, Refused, json};
use crate::app::App;
use crate::request::{Call, nothing};
use crate::upstream::rpc;

/// The public keys, as RFC 7517 writes them.
#[derive(Serialize, ToSchema)]
#[schema(as = KeySet)]
struct Set {
    keys: Vec<Jwk>,
}

/// A public key that signs tokens.
#[derive(Serialize, ToSchema)]
struct Jwk {
    /// Always `OKP`.
    kty: String,
    /// Always `Ed25519`.
    crv: String,
    /// The key in base64url.
    x: String,
    /// Its RFC 7638 thumbprint.
    kid: String,
    /// Always `EdDSA`.
    alg: &'static str,
    /// Always `sig`.
    r#use: &'static str,
}

/// The members that the gate sends.
#[derive(Deserialize)]
struct Public {
    kty: String,
    crv: String,
    x: String,
}

/// The keys after a rotation.
#[derive(Serialize, ToSchema)]
#[schema(as = IssuerKeyRotated)]
struct Rotated {
    /// Always true.
    ok: bool,
    /// Keys whose signatures are believed, or soon will be.
    keys: Vec<Standing>,
}

/// How far a key came.
#[derive(Serialize, ToSchema)]
#[schema(as = IssuerKey)]
struct Standing {
    /// Its RFC 7638 thumbprint.
    kid: String,
    /// How far it came.
    state: Option<Stage>,
}

/// How far a signing key came.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = IssuerKeyState)]
enum Stage {
    /// Published, and signs nothing yet.
    Next,
    /// Signs.
    Active,
    /// Signs no more; its tokens are good until they end.
    Retiring,
}

/// The public keys that sign tokens, for whoever wants to check one.
#[utoipa::path(
    get, path = "/.well-known/jwks.json", tag = "tokens", operation_id = "get_keys",
    responses((status = 200, description = "The keys", body = Set), Refused)
)]
pub(crate) async fn keys(State(app): State<Arc<App>>, call: Call, uri: Uri) -> Answer {
    nothing(&uri)?;
    let found = app.upstreams.gate.read(&call, wire::GetKeysRequest {}, rpc!(gate.get_keys)).await?;
    json(&Set { keys: found.keys.into_iter().map(Jwk::read).collect::<Result<_>>()? })
}

/// Brings the signing keys one step on: the next key signs from now on, and the one that signed is believed until its
/// last token has ended. The owner's.
#[utoipa::path(
    post, path = "/api/tokens/keys/rotate", tag = "tokens", operation_id = "rotate_key",
    responses((status = 200, description = "The keys after the step", body = Rotated), Refused)
)]
pub(crate) async fn rotate(State(app): State<Arc<App>>, call: Call, uri: Uri) -> Answer {
    nothing(&uri)?;
    let done = app.upstreams.gate.write(&call, wire::RotateKeyRequest {}, rpc!(gate.rotate_key)).await?;
    json(&Rotated { ok: true, keys: done.keys.into_iter().map(Standing::read).collect() })
}

impl Jwk {
    fn read(key: wire::IssuerKey) -> Result<Self> {
        let public: Public = serde_json::from_slice(&key.jwk_json).map_err(|error| {
            tracing::error!(%error, kid = key.kid, "the gate's key is no JWK");
            Fault::new(Reason::Internal, "something went wrong inside")
        })?;
        Ok(Jwk { kty: public.kty, crv: public.crv, x: public.x, kid: key.kid, alg: "EdDSA", r#use: "sig" })
    }
}

impl Standing {
    /// A state that this gateway is too old to know has no word.
    fn read(key: wire::IssuerKey) -> Self {
        let state = match wire::KeyState::try_from(key.state) {
            Ok(wire::KeyState::Next) => Some(Stage::Next),
            Ok(wire::KeyState::Active) => Some(Stage::Active),
            Ok(wire::KeyState::Retiring) => Some(Stage::Retiring),
            Ok(wire::KeyState::Unspecified) | Err(_) => None,
        };
        Standing { kid: key.kid, state }
    }
}
