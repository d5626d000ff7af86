//! The four tools: their whole list costs a model the same whatever the size of the book.

use std::sync::LazyLock;

use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason};
use callbook_domain::invocation::check_idempotency_key;
use callbook_wire::contract::v1::GetContractRequest;
use callbook_wire::executor::v1 as executor;
use callbook_wire::executor::v1::arguments::Form;
use callbook_wire::resolver::v1::AskRequest;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::consent::{Round, Wait};
use super::content::Block;
use super::endpoint::Context;
use super::header;
use super::message::{Params, RpcError};
use super::refusal::{failed, refused};
use super::reply::{Hints, Outcome};
use super::state::Told;
use super::{call, receipt};
use crate::answer::{Effect, Format, Raw, only};
use crate::dispatch::{Match, Shape, invoke};
use crate::upstream::rpc;

/// The list, ordered as the calls follow each other.
static TOOLS: LazyLock<Value> = LazyLock::new(|| {
    let text = || json!({"type": "string"});
    let tool = |name: &str, description: &str, properties: Value, required: Value, annotations: Value| {
        json!({
            "name": name, "description": description, "annotations": annotations,
            "inputSchema": {
                "type": "object", "properties": properties, "required": required, "additionalProperties": false,
            },
        })
    };
    let reads = || json!({"readOnlyHint": true, "openWorldHint": false});
    json!([
        tool(
            "ask",
            "Find what can be called for a need in plain words. The best match comes with its contract.",
            json!({
                "question": text(), "limit": {"type": "integer", "minimum": 1, "maximum": 50}, "category": text(),
                "effect": {"enum": ["read", "write", "destructive"]},
            }),
            json!(["question"]),
            reads(),
        ),
        tool(
            "contract",
            "Read what a key takes, gives and may do.",
            json!({"key": text(), "format": {"enum": ["json", "markdown", "typescript"]}}),
            json!(["key"]),
            reads(),
        ),
        tool(
            "invoke",
            "Run a key with the arguments its contract names: `args` by name, or `body` as text. Keep the invocation id.",
            json!({
                "key": text(), "args": {"type": "object"}, "body": text(),
                "idempotency_key": {"type": "string", "description": "Repeats with it run once"},
                "shape": {"type": "boolean", "description": "Show the request, run nothing"},
            }),
            json!(["key"]),
            json!({"destructiveHint": true, "openWorldHint": true}),
        ),
        tool(
            "receipt",
            "What an invocation did; with `offset`, its output from there on.",
            json!({"id": text(), "offset": {"type": "integer", "minimum": 0}}),
            json!(["id"]),
            reads(),
        ),
    ])
});

/// `tools/list`.
pub(super) async fn list(context: &Context) -> Result<Outcome, RpcError> {
    context.identify().await?;
    Ok(Outcome::of("tools", &*TOOLS).hints(Hints::FIXED))
}

/// `tools/call`.
pub(super) async fn call(context: &Context, mut params: Params) -> Result<Outcome, RpcError> {
    let name: String = params.require("name")?;
    if context.era.is_modern() {
        header::check_name(&context.headers, &name)?;
    }
    let arguments = params.raw("arguments");
    let done = match name.as_str() {
        "ask" => with(arguments, async |asked| ask(context, asked).await).await,
        "contract" => with(arguments, async |asked| contract(context, asked).await).await,
        "invoke" => {
            let text = arguments.as_deref().map_or("{}", RawValue::get).to_owned();
            let round = Round::take(context, &mut params, ("tools/call", "invoke", ""), &text)?;
            let wait_ms = match round.wait(context)? {
                Wait::Ms(wait_ms) => wait_ms,
                Wait::GivenUp(why) => return Ok(failed(&why)),
            };
            with(arguments, async |asked| run(context, asked, &round, wait_ms).await).await
        }
        "receipt" => with(arguments, async |asked| receipt::show(context, asked).await).await,
        other => return Err(RpcError::params(format!("`{other}` is no tool of this server"))),
    };
    done.or_else(|fault| refused(context, &fault))
}

