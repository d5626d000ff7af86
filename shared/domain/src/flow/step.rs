//! Reading one step.

use serde_json::value::RawValue;

use super::scan::{Cut, Span};
use super::slot::{Dollar, Scope, dollar};
use super::{Action, ArgTemplate, FlowError, ListArgument, MAX_FIELDS, Name, Step, StepArguments};
use crate::json;
use crate::key::Key;

/// The words before a `:` that are no keys.
const VERBS: &[&str] = &["JSON", "EACH", "MERGE"];

/// How a step's arguments are written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Cut at every pipe.
    Pipe,
    /// In a block or a condition, where pipes separate steps: one text, or a JSON list.
    List,
}

impl Step {
    pub(super) fn read(span: Span<'_>, form: Form, scope: &Scope<'_>) -> Result<Step, FlowError> {
        let span = span.trim();
        if span.is_empty() {
            return span.fail("a step is empty");
        }
        if span.text.starts_with('{') {
            return span.fail("a block cannot stand in a block or a condition");
        }
        if span.text.starts_with("?:") {
            return span.fail("a condition cannot stand in a block or a condition");
        }
        let (body, bind) = bind(span)?;
        let action = action(body, form, scope)?;
        Ok(Step { action, bind, text: span.text.to_owned() })
    }
}

/// Takes `=> NAME` off the end.
fn bind<'a>(span: Span<'a>) -> Result<(Span<'a>, Option<Name>), FlowError> {
    let pieces = span.split(Cut::Bind)?;
    match pieces.as_slice() {
        [body] => Ok((*body, None)),
        [body, name] => Ok((*body, Some(self::name(*name)?))),
        [_, _, rest @ ..] => {
            rest[0].trim().fail(format!("two `=>` in `{}`; put text that holds one in `\"…\"`", span.shown()))
        }
        [] => Ok((span, None)),
    }
}

/// Reads what follows `=>`.
pub(super) fn name(span: Span<'_>) -> Result<Name, FlowError> {
    let span = span.trim();
    match Name::parse(span.text) {
        Some(name) => Ok(name),
        None => {
            span.fail(format!("`=>` must be followed by a name of letters, digits and `_`, not `{}`", span.shown()))
        }
    }
}

fn action(span: Span<'_>, form: Form, scope: &Scope<'_>) -> Result<Action, FlowError> {
    let (word, rest) = head(span)?;
    match word.text {
        "JSON" => path(rest.trim(), scope),
        "MERGE" => merge(rest, scope),
        "EACH" => {
            if !scope.has_prev {
                return word.fail("`EACH` reads `$PREV`, and no step stands before it");
            }
            let (word, rest) = head(rest)?;
            Ok(Action::Each { key: key(word)?, arguments: arguments(rest, form, scope)? })
        }
        _ => Ok(Action::Call { key: key(word)?, arguments: arguments(rest, form, scope)? }),
    }
}

/// Cuts at the first `:`.
fn head<'a>(span: Span<'a>) -> Result<(Span<'a>, Span<'a>), FlowError> {
    match span.text.find(':') {
        Some(colon) => Ok((span.range(0, colon).trim(), span.from(colon + 1))),
        None => span.trim().fail(format!("no `:` after the key in `{}`", span.trim().shown())),
    }
}

fn key(span: Span<'_>) -> Result<Key, FlowError> {
    if VERBS.contains(&span.text) {
        return span.fail(format!("`{}` is a verb of flows and no row", span.text));
    }
    Key::parse(span.text).or_else(|fault| span.fail(fault.message()))
}

fn path(span: Span<'_>, scope: &Scope<'_>) -> Result<Action, FlowError> {
    if !scope.has_prev {
        return span.fail("`JSON` reads `$PREV`, and no step stands before it");
    }
    if !span.text.starts_with('$') {
        return span.fail(format!("the path `{}` does not start with `$`", span.shown()));
    }
    Ok(Action::Json(span.text.to_owned()))
}

fn merge(span: Span<'_>, scope: &Scope<'_>) -> Result<Action, FlowError> {
    let mut fields: Vec<(String, super::Slot)> = Vec::new();
    for field in span.split(Cut::Comma)? {
        if fields.len() == MAX_FIELDS {
            return field.fail(format!("`MERGE` makes more than {MAX_FIELDS} fields"));
        }
        let field = field.trim();
        let Some(equals) = field.text.find('=') else {
            return field.fail(format!("`{}` is not of the form `name=$SLOT`", field.shown()));
        };
        let name = field.range(0, equals).trim();
        let is_name = !name.is_empty() && name.text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
        if !is_name {
            return name.fail(format!("`{}` is no name of a field", name.shown()));
        }
        if fields.iter().any(|(other, _)| other == name.text) {
            return name.fail(format!("the field `{}` is there twice", name.text));
        }
        fields.push((name.text.to_owned(), scope.slot(field.from(equals + 1).trim())?));
    }
    Ok(Action::Merge(fields))
}

fn arguments(span: Span<'_>, form: Form, scope: &Scope<'_>) -> Result<StepArguments, FlowError> {
    let span = span.trim();
    if span.is_empty() {
        return Ok(StepArguments::Pipe(Vec::new()));
    }
    if form == Form::List && span.text.starts_with('[') && span.bracketed()? == span.text.len() {
        let Ok(list) = serde_json::from_str::<Vec<&RawValue>>(span.text) else {
            return span.fail("the arguments begin like a JSON list and are none; write slots as `\"$1\"`");
        };
        let list = list.into_iter().map(|element| list_argument(element, span, scope));
        return Ok(StepArguments::List(list.collect::<Result<_, _>>()?));
    }
    let pieces = span.split(Cut::Pipe)?;
    if form == Form::List && pieces.len() > 1 {
        return span.fail("here `|` separates steps; write several arguments as a JSON list");
    }
    let list = pieces.into_iter().map(|piece| ArgTemplate::read(piece, true, scope));
    Ok(StepArguments::Pipe(list.collect::<Result<_, _>>()?))
}

/// Reads one element of a JSON list. Its place is the list's where escapes have moved its characters.
fn list_argument(element: &RawValue, list: Span<'_>, scope: &Scope<'_>) -> Result<ListArgument, FlowError> {
    let json = element.get();
    let at = list.at + (json.as_ptr() as usize - list.text.as_ptr() as usize);
    let span = Span { text: json, at };
    if let Ok(text) = serde_json::from_str::<String>(json) {
        let template = ArgTemplate::read(Span { text: &text, at }, false, scope);
        return template.map(ListArgument::Text).or_else(|error| span.fail(error.message));
    }
    for (found, _) in json.match_indices('$') {
        if let Ok(Dollar::Slot(..)) = dollar(span.from(found)) {
            return span.from(found).fail("a slot can only stand in a string that is itself an element of the list");
        }
    }
    if let Err(problem) = json::check(json) {
        return span.fail(format!("an element of the list is not taken: {problem}"));
    }
    Ok(ListArgument::Json(json.to_owned()))
}
