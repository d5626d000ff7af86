//! `POST /chat/completions`, as OpenAI made it and many others speak it.

use callbook_domain::json::{self, JsonKind};
use callbook_domain::outcome::Failure;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::runner::agent::chat::{Chat, Finish, FunctionCall, FunctionSpec, Message, Reply, Usage, malformed};

#[derive(Serialize)]
struct Request<'a> {
    model: &'a str,
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    max_completion_tokens: u64,
}

pub fn encode(model: &str, chat: &Chat) -> Vec<u8> {
    let system = json!({"role": "system", "content": chat.system});
    let messages = std::iter::once(system).chain(chat.messages.iter().flat_map(message)).collect();
    let tools = chat.functions.iter().map(tool).collect();
    let request = Request { model, messages, tools, max_completion_tokens: chat.max_tokens };
    serde_json::to_vec(&request).expect("strings, lists and numbers are JSON")
}

fn message(message: &Message) -> Vec<Value> {
    match message {
        Message::User(text) => vec![json!({"role": "user", "content": text})],
        Message::Model { text, calls } => {
            let mut said = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                let calls: Vec<Value> = calls.iter().map(call).collect();
                said["tool_calls"] = json!(calls);
                if text.is_empty() {
                    said["content"] = Value::Null;
                }
            }
            vec![said]
        }
        Message::Results(results) => results
            .iter()
            .map(|result| json!({"role": "tool", "tool_call_id": result.id, "content": result.text}))
            .collect(),
    }
}

fn call(call: &FunctionCall) -> Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    json!({"id": call.id, "type": "function", "function": function})
}

fn tool(spec: &FunctionSpec) -> Value {
    let parameters: Value = serde_json::from_str(spec.parameters).unwrap_or_default();
    let function = json!({"name": spec.name, "description": spec.description, "parameters": parameters});
    json!({"type": "function", "function": function})
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    choices: Vec<Choice<'a>>,
    usage: Option<Tokens>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Said<'a>,
    finish_reason: Option<String>,
}

#[derive(Deserialize)]
struct Said<'a> {
    #[serde(default)]
    content: Value,
    refusal: Option<String>,
    #[serde(borrow)]
    tool_calls: Option<Vec<Called<'a>>>,
}

#[derive(Deserialize)]
struct Called<'a> {
    #[serde(default)]
    id: String,
    #[serde(borrow)]
    function: Function<'a>,
}

#[derive(Deserialize)]
struct Function<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

pub fn decode(body: &[u8]) -> Result<Reply, Failure> {
    let response: Response<'_> = serde_json::from_slice(body).map_err(|_| malformed("it is no chat completion"))?;
    let choice = response.choices.into_iter().next().ok_or_else(|| malformed("it has no choice"))?;
    let calls = choice.message.tool_calls.unwrap_or_default().into_iter().enumerate().map(called);
    let calls = calls.collect::<Result<Vec<_>, _>>()?;
    let refusal = choice.message.refusal.filter(|refusal| !refusal.is_empty());
    let finish = match (&refusal, choice.finish_reason.as_deref()) {
        (Some(_), _) | (None, Some("content_filter")) => Finish::Refused,
        (None, Some("length")) => Finish::Length,
        (None, Some(_) | None) => Finish::Done,
    };
    let usage = response
        .usage
        .map_or(Usage::default(), |tokens| Usage { input: tokens.prompt_tokens, output: tokens.completion_tokens });
    let text = match refusal {
        Some(refusal) => refusal,
        None => words(&choice.message.content)?,
    };
    Ok(Reply { text, calls, finish, usage })
}

/// Text, or a list of parts of which those with text are taken.
fn words(content: &Value) -> Result<String, Failure> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => Ok(parts.iter().filter_map(|part| part["text"].as_str()).collect()),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => Err(malformed("its content is no text")),
    }
}