/// Reads the arguments of a tool; what does not fit is told to the model, which can do better.
async fn with<A: for<'a> Deserialize<'a>>(
    arguments: Option<Raw>,
    tool: impl AsyncFnOnce(A) -> Result<Outcome, Fault>,
) -> Result<Outcome, Fault> {
    let text = arguments.as_deref().map_or("{}", RawValue::get);
    match serde_json::from_str(text) {
        Ok(asked) => tool(asked).await,
        Err(error) => Ok(failed(&format!("arguments_invalid: {error}\nNothing ran."))),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    question: String,
    #[serde(default)]
    limit: Option<u32>,
    #[serde(default)]
    category: Option<String>,
    #[serde(default)]
    effect: Option<Effect>,
}

/// Matches a question is answered with where nothing is said.
const MATCHES: u32 = 6;

async fn ask(context: &Context, asked: Asked) -> Result<Outcome, Fault> {
    let limit = asked.limit.unwrap_or(MATCHES);
    if !(1..=50).contains(&limit) {
        return Err(invalid("`limit` is 1 to 50", "limit"));
    }
    let request = AskRequest {
        question: asked.question,
        page_size: limit,
        category: asked.category.unwrap_or_default(),
        effect: only(asked.effect),
        ..AskRequest::default()
    };
    let found = context.app.upstreams.resolver.read(&context.call, request, rpc!(resolver.ask)).await?;
    context.took_credential();
    let best = found.best.map(|best| crate::answer::raw(&best.contract_json));
    // What the contract says is not said again.
    let skip = usize::from(best.is_some());
    let others: Vec<Match> =
        found.matches.into_iter().skip(skip).map(|row| Match::read(row, "").without_address()).collect();
    let mut told = Outcome::of("count", &found.count).optional("best", best.as_ref());
    if !others.is_empty() {
        told = told.field("matches", &others);
    }
    let told = told.optional("hint", found.hint.as_ref());
    let told = if found.stale { told.field("stale", &true) } else { told };
    Ok(Outcome::of("content", &[Block::text(told.object())]))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keyed {
    key: String,
    #[serde(default)]
    format: Option<Format>,
}

async fn contract(context: &Context, asked: Keyed) -> Result<Outcome, Fault> {
    let request = GetContractRequest { key: asked.key, format: only(asked.format) };
    let found = context.app.upstreams.contract.read(&context.call, request, rpc!(contract.get_contract)).await?;
    context.took_credential();
    let text = String::from_utf8_lossy(&found.content).into_owned();
    Ok(Outcome::of("content", &[Block::text(text)]).meta("callbook/contract_hash", found.contract_hash))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    key: String,
    #[serde(default)]
    args: Option<Raw>,
    #[serde(default)]
    body: Option<String>,
    #[serde(default)]
    idempotency_key: Option<String>,
    #[serde(default)]
    shape: bool,
}

async fn run(context: &Context, wanted: Wanted, round: &Round, wait_ms: u32) -> Result<Outcome, Fault> {
    let form = match (wanted.args, wanted.body) {
        (None, None) => None,
        (None, Some(body)) => Some(Form::Body(body)),
        (Some(args), None) if args.get().starts_with(['{', '[']) => {
            Some(Form::ArgsJson(Bytes::from(String::from(Box::<str>::from(args)))))
        }
        (Some(_), None) => return Err(invalid("`args` must be a JSON object", "args")),
        (Some(_), Some(_)) => return Err(invalid("a call brings either `body` or `args`, not both", "args")),
    };
    let arguments = form.map(|form| executor::Arguments { form: Some(form) });
    if wanted.shape {
        let request = executor::ShapeRequest { key: wanted.key.clone(), arguments };
        let shape = invoke::run(&context.app, &context.call, request, rpc!(executor.shape)).await?;
        context.took_credential();
        let shape = serde_json::to_string(&Shape::read(shape, &wanted.key)).expect("a shape is plain data");
        return Ok(Outcome::of("content", &[Block::text(shape)]));
    }
    wanted.idempotency_key.as_deref().map(check_idempotency_key).transpose()?;
    let request = executor::InvokeRequest {
        key: wanted.key,
        arguments,
        idempotency_key: wanted.idempotency_key,
        wait_ms,
        ..executor::InvokeRequest::default()
    };
    let answer = call::run(context, request).await?;
    match &answer.held {
        Some(held) => round.held(context, held, Told::nothing()).await,
        None => Ok(call::shown(context, answer, None)),
    }
}

fn invalid(sentence: &'static str, field: &'static str) -> Fault {
    Fault::new(Reason::InvalidRequest, sentence).with("field", field)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_has_four_tools_with_closed_arguments() {
        let names: Vec<&str> = TOOLS.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["ask", "contract", "invoke", "receipt"]);
        for tool in TOOLS.as_array().unwrap() {
            assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        }
        // The exact count is measured with the tokenizer in tests/conformance; a token has more than three bytes here.
        assert!(TOOLS.to_string().len() < 2_100, "{} bytes", TOOLS.to_string().len());
    }
}
