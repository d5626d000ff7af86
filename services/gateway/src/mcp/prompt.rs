//! Texts for a person to choose: prompt blocks, and rows whose schema says that they make such a text.

use bytes::Bytes;
use callbook_domain::fault::Fault;
use callbook_domain::outcome::Output;
use callbook_wire::executor::v1 as executor;
use callbook_wire::executor::v1::arguments::Form as Arguments;
use callbook_wire::resolver::v1::{ListSignaturesRequest, Signature, SignatureKind};
use http::StatusCode;
use serde_json::{Map, Value, json};

use super::consent::{Next, Round};
use super::content::{self, Block, Form};
use super::endpoint::Context;
use super::message::{Params, RpcError, code};
use super::reply::{Hints, Outcome};
use super::{call, consent, header, tool, typed};
use crate::upstream::rpc;

/// Prompts that are looked at together where one is looked for by a shortened name.
const PAGE: u32 = 1_000;

/// `prompts/list`.
pub(super) async fn list(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let page_token = params.take("cursor")?.unwrap_or_default();
    let found = rows(context, ListSignaturesRequest { page_token, ..ListSignaturesRequest::default() }).await?;
    let is_modern = context.era.is_modern();
    let prompts: Vec<Value> = found.signatures.iter().map(|row| described(row, is_modern)).collect();
    let next = Some(found.next_page_token).filter(|next| !next.is_empty());
    Ok(Outcome::of("prompts", &prompts).optional("nextCursor", next.as_ref()).hints(Hints::BOOK))
}

fn described(row: &Signature, is_modern: bool) -> Value {
    json!({"name": tool::name(&row.key), "description": typed::words(row), "arguments": arguments(row, is_modern)})
}

fn arguments(row: &Signature, is_modern: bool) -> Vec<Value> {
    if row.text.is_some() {
        return Vec::new();
    }
    let schema = typed::offered(row, is_modern).schema;
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let argument = |(name, told): (String, Value)| {
        let mut argument = json!({"name": name, "required": required.contains(&json!(name))});
        if let Some(words) = told.get("description") {
            argument["description"] = words.clone();
        }
        argument
    };
    properties.into_iter().map(argument).collect()
}

/// `prompts/get`.
pub(super) async fn give(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let name: String = params.require("name")?;
    if context.era.is_modern() {
        header::check_name(&context.headers, &name)?;
    }
    let sent: Map<String, Value> = params.take("arguments")?.unwrap_or_default();
    let row = find(context, &name).await?;
    let row = row.ok_or_else(|| RpcError::params(format!("`{name}` is no prompt of this server")))?;
    let blocks = match &row.text {
        Some(text) => vec![Block::text(text.as_str())],
        None => {
            let text = Value::Object(sent.clone()).to_string();
            let round = Round::take(context, &mut params, ("prompts/get", &row.key, &row.contract_hash), &text)?;
            match round.next(context, &row, sent)? {
                Next::Run { arguments, told, .. } => made(context, &row, arguments, told.once()).await?,
                Next::Ask(outcome) => return Ok(outcome),
                Next::Refuse(why) => return Err(RpcError::params(why)),
            }
        }
    };
    let messages: Vec<Value> = blocks.iter().map(|block| json!({"role": "user", "content": block})).collect();
    Ok(Outcome::of("messages", &messages).field("description", &row.what))
}

/// The blocks that a row makes of the arguments.
async fn made(
    context: &Context,
    row: &Signature,
    sent: Map<String, Value>,
    idempotency_key: Option<String>,
) -> Result<Vec<Block>, RpcError> {
    let text = typed::arguments(row).given_back(sent).to_string();
    let form = Arguments::ArgsJson(Bytes::from(text));
    let request = executor::InvokeRequest {
        key: row.key.clone(),
        arguments: Some(executor::Arguments { form: Some(form) }),
        idempotency_key,
        ..executor::InvokeRequest::default()
    };
    let answer = call::run(context, request).await?;
    if let Some(held) = &answer.held {
        return Err(consent::refused(context, held));
    }
    if !answer.ok {
        return Err(RpcError::new(StatusCode::OK, code::INTERNAL, answer.result));
    }
    let output = Output { bytes: answer.output.to_vec(), media_type: answer.media_type, truncated: answer.truncated };
    Ok(match content::form(output) {
        Form::Blocks(list) => list.into_iter().map(Block::Raw).collect(),
        Form::Json(text) | Form::Text(text) => vec![Block::text(text)],
        Form::Bytes(bytes, media_type) => {
            vec![content::bytes(&bytes, media_type, format!("callbook://prompt/{}", row.key))]
        }
        Form::Nothing => Vec::new(),
    })
}

/// The prompt that is listed under a name.
pub(super) async fn find(context: &Context, name: &str) -> Result<Option<Signature>, Fault> {
    let by_key = ListSignaturesRequest { key: name.to_owned(), ..ListSignaturesRequest::default() };
    if let Some(row) = rows(context, by_key).await?.signatures.into_iter().next() {
        return Ok(Some(row));
    }
    let Some(beginning) = tool::beginning(name) else { return Ok(None) };
    let by_prefix =
        ListSignaturesRequest { prefix: beginning.to_owned(), page_size: PAGE, ..ListSignaturesRequest::default() };
    Ok(rows(context, by_prefix).await?.signatures.into_iter().find(|row| tool::name(&row.key) == name))
}

async fn rows(
    context: &Context,
    request: ListSignaturesRequest,
) -> Result<callbook_wire::resolver::v1::ListSignaturesResponse, Fault> {
    let request = ListSignaturesRequest { kind: SignatureKind::Prompt.into(), ..request };
    let found = context.app.upstreams.resolver.read(&context.call, request, rpc!(resolver.list_signatures)).await?;
    context.took_credential();
    Ok(found)
}
