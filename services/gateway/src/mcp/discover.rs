//! What this server is, for clients of both eras.

use serde_json::{Value, json};

use super::Surface;
use super::endpoint::Context;
use super::era::{agreed, served};
use super::message::{Params, RpcError};
use super::reply::{Hints, Outcome, server_info};

/// What a model is told about the four tools before it uses one.
const FOUR: &str = "A book of everything that can be called. Ask in plain words, read the contract where the answer has \
                    none, invoke by key, keep the invocation id: it proves what ran.";
/// What it is told about a shelf of typed tools.
const TYPED: &str = "One tool for each row of the book. What a tool runs is on record: `_meta` of its result has the \
                     invocation id.";

/// `server/discover`.
pub(super) async fn discover(context: &Context) -> Result<Outcome, RpcError> {
    context.identify().await?;
    Ok(Outcome::of("supportedVersions", &served())
        .field("capabilities", &capabilities(context))
        .field("instructions", &instructions(context))
        .hints(Hints::FIXED))
}

/// `initialize`: agrees on a revision and keeps nothing.
pub(super) async fn initialize(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let asked: String = params.require("protocolVersion")?;
    context.identify().await?;
    Ok(Outcome::of("protocolVersion", &agreed(&asked))
        .field("capabilities", &capabilities(context))
        .field("serverInfo", &server_info())
        .field("instructions", &instructions(context)))
}

fn capabilities(context: &Context) -> Value {
    let has_own_list = context.surface != Surface::Four;
    json!({
        "tools": if has_own_list { json!({"listChanged": true}) } else { json!({}) },
        "resources": {"subscribe": true},
        "prompts": {},
        "completions": {},
    })
}

fn instructions(context: &Context) -> &'static str {
    match context.surface {
        Surface::Four => FOUR,
        Surface::Typed | Surface::Seed => TYPED,
    }
}
