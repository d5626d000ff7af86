//! `GET /api/tokens/explain`: what the caller's token can do.

use std::sync::Arc;

use axum::extract::State;
use callbook_wire::gate::v1 as wire;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Raw, Refused, json, moment, raw, some};
use crate::app::App;
use crate::request::{Call, Query};
use crate::upstream::rpc;

/// Which row is asked about.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct About {
    /// Key of a row that the token might call.
    #[param(nullable = false)]
    key: Option<String>,
}

/// What the token can do.
#[derive(Serialize, ToSchema)]
#[schema(as = TokenExplained)]
struct Explained {
    /// What its links say, root first. The last one decides.
    #[schema(value_type = Vec<Object>)]
    claims: Vec<Raw>,
    /// The first moment at which it is no longer good.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Calls that are left. Null: they are not counted.
    #[schema(required = true)]
    uses_left: Option<u64>,
    /// True: each call needs the holder's proof.
    needs_proof: bool,
    /// `allowed`, `held` where a person decides first, or the reason why a call of the asked key would be refused. Null: no
    /// key was asked about.
    #[schema(required = true)]
    verdict: Option<String>,
}

/// Tells a holder what its token can do, what is left of it, and why a call of a key would be refused.
#[utoipa::path(
    get, path = "/api/tokens/explain", tag = "tokens", operation_id = "explain_token", params(About),
    responses((status = 200, description = "What the token can do", body = Explained), Refused)
)]
pub(crate) async fn explain(State(app): State<Arc<App>>, call: Call, Query(about): Query<About>) -> Answer {
    let request = wire::ExplainTokenRequest { key: about.key.unwrap_or_default() };
    let found = app.upstreams.gate.read(&call, request, rpc!(gate.explain_token)).await?;
    json(&Explained {
        claims: found.claims_json.iter().map(|claims| raw(claims)).collect(),
        expires_at: moment(found.expires_at),
        uses_left: found.uses_left,
        needs_proof: found.needs_proof,
        verdict: some(found.verdict),
    })
}
