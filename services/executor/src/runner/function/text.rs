//! Functions of text.

use std::fmt::Write as _;

use callbook_domain::arguments::Argument;
use callbook_domain::outcome::{Failure, Output};
use data_encoding::{BASE64, BASE64_NOPAD, HEXLOWER};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use regex::{Captures, Regex, RegexBuilder};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{Given, refused, text_of, too_large};
use crate::config::MAX_RESPONSE;

/// Everything but `A-Z a-z 0-9 - . _ ~`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
/// The longest pattern, in bytes, and the largest automaton that it may become.
const MAX_PATTERN: usize = 4 * 1024;
const MAX_AUTOMATON: usize = 1 << 20;
/// Every match is a search of its own, so their number is a bound of time too.
const MAX_MATCHES: usize = 100;

/// The text in capitals.
pub(super) fn upper(arguments: &[Argument]) -> Given {
    Ok(Output::text(text_of(arguments, 0).to_uppercase()))
}

/// The text in small letters.
pub(super) fn lower(arguments: &[Argument]) -> Given {
    Ok(Output::text(text_of(arguments, 0).to_lowercase()))
}

/// The text without white space at its ends.
pub(super) fn trim(arguments: &[Argument]) -> Given {
    Ok(Output::text(text_of(arguments, 0).trim()))
}

/// The digest in 64 hex digits.
pub(super) fn sha256(arguments: &[Argument]) -> Given {
    Ok(Output::text(HEXLOWER.encode(&Sha256::digest(text_of(arguments, 0)))))
}

/// The text as base64, with its padding.
pub(super) fn base64_encode(arguments: &[Argument]) -> Given {
    Ok(Output::text(BASE64.encode(text_of(arguments, 0).as_bytes())))
}

/// What base64 stands for, in either alphabet, padded or not: text where it is UTF-8, else bytes.
pub(super) fn base64_decode(arguments: &[Argument]) -> Given {
    let plain = |byte: u8| match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    };
    let digits: Vec<u8> = text_of(arguments, 0).bytes().filter(|byte| !byte.is_ascii_whitespace()).map(plain).collect();
    let end = digits.iter().rposition(|digit| *digit != b'=').map_or(0, |last| last + 1);
    if digits.len() - end > 2 {
        return Err(bad_base64());
    }
    let bytes = BASE64_NOPAD.decode(&digits[..end]).map_err(|_| bad_base64())?;
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Output::text(text),
        Err(error) => {
            let bytes = error.into_bytes();
            Output { bytes, media_type: "application/octet-stream".into(), truncated: false }
        }
    })
}

fn bad_base64() -> Failure {
    Failure::new("fn:bad_base64", "the text is not base64")
}

/// The text with all but unreserved characters percent-encoded.
pub(super) fn url_encode(arguments: &[Argument]) -> Given {
    Ok(Output::text(utf8_percent_encode(text_of(arguments, 0), RESERVED).to_string()))
}

/// The first argument with `{{1}}`, `{{2}}`, … replaced by the ones that follow it. What is put in is not looked at
/// again, and braces around anything but a number stay.
pub(super) fn template(arguments: &[Argument]) -> Given {
    let (mut left, values) = (text_of(arguments, 0), arguments.get(1..).unwrap_or_default());
    let mut filled = String::with_capacity(left.len());
    while let Some((before, rest)) = left.split_once("{{") {
        filled.push_str(before);
        match slot(rest) {
            None => {
                // one brace, so that the number in `{{{1}}` is found
                filled.push('{');
                left = &left[before.len() + 1..];
            }
            Some((number, behind)) => {
                let value = number.checked_sub(1).and_then(|at| values.get(at)).ok_or_else(|| {
                    refused(format!("the text has {{{{{number}}}}}, and {} arguments follow it", values.len()))
                })?;
                filled.push_str(value.as_text());
                left = behind;
            }
        }
        if filled.len() > MAX_RESPONSE {
            return Err(too_large(MAX_RESPONSE));
        }
    }
    filled.push_str(left);
    Ok(Output::text(filled))
}

/// The number in front of `}}`, and what follows. Only a few characters are looked at: braces may be many.
fn slot(text: &str) -> Option<(usize, &str)> {
    let digits = text.bytes().take(5).take_while(u8::is_ascii_digit).count();
    let behind = text[digits..].strip_prefix("}}")?;
    text[..digits].parse().ok().map(|number| (number, behind))
}

/// The matches of a pattern in a text: whether there is one, the first with its groups (the whole match is group 0,
/// a group that took no part is null) and its named groups, and the texts of the first hundred.
pub(super) fn regex_match(arguments: &[Argument]) -> Given {
    let (pattern, text) = (compiled(text_of(arguments, 0))?, text_of(arguments, 1));
    let Some(first) = pattern.captures(text) else {
        return Ok(Output::json(r#"{"matched":false,"groups":[],"named":{},"matches":[]}"#));
    };
    let groups = first.iter().flatten().map(|group| group.len()).sum::<usize>();
    let matches: Vec<&str> = pattern.find_iter(text).take(MAX_MATCHES).map(|found| found.as_str()).collect();
    let named = named(&pattern, &first);
    if 2 * groups + matches.iter().map(|found| found.len()).sum::<usize>() > MAX_RESPONSE {
        return Err(too_large(MAX_RESPONSE));
    }
    let groups: Vec<Option<&str>> = first.iter().map(|group| group.map(|group| group.as_str())).collect();
    let value = json!({"matched": true, "groups": groups, "named": named, "matches": matches});
    Ok(Output::json(value.to_string()))
}

fn compiled(pattern: &str) -> Result<Regex, Failure> {
    if pattern.len() > MAX_PATTERN {
        return Err(refused(format!("a pattern is at most {MAX_PATTERN} bytes")));
    }
    RegexBuilder::new(pattern).size_limit(MAX_AUTOMATON).dfa_size_limit(2 * MAX_AUTOMATON).build().map_err(|error| {
        let mut why = String::new();
        let _ = write!(why, "{error}");
        Failure::new("fn:bad_pattern", why.lines().last().unwrap_or_default().trim_start_matches("error: "))
    })
}

fn named(pattern: &Regex, first: &Captures<'_>) -> Map<String, Value> {
    let names = pattern.capture_names().flatten();
    names.map(|name| (name.to_owned(), first.name(name).map(|group| group.as_str()).into())).collect()
}
