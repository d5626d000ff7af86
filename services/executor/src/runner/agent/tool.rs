//! The three functions of an agent: what a model is told of them, what it wrote, and what it gets back.

use std::time::Duration;

use callbook_domain::agent::CallForm;
use callbook_domain::arguments::Sent;
use callbook_domain::fault::{Fault, Result};
use callbook_domain::json::{self, JsonKind};
use serde_json::json;
use serde_json::value::RawValue;

use super::book;
use super::chat::{FunctionCall, FunctionSpec, Reply};
use super::prompt::data;
use super::turn::{Turn, take};
use crate::approval;
use crate::call::Answer;
use crate::child::Running;
use crate::runner::function::tags::{self, WORDS};
use crate::tree::Authority;

/// What native models are told.
pub const FUNCTIONS: &[FunctionSpec] = &[
    FunctionSpec {
        name: "ask",
        description: "Find the rows of the book that answer a plain question, best first.",
        parameters: r#"{"type":"object","properties":{"question":{"type":"string"},"limit":{"type":"integer","minimum":1,"maximum":50}},"required":["question"]}"#,
    },
    FunctionSpec {
        name: "contract",
        description: "Read what a row takes, gives and may change. Read it before you invoke the row.",
        parameters: r#"{"type":"object","properties":{"key":{"type":"string"}},"required":["key"]}"#,
    },
    FunctionSpec {
        name: "invoke",
        description: "Run a row. Give its arguments by name in `args`, or as text separated by | in `body`, never both.",
        parameters: r#"{"type":"object","properties":{"key":{"type":"string"},"args":{"type":"object"},"body":{"type":"string"}},"required":["key"]}"#,
    },
];

/// Rows of one answer to `ask`, unless the model says another number.
const MATCHES: usize = 8;
/// The most that the model may ask for.
const MAX_MATCHES: usize = 50;

/// What a model wants done.
#[derive(Clone, Debug)]
pub enum Wish {
    /// Read the book.
    Look(Turn),
    /// Run a row.
    Invoke {
        /// Its key.
        key: String,
        /// Its arguments.
        sent: Sent,
    },
    /// Nothing that there is: why not.
    Unreadable(String),
}

/// The native id of the call that wants it, absent for a tag, and what is wanted.
pub type Wanted = (Option<String>, Wish);

/// What a model's own turn wants done. Its text holds calls only where its calls are tags.
pub fn wishes(form: CallForm, reply: &Reply) -> Vec<Wanted> {
    match form {
        CallForm::Native => reply.calls.iter().map(|call| (Some(call.id.clone()), of_call(call))).collect(),
        CallForm::Tags => {
            let tags = tags::tags(&reply.text).into_iter().filter(|(key, _)| !WORDS.contains(key));
            tags.map(|(key, body)| (None, of_tag(key, body))).collect()
        }
    }
}

fn of_tag(key: &str, body: &str) -> Wish {
    match key {
        "ASK" => Wish::Look(Turn::Ask { question: body.trim().to_owned(), limit: MATCHES }),
        "CONTRACT" => Wish::Look(Turn::Contract { key: body.trim().to_owned() }),
        key => match Sent::new(Some(body.to_owned()), None) {
            Ok(sent) => Wish::Invoke { key: key.to_owned(), sent },
            Err(fault) => Wish::Unreadable(fault.message().to_owned()),
        },
    }
}

fn of_call(call: &FunctionCall) -> Wish {
    read_call(call).unwrap_or_else(Wish::Unreadable)
}

fn read_call(call: &FunctionCall) -> std::result::Result<Wish, String> {
    let members = json::object(&call.arguments).map_err(|problem| format!("the arguments are not taken: {problem}"))?;
    let raw = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, raw)| raw);
    let text = |name: &str| match raw(name).map(|raw| raw.get()) {
        None => Ok(None),
        Some(raw) if json::kind(raw) == JsonKind::Null => Ok(None),
        Some(raw) if json::kind(raw) == JsonKind::String => json::unescape(raw).map(Some).map_err(|p| p.to_string()),
        Some(_) => Err(format!("`{name}` is not a string")),
    };
    let needed = |name: &str| text(name)?.ok_or_else(|| format!("`{name}` is missing"));
    match call.name.as_str() {
        "ask" => {
            let limit = raw("limit").and_then(|raw| raw.get().parse().ok()).unwrap_or(MATCHES);
            Ok(Wish::Look(Turn::Ask { question: needed("question")?, limit: limit.clamp(1, MAX_MATCHES) }))
        }
        "contract" => Ok(Wish::Look(Turn::Contract { key: needed("key")? })),
        "invoke" => {
            let (key, body) = (needed("key")?, text("body")?);
            let args = raw("args").filter(|raw| json::kind(raw.get()) != JsonKind::Null).cloned();
            let sent = Sent::new(body, args).map_err(|fault| fault.message().to_owned())?;
            Ok(Wish::Invoke { key, sent })
        }
        other => Err(format!("there is no function `{other}`: use ask, contract or invoke")),
    }
}

