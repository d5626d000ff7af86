//! `?ask=`: the rows that fit a question, best first.

use callbook_wire::resolver::v1 as wire;
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::{Match, Parameters};
use crate::answer::{Answer, Raw, json, marked, only, raw, some};
use crate::app::App;
use crate::request::Call;
use crate::upstream::rpc;

/// The rows that fit.
#[derive(Serialize, ToSchema)]
pub(super) struct Answered {
    /// The question as it was understood.
    question: String,
    /// Rows that fit, over all pages.
    count: u64,
    /// The first match with its contract. Null: nothing fits, or this is a later page.
    #[schema(required = true)]
    best: Option<Best>,
    /// The matches of this page, best first.
    matches: Vec<Match>,
    /// What to try instead. Absent: something fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    hint: Option<String>,
    /// Cursor of the next page. Absent: this is the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    next_cursor: Option<String>,
    /// True: the database does not answer now and this is what was last known. Absent: it is current.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stale: bool,
}

/// The best match, with all that is needed to invoke it.
#[derive(Serialize, ToSchema)]
struct Best {
    #[serde(flatten)]
    row: Match,
    /// Its compact contract.
    #[schema(value_type = Object)]
    contract: Raw,
    /// The call, in one line.
    r#do: String,
}

/// Asks the resolver.
pub(super) async fn ask(app: &App, call: &Call, asked: Parameters) -> Answer {
    let request = wire::AskRequest {
        page_size: asked.page_size(),
        question: asked.ask.unwrap_or_default(),
        page_token: asked.cursor.unwrap_or_default(),
        category: asked.category.unwrap_or_default(),
        r#type: only(asked.row_type),
        effect: only(asked.effect),
        risk: only(asked.risk),
        namespace: asked.namespace.unwrap_or_default(),
    };
    let found = app.upstreams.resolver.read(call, request, rpc!(resolver.ask)).await?;
    let stale = found.stale;
    let answered = Answered {
        question: found.question,
        count: found.count,
        best: found.best.and_then(|best| Best::read(best, &call.base)),
        matches: found.matches.into_iter().map(|row| Match::read(row, &call.base)).collect(),
        hint: found.hint,
        next_cursor: some(found.next_page_token),
        stale,
    };
    Ok(marked(json(&answered)?, stale))
}

impl Best {
    fn read(best: wire::BestMatch, base: &str) -> Option<Self> {
        let row = Match::read(best.summary?, base);
        let body = json!({"key": row.key(), "body": row.example});
        Some(Best { r#do: format!("POST /api/dispatch {body}"), contract: raw(&best.contract_json), row })
    }
}
