//! Names that TypeScript takes.

use crate::docstring::each_once;

/// Words that cannot be a parameter's name in strict code.
const RESERVED: &[&str] = &[
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "undefined",
    "var",
    "void",
    "while",
    "with",
    "yield",
];

/// The start of the aliases of a key. No two keys share one: `.` is `$`, and `-` is `$$_`, which no two dots can give
/// because segments are never empty.
pub(super) fn alias(key: &str) -> String {
    key.replace('-', "$$_").replace('.', "$")
}

/// A property's name, quoted where it is no identifier.
pub(super) fn property(name: &str) -> String {
    if is_identifier(name) { name.to_owned() } else { quoted(name) }
}

/// A method's name: as a property, but a bare `new` would declare a constructor.
pub(super) fn method(name: &str) -> String {
    if name == "new" { quoted(name) } else { property(name) }
}

/// Parameters for positional arguments: identifiers, each once.
pub(super) fn parameters(names: &[String]) -> Vec<String> {
    let wanted = names.iter().enumerate().map(|(at, name)| parameter(name).unwrap_or_else(|| format!("arg{}", at + 1)));
    each_once(wanted)
}

fn parameter(name: &str) -> Option<String> {
    let plain = word(name);
    if plain.trim_matches('_').is_empty() {
        return None;
    }
    let needs_prefix = plain.starts_with(|c: char| c.is_ascii_digit()) || RESERVED.contains(&plain.as_str());
    Some(if needs_prefix { format!("_{plain}") } else { plain })
}

/// The name with `_` for every character that an identifier of ASCII does not have.
pub(super) fn word(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '_' }).collect()
}

fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_' || c == '$')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'$')
}

/// A string literal. Characters that a reader cannot see are escaped, so that the value stays and nothing hides.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if super::comment::is_hidden(c) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}