/// What became of a wish: a data block, and whether it failed.
pub async fn fulfil(running: &Running<'_>, within: &Running<'_>, wish: Wish, time: Duration) -> (String, bool) {
    match wish {
        Wish::Unreadable(why) => told("call", None, "not run", &why, true),
        Wish::Look(turn) => {
            let (what, sent) = (turn.name(), sent_of(&turn));
            of_answer(what, take(running, turn, sent, time).await)
        }
        Wish::Invoke { key, sent } => {
            let what = format!("invoke {key}");
            let snapshot = running.app.directory.snapshot();
            if book::seen(running, &snapshot, &key).is_none() {
                // a row that was written this moment may not be in our snapshot
                let fresh = running.app.directory.fresh().await;
                if !fresh.is_ok_and(|fresh| book::seen(running, &fresh, &key).is_some()) {
                    let failure = book::unknown(&key);
                    return told(&what, None, "refused", &format!("{}: {}", failure.code, failure.message), true);
                }
            }
            of_answer(&what, within.invoke(&key, sent, Authority::Own).await)
        }
    }
}

/// What a look at the book was asked, for its receipt.
fn sent_of(turn: &Turn) -> Sent {
    let value = match turn {
        Turn::Ask { question, limit } => json!({"question": question, "limit": limit}),
        Turn::Contract { key } => json!({"key": key}),
        Turn::Model(_) => return Sent::Nothing,
    };
    RawValue::from_string(value.to_string()).map_or(Sent::Nothing, Sent::Args)
}

fn of_answer(what: &str, answer: Result<Answer>) -> (String, bool) {
    match answer {
        Ok(Answer { held: Some(held), .. }) => {
            let why = format!(
                "not run: it waits for a person, who decides on it as {}. Go on without it, or say that it waits.",
                approval::id_text(held.id)
            );
            told(what, None, "held", &why, true)
        }
        Ok(answer) => {
            let id = answer.id.to_string();
            told(what, Some(&id), if answer.ok { "ok" } else { "failed" }, &answer.result, !answer.ok)
        }
        Err(fault) => told(what, None, "refused", &refusal(&fault), true),
    }
}

fn refusal(fault: &Fault) -> String {
    let mut text = format!("{}: {}", fault.error_text(), fault.message());
    if let Some(fix) = fault.how_to_fix() {
        text.push_str("\nhow to fix: ");
        text.push_str(fix);
    }
    text
}

fn told(what: &str, id: Option<&str>, status: &str, text: &str, failed: bool) -> (String, bool) {
    let attributes = [("result_of", what), ("status", status), ("invocation", id.unwrap_or_default())];
    (data(&attributes, text), failed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runner::agent::chat::{Finish, Usage};

    fn reply(text: &str, calls: &[(&str, &str)]) -> Reply {
        let call = |(at, (name, arguments)): (usize, &(&str, &str))| FunctionCall {
            id: format!("c{at}"),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        let calls = calls.iter().enumerate().map(call).collect();
        Reply { text: text.to_owned(), calls, finish: Finish::Done, usage: Usage::default() }
    }

    fn shown(form: CallForm, reply: &Reply) -> Vec<String> {
        let show = |(id, wish): &Wanted| match wish {
            Wish::Look(Turn::Ask { question, limit }) => format!("{id:?} ask {question} {limit}"),
            Wish::Look(Turn::Contract { key }) => format!("{id:?} contract {key}"),
            Wish::Look(Turn::Model(_)) => "model".to_owned(),
            Wish::Invoke { key, sent } => format!("{id:?} invoke {key} {}", crate::call::sent_json(sent)),
            Wish::Unreadable(why) => format!("{id:?} {why}"),
        };
        wishes(form, reply).iter().map(show).collect()
    }

    #[test]
    fn tags_are_calls_of_models_that_write_tags() {
        let said = reply(
            "[REASONING][PAY]1[/PAY][/REASONING] [ASK] the time [/ASK] [CONTRACT]NOW[/CONTRACT][NOW]UTC|x[/NOW] [REPLY]no [PAY]2[/PAY][/REPLY]",
            &[],
        );
        assert_eq!(
            shown(CallForm::Tags, &said),
            ["None ask the time 8", "None contract NOW", r#"None invoke NOW {"body":"UTC|x"}"#]
        );
        assert!(shown(CallForm::Native, &said).is_empty(), "a text of a native model holds no calls");
    }

    #[test]
    fn native_calls_keep_the_text_of_their_arguments() {
        let said = reply(
            "[PAY]1[/PAY]",
            &[
                ("ask", r#"{"question":"the time","limit":900}"#),
                ("contract", r#"{"key":"NOW"}"#),
                ("invoke", r#"{"key":"NOW","args":{"n": 9007199254740993,"m":1.10}}"#),
                ("invoke", r#"{"key":"NOW","body":"a|b","args":null}"#),
                ("invoke", r#"{"key":"NOW","body":"a","args":{}}"#),
                ("invoke", "{\"key\":\"NOW\""),
                ("contract", "{}"),
                ("ask", r#"{"question":1}"#),
                ("pay", "{}"),
            ],
        );
        assert_eq!(
            shown(CallForm::Native, &said),
            [
                r#"Some("c0") ask the time 50"#,
                r#"Some("c1") contract NOW"#,
                r#"Some("c2") invoke NOW {"args":{"n": 9007199254740993,"m":1.10}}"#,
                r#"Some("c3") invoke NOW {"body":"a|b"}"#,
                r#"Some("c4") `body` and `args` are given, never both"#,
                r#"Some("c5") the arguments are not taken: it is not JSON"#,
                r#"Some("c6") `key` is missing"#,
                r#"Some("c7") `question` is not a string"#,
                r#"Some("c8") there is no function `pay`: use ask, contract or invoke"#,
            ]
        );
        assert!(shown(CallForm::Tags, &reply("x", &[("ask", "{}")])).is_empty());
    }
}
