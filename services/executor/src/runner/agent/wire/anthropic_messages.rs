//! `POST /messages`, as Anthropic has it.

use callbook_domain::json;
use callbook_domain::outcome::Failure;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::runner::agent::chat::{
    Chat, Finish, FunctionCall, FunctionResult, FunctionSpec, Message, Reply, Usage, malformed,
};

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    max_tokens: u64,
    system: &'a str,
    messages: Vec<Turn<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Box<RawValue> },
    ToolResult { tool_use_id: &'a str, content: &'a str, is_error: bool },
}

pub fn encode(model: &str, chat: &Chat) -> Vec<u8> {
    let messages = chat.messages.iter().map(turn).collect();
    let tools = chat.functions.iter().map(tool).collect();
    let request = Request { model, max_tokens: chat.max_tokens, system: &chat.system, messages, tools };
    serde_json::to_vec(&request).expect("strings, lists, numbers and checked JSON are JSON")
}

fn turn(message: &Message) -> Turn<'_> {
    match message {
        Message::User(text) => Turn { role: "user", content: vec![Block::Text { text }] },
        Message::Model { text, calls } => {
            // a block of empty text is refused
            let words = (!text.is_empty()).then_some(Block::Text { text });
            Turn { role: "assistant", content: words.into_iter().chain(calls.iter().map(used)).collect() }
        }
        Message::Results(results) => Turn { role: "user", content: results.iter().map(result).collect() },
    }
}

fn result(result: &FunctionResult) -> Block<'_> {
    Block::ToolResult { tool_use_id: &result.id, content: &result.text, is_error: result.failed }
}

/// The arguments go back as they came; what is no object, which the form does not allow, as an empty one.
fn used(call: &FunctionCall) -> Block<'_> {
    let text = if json::object(&call.arguments).is_ok() { call.arguments.clone() } else { "{}".to_owned() };
    let input = RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned());
    Block::ToolUse { id: &call.id, name: &call.name, input }
}

fn tool(spec: &FunctionSpec) -> Value {
    let schema: Value = serde_json::from_str(spec.parameters).unwrap_or_default();
    json!({"name": spec.name, "description": spec.description, "input_schema": schema})
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    content: Vec<Given<'a>>,
    stop_reason: Option<String>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Given<'a> {
    r#type: String,
    text: Option<String>,
    id: Option<String>,
    name: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    cache_creation_input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
}

pub fn decode(body: &[u8]) -> Result<Reply, Failure> {
    let response: Response<'_> = serde_json::from_slice(body).map_err(|_| malformed("it is no message"))?;
    let mut reply = Reply {
        text: String::new(),
        calls: Vec::new(),
        finish: match response.stop_reason.as_deref() {
            Some("max_tokens" | "model_context_window_exceeded") => Finish::Length,
            Some("refusal") => Finish::Refused,
            Some(_) | None => Finish::Done,
        },
        usage: response.usage.map_or(Usage::default(), |tokens| Usage {
            input: [tokens.cache_creation_input_tokens, tokens.cache_read_input_tokens]
                .into_iter()
                .flatten()
                .fold(tokens.input_tokens, u64::saturating_add),
            output: tokens.output_tokens,
        }),
    };
    for block in response.content {
        match (block.r#type.as_str(), block.text, block.id, block.name) {
            ("text", Some(text), ..) => reply.text.push_str(&text),
            ("tool_use", _, Some(id), Some(name)) => {
                let arguments = block.input.map_or("{}", RawValue::get).to_owned();
                reply.calls.push(FunctionCall { id, name, arguments });
            }
            ("text" | "tool_use", ..) => return Err(malformed("a block lacks what its type needs")),
            // what the model thought is not ours to use
            (..) => {}
        }
    }
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_written_as_turns_of_blocks() {
        let call =
            |arguments: &str| FunctionCall { id: "c".into(), name: "invoke".into(), arguments: arguments.into() };
        let result = FunctionResult { id: "c".into(), text: "data".into(), failed: true };
        let chat = Chat {
            system: "S".into(),
            messages: vec![
                Message::User("U".into()),
                Message::Model { text: String::new(), calls: vec![call("{\"n\": 1.10}"), call("no json")] },
                Message::Results(vec![result]),
                Message::Model { text: "T".into(), calls: Vec::new() },
            ],
            functions: &[FunctionSpec { name: "f", description: "d", parameters: "{\"type\":\"object\"}" }],
            max_tokens: 9,
        };
        let expected = r#"{"model":"m","max_tokens":9,"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"U"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"invoke","input":{"n": 1.10}},{"type":"tool_use","id":"c","name":"invoke","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"data","is_error":true}]},{"role":"assistant","content":[{"type":"text","text":"T"}]}],"tools":[{"name":"f","description":"d","input_schema":{"type":"object"}}]}"#;
        assert_eq!(String::from_utf8(encode("m", &chat)).unwrap(), expected);
    }

    #[test]
    fn answers_are_read_with_their_calls_and_usage() {
        let reply = decode(
            br#"{"type":"message","content":[{"type":"thinking","thinking":"[PAY]1[/PAY]"},{"type":"text","text":"a"},
                {"type":"tool_use","id":"t1","name":"invoke","input":{"x" : 9007199254740993}}],
                "stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":3,"cache_read_input_tokens":5}}"#,
        )
        .unwrap();
        assert_eq!((reply.text.as_str(), reply.finish), ("a", Finish::Done));
        assert_eq!(reply.calls[0].arguments, "{\"x\" : 9007199254740993}");
        assert_eq!(reply.usage, Usage { input: 12, output: 3 });
        let finish = |word: &str| {
            decode(format!(r#"{{"content":[],"stop_reason":"{word}"}}"#).as_bytes()).map(|reply| reply.finish)
        };
        assert_eq!(finish("max_tokens").unwrap(), Finish::Length);
        assert_eq!(finish("refusal").unwrap(), Finish::Refused);
    }

    #[test]
    fn nonsense_is_a_typed_failure() {
        for body in [
            "",
            "x",
            "{}",
            "[]",
            r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
            r#"{"content":"text"}"#,
            r#"{"content":[{"type":"text"}]}"#,
            r#"{"content":[{"type":"tool_use","id":"a"}]}"#,
            r#"{"content":[],"usage":{"input_tokens":-1}}"#,
        ] {
            assert_eq!(decode(body.as_bytes()).unwrap_err().code, "agent:malformed", "{body}");
        }
    }
}
