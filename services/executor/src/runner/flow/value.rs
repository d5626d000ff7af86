//! What steps give, as later steps read it. Nothing is decided by what stands in it.

use std::borrow::Cow;

use callbook_domain::arguments::Argument;
use callbook_domain::json;
use callbook_domain::outcome::{Failure, Output};
use data_encoding::BASE64;
use serde_json::{Map, Value};

/// An output as an argument: JSON with its exact text, else text without a type.
///
/// # Errors
/// `flow:truncated` for the head of something longer, `flow:not_text` for bytes that are no text.
pub(super) fn argument(output: &Output) -> Result<Argument, Failure> {
    let text = read(output)?;
    Ok(match output.as_json() {
        // JSON that two readers could understand differently stays text
        Some(document) => Argument::json(document).unwrap_or_else(|_| Argument::untyped(document)),
        None => Argument::untyped(text),
    })
}

/// The whole of an output as the text that it is, JSON without its byte order mark.
///
/// # Errors
/// As [`argument`].
pub(super) fn read(output: &Output) -> Result<&str, Failure> {
    if output.truncated {
        return Err(Failure::new("flow:truncated", "what it would read was cut at the bound of the row that gave it"));
    }
    let text = output.as_json().or_else(|| output.as_text());
    text.ok_or_else(|| Failure::new("flow:not_text", "what it would read is no text: read its `base64` through MERGE"))
}

/// An output as a JSON value: its exact text where it is JSON, a string where it is text, `null` where there is none,
/// and an object of `media_type` and `base64` or `text` where it is neither or was cut, as answers show it.
pub(super) fn document(output: &Output) -> Cow<'_, str> {
    if output.bytes.is_empty() {
        return Cow::Borrowed("null");
    }
    match (output.as_json(), output.as_text()) {
        (Some(document), _) => Cow::Borrowed(document),
        (None, Some(text)) if !output.truncated => Cow::Owned(json::quote(text)),
        (None, text) => {
            let mut object = Map::new();
            if !output.media_type.is_empty() {
                object.insert("media_type".to_owned(), output.media_type.clone().into());
            }
            match text {
                Some(text) => object.insert("text".to_owned(), text.into()),
                None => object.insert("base64".to_owned(), BASE64.encode(&output.bytes).into()),
            };
            if output.truncated {
                object.insert("truncated".to_owned(), true.into());
            }
            Cow::Owned(Value::Object(object).to_string())
        }
    }
}

/// Outputs as one JSON list.
pub(super) fn list<'a>(outputs: impl IntoIterator<Item = &'a Output>) -> Output {
    let items: Vec<_> = outputs.into_iter().map(document).collect();
    Output::json(format!("[{}]", items.join(",")))
}

/// The elements of a JSON list, each as an output.
///
/// # Errors
/// `flow:not_a_list` for anything else, text that looks like a list included.
pub(super) fn items(output: &Output) -> Result<Vec<Output>, Failure> {
    let items = argument(output)?.items();
    let items =
        items.ok_or_else(|| Failure::new("flow:not_a_list", "`EACH` reads a JSON list, and `$PREV` is none"))?;
    Ok(items.iter().map(|item| Output::json(item.exact().into_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary() -> Output {
        Output { bytes: vec![0xff, 0], media_type: "image/png".into(), truncated: false }
    }

    fn cut(output: Output) -> Output {
        Output { truncated: true, ..output }
    }

    #[test]
    fn json_keeps_its_text_and_text_has_no_type() {
        for exact in ["9007199254740993", "1.10", "-0", "1e400", r#"{"a":1.10}"#, "[1,2]", "null"] {
            let read = argument(&Output::json(exact)).unwrap();
            assert_eq!((&*read.exact(), read.as_text(), read.is_string()), (exact, exact, false));
        }
        assert_eq!(argument(&Output::json(r#""a\"b""#)).unwrap().as_text(), "a\"b");
        assert_eq!(argument(&Output::text("12")).unwrap(), Argument::untyped("12"));
        assert_eq!(argument(&Output::text(r#"{"a":1}"#)).unwrap(), Argument::untyped(r#"{"a":1}"#));
        assert_eq!(argument(&Output::json(r#"{"a":1,"a":2}"#)).unwrap(), Argument::untyped(r#"{"a":1,"a":2}"#));
        assert_eq!(argument(&Output::empty()).unwrap(), Argument::untyped(""));
        assert_eq!(argument(&binary()).unwrap_err().code, "flow:not_text");
        assert_eq!(argument(&cut(Output::text("head"))).unwrap_err().code, "flow:truncated");
    }

    #[test]
    fn a_list_holds_each_output_as_answers_show_it() {
        let outputs =
            [Output::json("1.10"), Output::text("a \"b\""), Output::empty(), binary(), cut(Output::json("[1,"))];
        let expected = r#"[1.10,"a \"b\"",null,{"base64":"/wA=","media_type":"image/png"},{"media_type":"application/json","text":"[1,","truncated":true}]"#;
        let list = list(&outputs);
        assert_eq!(
            list.as_json().map(|text| serde_json::from_str::<Value>(text).unwrap()),
            serde_json::from_str(expected).ok()
        );
        assert!(list.as_text().unwrap().starts_with(r#"[1.10,"a \"b\"",null,{"#));
    }

    #[test]
    fn only_a_typed_list_has_elements() {
        let texts = |output: &Output| -> Result<Vec<String>, String> {
            let items = items(output).map_err(|failure| failure.code)?;
            Ok(items.iter().map(|item| item.as_text().unwrap().to_owned()).collect())
        };
        assert_eq!(
            texts(&Output::json(r#"[1.10,"a",{"b":[1]}]"#)),
            Ok(vec!["1.10".into(), "\"a\"".into(), r#"{"b":[1]}"#.into()])
        );
        assert_eq!(texts(&Output::json("[]")), Ok(vec![]));
        for odd in [Output::json("{}"), Output::text("[1]"), Output::empty(), Output::json("\"[1]\"")] {
            assert_eq!(texts(&odd), Err("flow:not_a_list".to_owned()), "{odd:?}");
        }
    }
}
