//! What an invocation did: all of it for those who may see it, the public confirmation for everybody else.

use callbook_domain::fault::{Fault, Kind, Reason};
use callbook_domain::invocation::InvocationId;
use callbook_domain::outcome::Output;
use callbook_wire::receipt::v1 as wire;
use serde::Deserialize;
use serde_json::{Value, json};

use super::call::left_out;
use super::content::{self, Block, Form};
use super::endpoint::Context;
use super::page::part;
use super::reply::Outcome;
use crate::answer::{Status, Word, moment};
use crate::receipt::confirmation;
use crate::upstream::rpc;

/// Characters of the arguments that a receipt repeats.
const INPUT: usize = 1_000;

/// Which invocation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    id: String,
    /// Where its output begins. Absent: what happened is wanted, and not the output.
    #[serde(default)]
    offset: Option<u64>,
}

/// The receipt, or a part of the output.
pub(super) async fn show(context: &Context, asked: Asked) -> Result<Outcome, Fault> {
    let blocks = match asked.offset {
        Some(offset) => {
            let receipt = full(context, &asked.id).await?;
            output(context, receipt, usize::try_from(offset).unwrap_or(usize::MAX))?
        }
        None => vec![Block::text(text(context, &asked.id).await?)],
    };
    Ok(Outcome::of("content", &blocks))
}

/// The record as JSON text; the public confirmation where the caller may not see more.
pub(super) async fn text(context: &Context, id: &str) -> Result<String, Fault> {
    match full(context, id).await {
        Ok(receipt) => Ok(record(&receipt).to_string()),
        Err(fault) if matches!(fault.kind(), Kind::Unauthenticated | Kind::Forbidden) => {
            let confirmed = confirmation(&context.app, &context.call, id).await?;
            Ok(serde_json::to_string(&confirmed).expect("a confirmation is plain data"))
        }
        Err(fault) => Err(fault),
    }
}

/// The whole record, for those who may see it.
pub(super) async fn full(context: &Context, id: &str) -> Result<wire::Receipt, Fault> {
    let request = wire::GetReceiptRequest { invocation_id: InvocationId::require(id)?.to_string() };
    let found = context.app.upstreams.receipts.read(&context.call, request, rpc!(receipt.get_receipt)).await?;
    context.took_credential();
    found.receipt.ok_or_else(|| Fault::new(Reason::Internal, "the receipt came empty"))
}

/// The output from a place on.
pub(super) fn output(context: &Context, receipt: wire::Receipt, offset: usize) -> Result<Vec<Block>, Fault> {
    let id = receipt.invocation_id;
    let Some(bytes) = receipt.output else {
        let why = if receipt.erased { "its bytes were erased" } else { "it gave no output" };
        return Err(Fault::new(Reason::NotFound, why));
    };
    let media_type = receipt.output_media_type;
    let output = Output { bytes: bytes.to_vec(), media_type, truncated: receipt.truncated };
    let (text, is_json) = match content::form(output) {
        Form::Json(text) => (text, true),
        Form::Text(text) => (text, false),
        Form::Blocks(list) => return Ok(list.into_iter().map(Block::Raw).collect()),
        Form::Bytes(bytes, media_type) => {
            return Ok(vec![content::bytes(&bytes, media_type, format!("callbook://output/{id}"))]);
        }
        Form::Nothing => return Ok(vec![Block::text("It gave no output.")]),
    };
    let page = part(&text, is_json, offset).ok_or_else(|| {
        Fault::new(Reason::InvalidRequest, "no part of the output begins there")
            .fix("use the offset that the part before names")
            .with("field", "offset")
    })?;
    let mut blocks = vec![Block::text(page.text)];
    blocks.extend(page.rest.map(|rest| Block::text(left_out(context.surface, &rest, &id))));
    Ok(blocks)
}

/// What happened, without the bytes.
fn record(receipt: &wire::Receipt) -> Value {
    let input = receipt.input.as_deref().map(|bytes| {
        let text = String::from_utf8_lossy(bytes);
        let shown: String = text.chars().take(INPUT).collect();
        if shown.len() < text.len() { format!("{shown}… ({} bytes)", bytes.len()) } else { shown }
    });
    let mut record = json!({
        "invocation_id": receipt.invocation_id,
        "status": Status::read(receipt.status).map(Word::as_str),
        "key": receipt.key,
        "actor": receipt.actor,
        "contract_hash": receipt.contract_hash,
        "started_at": moment(receipt.started_at),
        "ended_at": moment(receipt.ended_at),
        "duration_ms": receipt.duration_ms,
        "input": input,
        "output_bytes": receipt.output.as_ref().map(bytes::Bytes::len),
        "output_media_type": receipt.output_media_type,
        "upstream_status": receipt.upstream_status,
        "error": receipt.error.as_ref().map(|error| json!({"code": error.code, "message": error.message})),
        "cost_usd": receipt.cost_usd,
        "steps": receipt.children,
        "repairs": receipt.repairs,
        "repaired_by": receipt.repaired_by,
        "replay_of": receipt.replay_of,
        "erased": receipt.erased.then_some(true),
    });
    if let Value::Object(fields) = &mut record {
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.is_empty(),
            Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
        };
        fields.retain(|_, value| !is_empty(value));
    }
    record
}
