//! Tokens and keys.

use std::collections::BTreeSet;

use callbook_domain::arguments::Sent;
use callbook_domain::fault::{Fault, Result};
use callbook_domain::row::{Effect, Risk};
use callbook_domain::token::{Digest, Prefix, PublicKey, argument_hash};
use callbook_wire::gate::v1 as wire;
use prost_types::Timestamp;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tonic::Request;
use uuid::Uuid;

use super::{Grpc, at, page_size};
use crate::scope::{Scope, refused};
use crate::store::key::{Published, State};
use crate::target::Target;
use crate::token::Issued;
use crate::{explain, mint, narrow, rotate, take_back, tokens};

impl Grpc {
    pub(super) async fn mint(&self, request: Request<wire::MintTokenRequest>) -> Result<wire::MintTokenResponse> {
        let caller = self.caller(&request).await?;
        caller.require_credential()?;
        let asked = request.into_inner();
        let max_depth = asked.max_depth.map(|depth| u8::try_from(depth).map_err(|_| deep()));
        let asked = mint::Asked {
            scope: scope(asked.scope)?,
            ttl: asked.ttl_seconds.map(i64::from),
            holder: if asked.holder_jwk.is_empty() { None } else { Some(holder(&asked.holder_jwk)?) },
            url: asked.url,
            subject: asked.subject,
            purpose: asked.purpose,
            max_depth: max_depth.transpose()?,
            audience: asked.audience,
        };
        let (token, issued) = mint::mint(&self.0, &caller, asked).await?;
        Ok(wire::MintTokenResponse { token, issued: Some(encode(issued)) })
    }

    pub(super) async fn narrow(&self, request: Request<wire::NarrowTokenRequest>) -> Result<wire::NarrowTokenResponse> {
        let caller = self.caller(&request).await?;
        caller.require_credential()?;
        let asked = request.into_inner();
        let asked = narrow::Asked {
            scope: scope(asked.scope)?,
            ttl: asked.ttl_seconds.map(i64::from),
            url: asked.url,
            purpose: asked.purpose,
        };
        let (token, issued) = narrow::narrow(&self.0, &caller, asked).await?;
        Ok(wire::NarrowTokenResponse { token, issued: Some(encode(issued)) })
    }

    pub(super) async fn explain(
        &self,
        request: Request<wire::ExplainTokenRequest>,
    ) -> Result<wire::ExplainTokenResponse> {
        let caller = self.caller(&request).await?;
        let explained = explain::explain(&self.0, &caller, &request.into_inner().key).await?;
        let links = explained.holder.chain.links();
        let ends = explained.holder.expires_at();
        Ok(wire::ExplainTokenResponse {
            claims_json: links.iter().map(|link| link.claims.canonical().into()).collect(),
            expires_at: Some(Timestamp { seconds: ends, nanos: 0 }),
            uses_left: explained.uses_left.and_then(|left| u64::try_from(left).ok()),
            needs_proof: explained.holder.chain.leaf().claims.cnf.is_some(),
            verdict: explained.verdict,
        })
    }

    pub(super) async fn take_back(
        &self,
        request: Request<wire::RevokeTokenRequest>,
    ) -> Result<wire::RevokeTokenResponse> {
        let caller = self.caller(&request).await?;
        caller.require_credential()?;
        let asked = request.into_inner();
        let what = target(asked.what)?;
        let is_new = take_back::revoke(&self.0, &caller, &what, &asked.reason).await?;
        Ok(wire::RevokeTokenResponse { revoked: u32::from(is_new) })
    }

    pub(super) async fn tokens(&self, request: Request<wire::ListTokensRequest>) -> Result<wire::ListTokensResponse> {
        let caller = self.caller(&request).await?;
        let asked = request.into_inner();
        let asked = tokens::Asked {
            include_ended: asked.include_ended,
            subject: asked.subject,
            size: page_size(asked.page_size),
            page_token: asked.page_token,
        };
        let (found, next_page_token) = tokens::list(&self.0, &caller, &asked).await?;
        Ok(wire::ListTokensResponse { tokens: found.into_iter().map(encode).collect(), next_page_token })
    }

    /// Anybody's: whoever verifies a token must be able to ask.
    pub(super) async fn keys(&self) -> Result<wire::GetKeysResponse> {
        let keys = rotate::published(&self.0).await?;
        Ok(wire::GetKeysResponse { keys: keys.into_iter().map(issuer_key).collect() })
    }

    pub(super) async fn rotate(&self, request: Request<wire::RotateKeyRequest>) -> Result<wire::RotateKeyResponse> {
        let caller = self.owner(&request).await?;
        let keys = rotate::rotate(&self.0, &caller).await?;
        Ok(wire::RotateKeyResponse { keys: keys.into_iter().map(issuer_key).collect() })
    }
}