/// Some that speak this form leave the id out, or give the arguments as an object in place of its text.
fn called((at, called): (usize, Called<'_>)) -> Result<FunctionCall, Failure> {
    let arguments = called.function.arguments.map_or("{}", RawValue::get);
    let arguments = match json::kind(arguments) {
        JsonKind::String => json::unescape(arguments).map_err(|_| malformed("arguments of a call are no text"))?,
        JsonKind::Object => arguments.to_owned(),
        JsonKind::Null => "{}".to_owned(),
        JsonKind::Array | JsonKind::Number | JsonKind::Boolean => {
            return Err(malformed("arguments of a call are neither text nor an object"));
        }
    };
    let id = if called.id.is_empty() { format!("call_{at}") } else { called.id };
    Ok(FunctionCall { id, name: called.function.name, arguments })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::agent::chat::FunctionResult;

    #[test]
    fn a_conversation_is_written_as_messages() {
        let call = FunctionCall { id: "c1".into(), name: "invoke".into(), arguments: "{\"n\": 1.10}".into() };
        let result = FunctionResult { id: "c1".into(), text: "data".into(), failed: false };
        let chat = Chat {
            system: "S".into(),
            messages: vec![
                Message::User("U".into()),
                Message::Model { text: String::new(), calls: vec![call] },
                Message::Results(vec![result]),
                Message::Model { text: "T".into(), calls: Vec::new() },
            ],
            functions: &[FunctionSpec { name: "f", description: "d", parameters: "{\"type\":\"object\"}" }],
            max_tokens: 9,
        };
        let expected = r#"{"model":"m","messages":[{"role":"system","content":"S"},{"role":"user","content":"U"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"invoke","arguments":"{\"n\": 1.10}"}}]},{"role":"tool","tool_call_id":"c1","content":"data"},{"role":"assistant","content":"T"}],"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"}}}],"max_completion_tokens":9}"#;
        assert_eq!(String::from_utf8(encode("m", &chat)).unwrap(), expected);
        let bare = Chat { max_tokens: 1, ..Chat::default() };
        assert!(!String::from_utf8(encode("m", &bare)).unwrap().contains("tools"));
    }

    #[test]
    fn answers_are_read_with_their_calls_and_usage() {
        let reply = decode(
            br#"{"choices":[{"message":{"role":"assistant","content":null,"tool_calls":[
                {"id":"a","type":"function","function":{"name":"invoke","arguments":"{\"x\":9007199254740993}"}},
                {"function":{"name":"ask","arguments":{ "q" : 1e400 }}},{"function":{"name":"noop"}}]},
                "finish_reason":"tool_calls"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}"#,
        )
        .unwrap();
        let calls: Vec<_> = reply.calls.iter().map(|c| [c.id.as_str(), &c.name, &c.arguments]).collect();
        assert_eq!(
            calls,
            [
                ["a", "invoke", "{\"x\":9007199254740993}"],
                ["call_1", "ask", "{ \"q\" : 1e400 }"],
                ["call_2", "noop", "{}"]
            ]
        );
        assert_eq!((reply.usage, reply.finish), (Usage { input: 7, output: 3 }, Finish::Done));
        let said = |body: &str| decode(body.as_bytes()).map(|reply| (reply.text, reply.finish));
        let parts = r#"{"choices":[{"message":{"content":[{"type":"text","text":"a"},{"type":"x"},{"text":"b"}]},"finish_reason":"length"}]}"#;
        assert_eq!(said(parts).unwrap(), ("ab".to_owned(), Finish::Length));
        let no = r#"{"choices":[{"message":{"content":null,"refusal":"I will not"},"finish_reason":"stop"}]}"#;
        assert_eq!(said(no).unwrap(), ("I will not".to_owned(), Finish::Refused));
        let filtered = r#"{"choices":[{"message":{"content":""},"finish_reason":"content_filter"}]}"#;
        assert_eq!(said(filtered).unwrap().1, Finish::Refused);
    }

    #[test]
    fn nonsense_is_a_typed_failure() {
        let deep = format!("{}{}", "[".repeat(5_000), "]".repeat(5_000));
        for body in [
            "",
            "<html>",
            "[]",
            "{}",
            r#"{"error":{"message":"x"}}"#,
            r#"{"choices":[]}"#,
            r#"{"choices":[{}]}"#,
            r#"{"choices":[{"message":{"content":7}}]}"#,
            r#"{"choices":[{"message":{"tool_calls":[{"function":{"name":"a","arguments":[1]}}]}}]}"#,
            r#"{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":-1}}"#,
            &deep,
        ] {
            assert_eq!(decode(body.as_bytes()).unwrap_err().code, "agent:malformed", "{body}");
        }
        assert!(decode(b"\xff").is_err());
    }
}
