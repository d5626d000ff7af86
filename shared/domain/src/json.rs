//! JSON that keeps its text. Values pass from caller to upstream as they were written; what is refused here is
//! what two readers could understand differently: duplicate names, lone surrogates, nesting without end.

use std::collections::HashSet;
use std::fmt;

use serde::Deserialize;
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The deepest nesting that is taken.
pub const MAX_DEPTH: usize = crate::outcome::MAX_DEPTH;

/// Member names by which the JSON library passes numbers and raw text to itself.
const RESERVED: &str = "$serde_json::private::";

/// Why a text is not taken as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It is no JSON document, or not of the kind that was asked for.
    #[error("it is not JSON")]
    NotJson,
    /// It is JSON that nests deeper than the bound.
    #[error("it is nested too deeply")]
    TooDeep,
    /// An object, at any depth, has the same name twice.
    #[error("the name `{0}` stands twice in one object")]
    Duplicate(String),
    /// A string holds half of a surrogate pair, which is no text.
    #[error("a string holds a lone surrogate")]
    LoneSurrogate,
    /// A name that the JSON library keeps for itself.
    #[error("the name `{0}` is reserved")]
    Reserved(String),
}

impl Problem {
    /// The stable word for a fault's detail.
    pub fn rule(&self) -> &'static str {
        match self {
            Problem::NotJson => "not_json",
            Problem::TooDeep => "too_deep",
            Problem::Duplicate(_) => "duplicate_name",
            Problem::LoneSurrogate => "lone_surrogate",
            Problem::Reserved(_) => "reserved_name",
        }
    }
}

/// What a JSON document is, by its first character.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum JsonKind {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// A number.
    Number,
    /// `true` or `false`
    Boolean,
    /// `null`
    Null,
}

/// The kind of a text that is known to be JSON.
pub fn kind(text: &str) -> JsonKind {
    match text.trim_start().bytes().next() {
        Some(b'{') => JsonKind::Object,
        Some(b'[') => JsonKind::Array,
        Some(b'"') => JsonKind::String,
        Some(b't' | b'f') => JsonKind::Boolean,
        Some(b'n') => JsonKind::Null,
        Some(_) | None => JsonKind::Number,
    }
}

/// Whether the text is one JSON document that every reader understands alike.
///
/// # Errors
/// The first problem. Anything but [`Problem::NotJson`] means that it is JSON and is not taken.
pub fn check(text: &str) -> Result<(), Problem> {
    check_depth(text, MAX_DEPTH)
}

/// [`check`] with a bound of its own.
///
/// # Errors
/// As [`check`].
pub fn check_depth(text: &str, max_depth: usize) -> Result<(), Problem> {
    serde_json::from_str::<IgnoredAny>(text).map_err(|_| Problem::NotJson)?;
    let mut open: Vec<Option<HashSet<String>>> = Vec::new();
    let mut wants_name = false;
    let mut at = 0;
    let bytes = text.as_bytes();
    while at < bytes.len() {
        match bytes[at] {
            b'{' | b'[' => {
                wants_name = bytes[at] == b'{';
                open.push(wants_name.then(HashSet::new));
                if open.len() > max_depth {
                    return Err(Problem::TooDeep);
                }
            }
            b'}' | b']' => drop(open.pop()),
            b',' => wants_name = open.last().is_some_and(Option::is_some),
            b'"' => {
                let end = string_end(bytes, at);
                check_string(&text[at..end], if wants_name { open.last_mut() } else { None })?;
                wants_name = false;
                at = end - 1;
            }
            _ => {}
        }
        at += 1;
    }
    Ok(())
}

/// The position behind the string that starts at `at`, in text that is known to be JSON.
fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    (end + 1).min(bytes.len())
}

fn check_string(raw: &str, names: Option<&mut Option<HashSet<String>>>) -> Result<(), Problem> {
    let Some(Some(names)) = names else {
        return if raw.contains("\\u") { unescape(raw).map(drop) } else { Ok(()) };
    };
    let name = unescape(raw)?;
    if name.starts_with(RESERVED) {
        return Err(Problem::Reserved(name));
    }
    match names.replace(name) {
        None => Ok(()),
        Some(twice) => Err(Problem::Duplicate(twice)),
    }
}