fn scope(asked: Option<wire::TokenScope>) -> Result<Scope> {
    let asked = asked.unwrap_or_default();
    let prefix = |text: &String| {
        Prefix::parse(text).ok_or_else(|| refused("prefixes", "a prefix is the beginning of a key, at most 128 bytes"))
    };
    let risk = |text: String| Risk::parse(&text).ok_or_else(|| refused("risk", "`risk` is low or high"));
    let effect =
        |text: String| Effect::parse(&text).ok_or_else(|| refused("effect", "`effect` is read, write or destructive"));
    Ok(Scope {
        keys: asked.keys,
        prefixes: asked.prefixes.iter().map(prefix).collect::<Result<BTreeSet<_>>>()?,
        pin: asked.pin,
        risk: asked.risk.map(risk).transpose()?,
        effect: asked.effect.map(effect).transpose()?,
        max_bytes: asked.max_bytes,
        uses: asked.uses,
        body: asked.body_json.map(|body| fixed(&body)).transpose()?,
        owner_gate: asked.owner_gate,
    })
}

/// The hash of the only arguments: a string is `body`, anything else `args`.
fn fixed(json: &[u8]) -> Result<Digest> {
    let wrong = || refused("body", "`body` is an object or a list of arguments, or a string");
    let raw: Box<RawValue> = serde_json::from_slice(json).map_err(|_| wrong())?;
    let sent = match serde_json::from_str::<Value>(raw.get()).map_err(|_| wrong())? {
        Value::String(body) => Sent::new(Some(body), None)?,
        Value::Object(_) | Value::Array(_) | Value::Null => Sent::new(None, Some(raw))?,
        Value::Bool(_) | Value::Number(_) => return Err(wrong()),
    };
    argument_hash(&sent)
}

/// A holder's public key. What libraries write beside it is passed over, and a private part is not.
fn holder(jwk: &[u8]) -> Result<PublicKey> {
    let wrong = |message: &str| refused("holder", message);
    let members: Map<String, Value> =
        serde_json::from_slice(jwk).map_err(|_| wrong("a holder is a JWK, a JSON object"))?;
    if members.contains_key("d") {
        return Err(wrong("this is a private key; make another one, and send its public part alone"));
    }
    let public = members.into_iter().filter(|(name, _)| matches!(name.as_str(), "crv" | "kty" | "x")).collect();
    PublicKey::from_jwk(&public).ok_or_else(|| wrong("a holder is the public JWK of a good Ed25519 key"))
}

fn target(asked: Option<wire::revoke_token_request::What>) -> Result<Target> {
    use wire::revoke_token_request::What;
    let id =
        |field, text: &str| Uuid::try_parse(text).map_err(|_| refused(field, "a token is named by its `jti`, a UUID"));
    match asked {
        None => Err(refused("jti", "say what is taken back: jti, root, holder, subject or kid")),
        Some(What::Jti(jti)) => id("jti", &jti).map(Target::Link),
        Some(What::Root(jti)) => id("root", &jti).map(Target::Root),
        Some(What::Holder(holder)) => Ok(Target::Holder(holder)),
        Some(What::Subject(subject)) => Ok(Target::Subject(subject)),
        Some(What::Kid(kid)) => Ok(Target::Kid(kid)),
    }
}

fn encode(issued: Issued) -> wire::Token {
    wire::Token {
        jti: issued.jti.to_string(),
        claims_json: issued.claims.into(),
        subject: issued.sub,
        holder: issued.holder.unwrap_or_default(),
        purpose: issued.purpose,
        minted_by: issued.minted_by,
        source: issued.source.map(|source| source.to_string()).unwrap_or_default(),
        issued_at: Some(at(issued.issued_at)),
        expires_at: Some(at(issued.expires_at)),
        revoked: issued.revoked.unwrap_or_default(),
        used: issued.used.and_then(|used| u64::try_from(used).ok()),
    }
}

fn issuer_key(key: Published) -> wire::IssuerKey {
    let mut jwk = key.public.jwk();
    for (name, value) in [("kid", key.kid.as_str()), ("alg", "EdDSA"), ("use", "sig")] {
        jwk[name] = value.into();
    }
    let state = match key.state {
        State::Next => wire::KeyState::Next,
        State::Active => wire::KeyState::Active,
        State::Retiring | State::Gone => wire::KeyState::Retiring,
    };
    wire::IssuerKey { kid: key.kid, jwk_json: jwk.to_string().into(), state: state.into() }
}

fn deep() -> Fault {
    refused("max_depth", "`max_depth` is 0 to 3")
}
