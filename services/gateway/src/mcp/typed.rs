//! One typed tool a row: the rows that planners see, without test-shaped keys, in the canonical order.

use bytes::Bytes;
use callbook_domain::fault::Fault;
use callbook_wire::executor::v1 as executor;
use callbook_wire::executor::v1::arguments::Form;
use callbook_wire::resolver::v1::{ListSignaturesRequest, Signature};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::ask::without_questions;
use super::consent::{Next, Round};
use super::endpoint::Context;
use super::header;
use super::message::{Params, RpcError};
use super::refusal::{failed, refused};
use super::reply::{Hints, Outcome};
use super::schema::{self, Arguments};
use super::{Surface, call, tool};
use crate::answer::{Effect, RowType, Word};
use crate::upstream::rpc;

/// Tools a page.
const PAGE: u32 = 100;
/// Tools on the one page of the seed's clients.
const SEED_PAGE: u32 = 1_000;
/// Characters of a description; hosts cut or refuse longer ones.
const DESCRIPTION: usize = 2_000;

/// `tools/list`.
pub(super) async fn list(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let is_seed = context.surface == Surface::Seed;
    let request = ListSignaturesRequest {
        category: context.shelf.category.clone().unwrap_or_default(),
        prefix: context.shelf.prefix.clone().unwrap_or_default(),
        page_size: if is_seed { SEED_PAGE } else { PAGE },
        page_token: params.take("cursor")?.unwrap_or_default(),
        ..ListSignaturesRequest::default()
    };
    let found = context.app.upstreams.resolver.read(&context.call, request, rpc!(resolver.list_signatures)).await?;
    context.took_credential();
    let tools: Vec<Value> = found.signatures.iter().map(|row| described(row, context.era.is_modern())).collect();
    let next = Some(found.next_page_token).filter(|next| !next.is_empty() && !is_seed);
    Ok(Outcome::of("tools", &tools).optional("nextCursor", next.as_ref()).hints(Hints::BOOK))
}

/// A row as a tool.
fn described(row: &Signature, is_modern: bool) -> Value {
    let mut told = json!({
        "name": tool::name(&row.key),
        "title": title(row),
        "description": description(row),
        "inputSchema": offered(row, is_modern).schema,
        "annotations": annotations(row),
    });
    if let Some(output) = output_schema(row, is_modern) {
        told["outputSchema"] = output;
    }
    told
}

/// The arguments of a row as hosts see them.
pub(super) fn arguments(row: &Signature) -> Arguments {
    Arguments::of(serde_json::from_slice(&row.input_schema).unwrap_or(Value::Bool(true)))
}

fn output_schema(row: &Signature, is_modern: bool) -> Option<Value> {
    let schema = serde_json::from_slice(row.output_schema.as_deref()?).ok()?;
    schema::output(schema, is_modern)
}

/// The first sentence of what it does, for people.
fn title(row: &Signature) -> String {
    let sentence = row.what.split_once(". ").map_or(row.what.as_str(), |(first, _)| first);
    match sentence.trim_end_matches('.') {
        "" => row.key.clone(),
        sentence if sentence.chars().count() <= 80 => sentence.to_owned(),
        _ => row.key.clone(),
    }
}