/// The document as a value, for looking into. Rendering it back is not exact (`1e400` becomes `1e+400`): what travels
/// is the text.
///
/// # Errors
/// As [`check`].
pub fn value(text: &str) -> Result<Value, Problem> {
    check(text)?;
    serde_json::from_str(text).map_err(|_| Problem::NotJson)
}

/// An object's members in order, each with its exact text.
///
/// # Errors
/// As [`check`]; another kind of document is [`Problem::NotJson`].
pub fn object(text: &str) -> Result<Vec<(String, Box<RawValue>)>, Problem> {
    check(text)?;
    serde_json::from_str::<Members>(text).map(|members| members.0).map_err(|_| Problem::NotJson)
}

/// A list's items in order, each with its exact text.
///
/// # Errors
/// As [`check`]; another kind of document is [`Problem::NotJson`].
pub fn list(text: &str) -> Result<Vec<Box<RawValue>>, Problem> {
    check(text)?;
    serde_json::from_str(text).map_err(|_| Problem::NotJson)
}

struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

/// The content of a JSON string, quotes given.
///
/// # Errors
/// [`Problem::LoneSurrogate`] for half a pair, else [`Problem::NotJson`].
pub fn unescape(raw: &str) -> Result<String, Problem> {
    serde_json::from_str(raw).map_err(|_| match serde_json::from_str::<IgnoredAny>(raw) {
        Ok(_) if kind(raw) == JsonKind::String => Problem::LoneSurrogate,
        Ok(_) | Err(_) => Problem::NotJson,
    })
}

/// The text as a JSON string, with its quotes.
pub fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// The text as it stands between the quotes of a JSON string.
pub fn escape(text: &str) -> String {
    let quoted = quote(text);
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn members_keep_order_and_text() {
        let members = object(r#"{"b": 1.10, "a":9007199254740993,"c":[1e400, -0]}"#).unwrap();
        let shown: Vec<_> = members.iter().map(|(name, raw)| format!("{name}={}", raw.get())).collect();
        assert_eq!(shown, ["b=1.10", "a=9007199254740993", "c=[1e400, -0]"]);
        assert_eq!(list("[1e400,-0 ]").unwrap()[0].get(), "1e400");
    }

    #[test]
    fn what_two_readers_could_understand_differently_is_refused() {
        for (text, rule) in [
            (r#"{"a":1,"a":2}"#, "duplicate_name"),
            (r#"[{"x":{"a":1,"\u0061":2}}]"#, "duplicate_name"),
            (r#"{"a":"\ud800"}"#, "lone_surrogate"),
            (r#"{"\ude00":1}"#, "lone_surrogate"),
            (r#"{"$serde_json::private::Number":"1"}"#, "reserved_name"),
            ("{", "not_json"),
            ("{}{}", "not_json"),
            ("", "not_json"),
            ("NaN", "not_json"),
        ] {
            assert_eq!(check(text).unwrap_err().rule(), rule, "{text}");
        }
        assert_eq!(check(&("[".repeat(121) + &"]".repeat(121))), Err(Problem::TooDeep));
        assert_eq!(check(&("[".repeat(200_000) + &"]".repeat(200_000))), Err(Problem::TooDeep));
        assert_eq!(check(&("[".repeat(120) + &"]".repeat(120))), Ok(()));
        assert_eq!(check(r#"{"a":{"b":1},"b":["a","a",{"a":"\ud83d\ude00"}],"c":"{\"c\":1,\\"}"#), Ok(()));
    }

    proptest! {
        #[test]
        fn quoting_is_undone_by_unescaping(text in any::<String>()) {
            prop_assert_eq!(unescape(&quote(&text)).unwrap(), text);
        }

        #[test]
        fn nothing_panics_and_what_passes_is_a_value(text in r#"[\[\]{}",:\\ua0-9 dD8\u{e9}]{0,40}"#) {
            if check(&text).is_ok() {
                prop_assert!(serde_json::from_str::<Value>(&text).is_ok());
            }
            let _ = (object(&text), list(&text), unescape(&text), kind(&text));
        }
    }
}
