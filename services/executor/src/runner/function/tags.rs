//! Functions of a model's text with `[KEY]body[/KEY]` tags in it.

use std::collections::HashMap;

use callbook_domain::arguments::Argument;
use callbook_domain::key::MAX_KEY;
use callbook_domain::outcome::{Failure, Output};
use serde_json::json;

use super::{Given, text_of};

/// Tags that hold a model's own words. One of them that is left open takes all that follows, so that words cut short do
/// not become calls.
pub(in crate::runner) const WORDS: [&str; 3] = ["REPLY", "REASONING", "AUDIO"];

/// Every closed tag in order, as `[{"key":…,"body":…}]`. What stands inside of a tag is its body and no tag.
pub(super) fn parse_tags(arguments: &[Argument]) -> Given {
    let tags: Vec<_> =
        tags(text_of(arguments, 0)).into_iter().map(|(key, body)| json!({"key": key, "body": body})).collect();
    Ok(Output::json(serde_json::Value::Array(tags).to_string()))
}

/// The body of the last closed `[REPLY]`.
pub(super) fn last_reply_of(arguments: &[Argument]) -> Given {
    let text = text_of(arguments, 0);
    let reply = text.rsplit_once("[/REPLY]").and_then(|(before, _)| before.rsplit_once("[REPLY]"));
    match reply {
        Some((_, reply)) => Ok(Output::text(reply.split("[/REPLY]").next().unwrap_or_default())),
        None => Err(Failure::new("fn:no_match", "the text has no [REPLY]…[/REPLY]")),
    }
}

/// Every closed tag in order, with its body. What stands inside of a tag is its body and no tag.
pub(in crate::runner) fn tags(text: &str) -> Vec<(&str, &str)> {
    let ends = ends(text);
    let (mut tags, mut at) = (Vec::new(), 0);
    while let Some(found) = text[at..].find('[') {
        at += found + 1;
        let Some(key) = name(&text[at..]) else { continue };
        let body = at + key.len() + 1;
        match ends.get(key).and_then(|ends| ends.get(ends.partition_point(|end| *end < body))) {
            Some(end) => {
                tags.push((key, &text[body..*end]));
                at = end + "[/]".len() + key.len();
            }
            None if WORDS.contains(&key) => break,
            None => at = body,
        }
    }
    tags
}

/// Where each name is closed, in order: found once, because a search at each opening would take forever in a text of
/// openings alone.
fn ends(text: &str) -> HashMap<&str, Vec<usize>> {
    let mut ends: HashMap<&str, Vec<usize>> = HashMap::new();
    for (at, _) in text.match_indices("[/") {
        if let Some(key) = name(&text[at + 2..]) {
            ends.entry(key).or_default().push(at);
        }
    }
    ends
}

/// The name that the text begins with, where `]` follows it.
fn name(text: &str) -> Option<&str> {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let bytes = text.as_bytes();
    let length = bytes.iter().take(MAX_KEY + 1).take_while(|byte| is_part(byte)).count();
    let is_key = bytes.first().is_some_and(|first| first.is_ascii_alphabetic() || *first == b'_');
    (is_key && length <= MAX_KEY && bytes.get(length) == Some(&b']')).then(|| &text[..length])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> String {
        String::from_utf8(parse_tags(&[Argument::untyped(text)]).unwrap().bytes).unwrap()
    }

    #[test]
    fn closed_tags_are_listed_in_order_with_their_bodies() {
        assert_eq!(parsed("a [NOW][/NOW] b"), r#"[{"key":"NOW","body":""}]"#);
        assert_eq!(
            parsed("[github.issues]a|b[/github.issues] [X]\n[Y]é\"[/Y][/X] [Z] [Y]2[/Y]"),
            "[{\"key\":\"github.issues\",\"body\":\"a|b\"},{\"key\":\"X\",\"body\":\"\\n[Y]é\\\"[/Y]\"},\
             {\"key\":\"Y\",\"body\":\"2\"}]"
        );
        for none in ["", "[", "[]", "[/A]", "[A]", "[9][/9]", "[A b][/A b]", "[A][/B]", "[/A][A]", "é[é][/é]"] {
            assert_eq!(parsed(none), "[]", "{none}");
        }
    }

    #[test]
    fn words_that_are_cut_short_hold_no_tags() {
        assert_eq!(
            parsed("[REASONING]do [PAY]1[/PAY][/REASONING]"),
            r#"[{"key":"REASONING","body":"do [PAY]1[/PAY]"}]"#
        );
        assert_eq!(parsed("[A]1[/A] [REPLY] then [PAY]1[/PAY]"), r#"[{"key":"A","body":"1"}]"#);
    }

    #[test]
    fn a_text_of_openings_alone_takes_no_time() {
        let text: String = (0..100_000).map(|n| format!("[A{n}]")).collect();
        assert_eq!(parsed(&text), "[]");
        assert_eq!(parsed(&"[A]".repeat(300_000)), "[]");
    }

    #[test]
    fn the_last_closed_reply_is_given() {
        let reply = |text: &str| last_reply_of(&[Argument::untyped(text)]);
        assert_eq!(reply("x [REPLY]hi[/REPLY]").unwrap(), Output::text("hi"));
        assert_eq!(reply("[REPLY]a[/REPLY][REPLY]b[/REPLY] [REPLY]c").unwrap(), Output::text("b"));
        assert_eq!(reply("[REPLY]a[/REPLY] b [/REPLY]").unwrap(), Output::text("a"));
        assert_eq!(reply("[REPLY]a").unwrap_err().code, "fn:no_match");
        assert_eq!(reply("[/REPLY][REPLY]").unwrap_err().code, "fn:no_match");
    }
}