/// WHAT, WHEN_TO_USE and where it belongs. Words of third parties are marked as theirs.
fn description(row: &Signature) -> String {
    let row_type = RowType::read(row.r#type).map_or("", Word::as_str);
    let shelf = match row.category.as_str() {
        "" => format!("[{row_type}]"),
        category => format!("[{row_type} · {category}]"),
    };
    let mut words = row.what.clone();
    if !row.when_to_use.is_empty() {
        words.push_str("\nWhen to use: ");
        words.push_str(&row.when_to_use);
    }
    let mark = if row.untrusted_text { "Described by a third party: " } else { "" };
    let room = DESCRIPTION - shelf.chars().count() - mark.chars().count() - 1;
    if words.chars().count() > room {
        words = words.chars().take(room - 1).chain(['…']).collect();
    }
    format!("{mark}{words}\n{shelf}")
}

fn annotations(row: &Signature) -> Value {
    let effect = Effect::read(row.effect);
    let mut told = json!({
        "readOnlyHint": effect == Some(Effect::Read),
        "openWorldHint": RowType::read(row.r#type) != Some(RowType::Fn),
    });
    if effect != Some(Effect::Read) {
        told["destructiveHint"] = json!(effect == Some(Effect::Destructive));
        told["idempotentHint"] = json!(row.idempotent.unwrap_or(false));
    }
    told
}

/// `tools/call`.
pub(super) async fn call(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let name: String = params.require("name")?;
    if context.era.is_modern() {
        header::check_name(&context.headers, &name)?;
    }
    let raw = params.raw("arguments");
    let sent = raw.as_deref().map(|raw| serde_json::from_str::<Map<String, Value>>(raw.get())).transpose();
    let sent = sent.map_err(|error| RpcError::params(format!("`arguments` cannot be read: {error}")))?;
    let sent = sent.unwrap_or_default();
    let row = match row(context, &name).await {
        Ok(Some(row)) => row,
        Ok(None) => return Err(RpcError::params(format!("`{name}` is no tool of this server"))),
        Err(fault) => return refused(context, &fault),
    };
    let arguments = offered(&row, context.era.is_modern());
    if context.era.is_modern() {
        for (path, suffix) in arguments.headers() {
            header::check_parameter(&context.headers, &suffix, schema::at(&sent, &path))?;
        }
    }
    if let Some(fault) = arguments.misfit(&sent) {
        return refused(context, &fault);
    }
    let text = raw.as_deref().map_or("{}", RawValue::get);
    let round = Round::take(context, &mut params, ("tools/call", &row.key, &row.contract_hash), text)?;
    let (whole, told, wait_ms) = match round.next(context, &row, sent)? {
        Next::Run { arguments, told, wait_ms } => (arguments, told, wait_ms),
        Next::Ask(outcome) => return Ok(outcome),
        Next::Refuse(why) => return Ok(failed(&why)),
    };
    // What needs no change goes on as it was written.
    let is_same = arguments.is_plain() && told.answers.is_empty();
    let form = Form::ArgsJson(match is_same {
        true => Bytes::from(text.to_owned()),
        false => Bytes::from(arguments.given_back(whole).to_string()),
    });
    let request = executor::InvokeRequest {
        key: row.key.clone(),
        arguments: Some(executor::Arguments { form: Some(form) }),
        idempotency_key: told.once(),
        wait_ms,
        ..executor::InvokeRequest::default()
    };
    let answered = match call::run(context, request).await {
        Ok(answer) => match &answer.held {
            Some(held) => round.held(context, held, told).await,
            None => Ok(call::shown(context, answer, output_schema(&row, context.era.is_modern()).as_ref())),
        },
        Err(fault) => Err(fault),
    };
    answered.or_else(|fault| refused(context, &fault))
}

/// The arguments as a listing of the era shows them: a client of the modern one is asked for what only a person gives.
pub(super) fn offered(row: &Signature, is_modern: bool) -> Arguments {
    let schema = serde_json::from_slice(&row.input_schema).unwrap_or(Value::Bool(true));
    Arguments::of(if is_modern { without_questions(schema) } else { schema })
}

/// The row that is listed under a name.
async fn row(context: &Context, name: &str) -> Result<Option<Signature>, Fault> {
    let by_key = ListSignaturesRequest { key: name.to_owned(), ..ListSignaturesRequest::default() };
    if let Some(row) = first(context, by_key, |_| true).await? {
        return Ok(Some(row));
    }
    let Some(beginning) = tool::beginning(name) else { return Ok(None) };
    let by_prefix = ListSignaturesRequest {
        prefix: beginning.to_owned(),
        page_size: SEED_PAGE,
        ..ListSignaturesRequest::default()
    };
    first(context, by_prefix, |row| tool::name(&row.key) == name).await
}

async fn first(
    context: &Context,
    request: ListSignaturesRequest,
    is_it: impl Fn(&Signature) -> bool,
) -> Result<Option<Signature>, Fault> {
    let found = context.app.upstreams.resolver.read(&context.call, request, rpc!(resolver.list_signatures)).await?;
    Ok(found.signatures.into_iter().find(is_it))
}

/// Words for a person who reads a listing.
pub(super) fn words(row: &Signature) -> String {
    description(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(key: &str) -> Signature {
        Signature {
            key: key.to_owned(),
            r#type: 2,
            category: "weather".to_owned(),
            what: "Current temperature at a coordinate. In Celsius.".to_owned(),
            when_to_use: "somebody asks how warm it is".to_owned(),
            effect: 1,
            input_schema: Bytes::from_static(br#"{"type":"object","properties":{"a":{"type":"string"}}}"#),
            ..Signature::default()
        }
    }

    #[test]
    fn a_row_is_told_as_a_tool() {
        let told = described(&row("WEATHER"), true);
        assert_eq!(told["name"], "WEATHER");
        assert_eq!(told["title"], "Current temperature at a coordinate");
        assert_eq!(
            told["description"],
            "Current temperature at a coordinate. In Celsius.\nWhen to use: somebody asks how warm it is\n[http · weather]"
        );
        assert_eq!(told["annotations"], json!({"readOnlyHint": true, "openWorldHint": true}));
        assert!(told.get("outputSchema").is_none());
    }

    #[test]
    fn a_description_has_at_most_two_thousand_characters() {
        let mut long = row("A");
        long.what = "é".repeat(5_000);
        long.untrusted_text = true;
        let told = description(&long);
        assert_eq!(told.chars().count(), DESCRIPTION);
        assert!(told.starts_with("Described by a third party: é") && told.ends_with("…\n[http · weather]"));
    }

    #[test]
    fn what_a_call_may_do_stands_in_its_annotations() {
        let mut destructive = row("A");
        destructive.effect = 3;
        destructive.r#type = 1;
        destructive.idempotent = Some(true);
        let expected = json!({
            "readOnlyHint": false, "openWorldHint": false, "destructiveHint": true, "idempotentHint": true,
        });
        assert_eq!(annotations(&destructive), expected);
    }
}
