//! `GET /api/tokens`: what was issued.

use std::sync::Arc;

use axum::extract::State;
use callbook_wire::gate::v1 as wire;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Raw, Refused, json, moment, raw, some};
use crate::app::App;
use crate::request::{Call, Limit, Query, Switch};
use crate::upstream::rpc;

/// Which tokens.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Filter {
    /// True: also those that ended or were taken back.
    #[param(nullable = false, inline)]
    include_ended: Option<Switch>,
    /// Only those for this subject.
    #[param(nullable = false)]
    subject: Option<String>,
    /// Entries a page, from 1; 100 where nothing is said, 500 at most.
    #[param(nullable = false, inline)]
    limit: Option<Limit>,
    /// `next_cursor` of the page before.
    #[param(nullable = false)]
    cursor: Option<String>,
}

/// A page of tokens.
#[derive(Serialize, ToSchema)]
#[schema(as = TokensPage)]
struct Page {
    /// The tokens, newest first.
    tokens: Vec<Token>,
    /// Cursor of the next page. Null: this is the last.
    #[schema(required = true)]
    next_cursor: Option<String>,
}

/// An issued token, without its text.
#[derive(Serialize, ToSchema)]
struct Token {
    /// Its id.
    jti: String,
    /// For whom it is.
    subject: String,
    /// Thumbprint of its holder's key. Null: a bearer token.
    holder: Option<String>,
    /// What it is for. Null: nothing was said.
    purpose: Option<String>,
    /// Who minted it.
    minted_by: String,
    /// The token that it was narrowed from. Null: none.
    source: Option<String>,
    #[schema(format = DateTime)]
    issued_at: Option<String>,
    /// The first moment at which it is no longer good.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// What took it back, such as `jti:…`. Null: nothing did.
    revoked: Option<String>,
    /// Calls that were counted under it. Null: its calls are not counted.
    used: Option<u64>,
    /// What it says.
    #[schema(value_type = Object)]
    claims: Raw,
}

/// Lists issued tokens, newest first, without their text. The owner sees all, a principal what it minted.
#[utoipa::path(
    get, path = "/api/tokens", tag = "tokens", operation_id = "list_tokens", params(Filter),
    responses((status = 200, description = "A page", body = Page), Refused)
)]
pub(crate) async fn list(State(app): State<Arc<App>>, call: Call, Query(filter): Query<Filter>) -> Answer {
    let request = wire::ListTokensRequest {
        include_ended: filter.include_ended.unwrap_or_default().0,
        subject: filter.subject.unwrap_or_default(),
        page_size: Limit::page_size(filter.limit),
        page_token: filter.cursor.unwrap_or_default(),
    };
    let found = app.upstreams.gate.read(&call, request, rpc!(gate.list_tokens)).await?;
    json(&Page {
        tokens: found.tokens.into_iter().map(Token::read).collect(),
        next_cursor: some(found.next_page_token),
    })
}

impl Token {
    fn read(token: wire::Token) -> Self {
        Token {
            claims: raw(&token.claims_json),
            jti: token.jti,
            subject: token.subject,
            holder: some(token.holder),
            purpose: some(token.purpose),
            minted_by: token.minted_by,
            source: some(token.source),
            issued_at: moment(token.issued_at),
            expires_at: moment(token.expires_at),
            revoked: some(token.revoked),
            used: token.used,
        }
    }
}
