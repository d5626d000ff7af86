//! The name by which a row is called.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::fault::{Fault, Reason, Result};

/// The longest key, in bytes.
pub const MAX_KEY: usize = 128;

/// Member names that a key segment may not have, because generated JavaScript would reach something else by them.
const RESERVED: &[&str] = &[
    "__proto__",
    "constructor",
    "prototype",
    "then",
    "toString",
    "valueOf",
    "hasOwnProperty",
    "isPrototypeOf",
    "propertyIsEnumerable",
    "toLocaleString",
    "toJSON",
    "__defineGetter__",
    "__defineSetter__",
    "__lookupGetter__",
    "__lookupSetter__",
    "arguments",
    "caller",
    "apply",
    "bind",
    "call",
];

/// A row's unique invocation name: `[A-Za-z_][A-Za-z0-9_.-]{0,127}`, dots making namespaces, compared exactly.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Key(Arc<str>);

impl Key {
    /// Reads a key, or says which rule it breaks.
    pub fn parse(text: &str) -> Result<Key> {
        match refusal(text) {
            None => Ok(Key(text.into())),
            Some(why) => Err(Fault::new(Reason::InvalidRequest, format!("`{}` is no key: {why}", shown(text)))
                .fix("use a letter or `_`, then letters, digits, `_`, `-` and `.`, at most 128 characters")
                .with("field", "key")),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first dotted segment, or nothing where the key has no dot.
    pub fn namespace(&self) -> Option<&str> {
        self.0.split_once('.').map(|(first, _)| first)
    }

    /// Every namespace that the key stands in, outermost first: `a`, `a.b` for `a.b.c`.
    pub fn namespaces(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('.').map(|(at, _)| &self.0[..at])
    }

    /// Whether the key is `namespace` or stands below it.
    pub fn is_under(&self, namespace: &str) -> bool {
        self.0.strip_prefix(namespace).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    }

    /// Whether the key is left out of the registry because it is shaped like a test's (`spec/interface.md`).
    pub fn is_test_shaped(&self) -> bool {
        let text = self.as_str();
        text.starts_with("__")
            || matches!(text, "TEST_ROW" | "TEST_ALL" | "AUDIT_TEST_ROW")
            || text.contains("DUMMY")
            || text.contains("SCRATCH")
    }
}

fn refusal(text: &str) -> Option<&'static str> {
    let mut bytes = text.bytes();
    match bytes.next() {
        None => return Some("it is empty"),
        Some(first) if first.is_ascii_alphabetic() || first == b'_' => {}
        Some(_) => return Some("it must begin with a letter or `_`"),
    }
    if text.len() > MAX_KEY {
        return Some("it is longer than 128 characters");
    }
    if !bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-')) {
        return Some("it holds a character other than letters, digits, `_`, `-` and `.`");
    }
    if text.split('.').any(str::is_empty) {
        return Some("it has an empty segment");
    }
    if text.split('.').any(|segment| RESERVED.contains(&segment)) {
        return Some("a segment is a name that JavaScript reserves");
    }
    None
}

/// A hostile key cut to what an answer may repeat.
fn shown(text: &str) -> String {
    text.chars().take(64).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::borrow::Borrow<str> for Key {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Key {
    type Error = Fault;
    fn try_from(text: String) -> Result<Key> {
        Key::parse(&text)
    }
}

impl From<Key> for String {
    fn from(key: Key) -> String {
        key.0.as_ref().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_by_the_rule() {
        for good in ["NOW", "_a", "github.issues.create", "A-b_c.9", &"a".repeat(128)] {
            assert_eq!(Key::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", "9a", ".a", "a.", "a..b", "a b", "é", "a.constructor", "__proto__", "a\0", &"a".repeat(129)] {
            assert_eq!(Key::parse(bad).unwrap_err().reason(), Reason::InvalidRequest, "{bad:?}");
        }
    }

    #[test]
    fn a_namespace_holds_the_keys_below_it_and_no_neighbour() {
        let key = Key::parse("apps.bazaar.windows.open").unwrap();
        assert!(key.is_under("apps.bazaar") && key.is_under("apps"));
        assert!(!key.is_under("apps.baz"));
        assert_eq!(key.namespaces().collect::<Vec<_>>(), ["apps", "apps.bazaar", "apps.bazaar.windows"]);
    }
}
