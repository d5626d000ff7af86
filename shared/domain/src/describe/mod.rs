//! Rows as TypeScript, for a model that writes code: Forage's Describe (`spec/resolver.md`).
//!
//! The text declares a nested `env` with one async function a row, compiles under `tsc --strict`, and depends on
//! nothing but the rows. It is bounded and never cut: what does not fit is refused whole.

mod comment;
mod name;
mod schema;
mod types;

pub(crate) use comment::is_hidden;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::docstring::{ArgsDoc, Docstring};
use crate::key::Key;

/// The longest description, in bytes.
pub const MAX_DESCRIPTION: usize = 16 * 1024;

/// What a description is made of, for one row.
#[derive(Clone, Copy, Debug)]
pub struct Described<'a> {
    /// The row's key.
    pub key: &'a Key,
    /// What its writer says about it.
    pub docstring: &'a Docstring,
    /// The schema of its arguments; absent on positional rows.
    pub input_schema: Option<&'a Value>,
    /// The schema of its output.
    pub output_schema: Option<&'a Value>,
    /// The names of its positional arguments, in order; unused where there is an input schema.
    pub argument_names: &'a [String],
    /// Somebody else wrote the text, so it is marked as data.
    pub third_party: bool,
}

/// The rows have no description of [`MAX_DESCRIPTION`] bytes or fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the description of {rows} row(s) is longer than {MAX_DESCRIPTION} bytes; list them, then describe one or a selection"
)]
pub struct TooLarge {
    /// How many rows were asked for.
    pub rows: usize,
}

/// The TypeScript of the rows, in any order and each key once.
///
/// A row that does not fit alone is described without the comments of its properties: whoever describes a single row
/// gets its input schema too, which holds them.
///
/// # Errors
/// Where the text would be longer than [`MAX_DESCRIPTION`].
pub fn describe(rows: &[Described<'_>]) -> Result<String, TooLarge> {
    match (rows, text(rows, true)) {
        (_, Some(text)) => Ok(text),
        ([_], None) => text(rows, false).ok_or(TooLarge { rows: 1 }),
        (_, None) => Err(TooLarge { rows: rows.len() }),
    }
}

/// Nothing as soon as it is longer than the bound.
fn text(rows: &[Described<'_>], with_comments: bool) -> Option<String> {
    let rows: BTreeMap<&str, &Described<'_>> = rows.iter().map(|row| (row.key.as_str(), row)).collect();
    let mut types = String::new();
    let mut env = Namespace::default();
    let mut bytes = 0;
    for row in rows.into_values() {
        let before = types.len();
        let call = Call::of(row, with_comments, &mut types);
        bytes += types.len() - before + call.comment.len() + call.signature.len();
        if bytes > MAX_DESCRIPTION {
            return None;
        }
        let place = row.key.as_str().split('.').fold(&mut env, |space, part| space.inner.entry(part).or_default());
        place.call = Some(call);
    }
    if !types.is_empty() {
        types.push('\n');
    }
    let text = format!("{types}declare const env: {};\n", env.members());
    (text.len() <= MAX_DESCRIPTION).then_some(text)
}

/// A row's function, without its name.
struct Call {
    comment: String,
    signature: String,
}

impl Call {
    /// Also writes the aliases of its types.
    fn of(row: &Described<'_>, with_comments: bool, types: &mut String) -> Call {
        let alias = name::alias(row.key.as_str());
        let mut declare = |schema: &Value, suffix: &str| {
            let name = format!("{alias}_{suffix}");
            for (name, body) in schema::aliases(schema, &name, with_comments) {
                let _ = writeln!(types, "type {name} = {body};");
            }
            name
        };
        let mut positional = Vec::new();
        let parameters = match row.input_schema {
            Some(schema) => {
                let mark = if schema::may_be_absent(schema) { "?" } else { "" };
                format!("input{mark}: {}", declare(schema, "Input"))
            }
            None if row.argument_names.is_empty() && row.docstring.args != ArgsDoc::None => {
                "...args: string[]".to_owned()
            }
            None => {
                positional = name::parameters(row.argument_names);
                positional.iter().map(|name| format!("{name}: string")).collect::<Vec<_>>().join(", ")
            }
        };
        let output = row.output_schema.map_or_else(|| "unknown".to_owned(), |schema| declare(schema, "Output"));
        Call { comment: comment::of_row(row, &positional), signature: format!("({parameters}): Promise<{output}>;") }
    }
}

/// A node of `env`: a function, what stands below it, or, in old books, both.
#[derive(Default)]
struct Namespace<'a> {
    call: Option<Call>,
    inner: BTreeMap<&'a str, Namespace<'a>>,
}

impl Namespace<'_> {
    fn members(&self) -> String {
        let mut lines = String::new();
        // A key that is also another key's namespace becomes an object that can be called.
        if let Some(call) = &self.call {
            let _ = writeln!(lines, "{}{}", call.comment, call.signature);
        }
        for (part, space) in &self.inner {
            let _ = match &space.call {
                Some(call) if space.inner.is_empty() => {
                    writeln!(lines, "{}{}{}", call.comment, name::method(part), call.signature)
                }
                Some(_) | None => writeln!(lines, "{}: {};", name::property(part), space.members()),
            };
        }
        format!("{{\n{}}}", indented(&lines))
    }
}

/// Every line two spaces further in. No literal holds a line break, so no value changes.
fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("  {line}\n")).collect()
}

#[cfg(test)]
mod tests;
