//! The words of a refusal: which rule, where, and what was expected. Never the value.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Broken};

use crate::fault::{Fault, Reason};

/// The longest text of a schema or pointer that a refusal repeats, in characters.
const MAX_SHOWN: usize = 200;

/// Why a schema is not valid, with the place in it.
pub(super) fn of_schema(error: &ValidationError<'_>) -> String {
    let place = error.instance_path().to_string();
    let place = if place.is_empty() { "its root".to_owned() } else { format!("`{}`", cut(&place)) };
    format!("the schema is not valid at {place}: {}", cut(&error.masked().to_string()))
}

/// The fault for a value that a schema refuses.
pub(super) fn of_value(error: &ValidationError<'_>) -> Fault {
    let pointer = cut(&error.instance_path().to_string());
    let keyword = error.kind().keyword().to_owned();
    let expected = cut(&expected(error));
    let place = if pointer.is_empty() { "the argument set".to_owned() } else { format!("`{pointer}`") };
    let message = match error.kind() {
        Broken::Required { .. } => format!("{place} lacks {expected}"),
        Broken::AdditionalProperties { unexpected } | Broken::UnevaluatedProperties { unexpected } => {
            format!("{place} has {} that the row does not take", named(unexpected))
        }
        _ => format!("{place} must be {expected}"),
    };
    Fault::new(Reason::ArgsInvalid, message)
        .detail(format!("{pointer}:{keyword}"))
        .with("pointer", pointer)
        .with("keyword", keyword)
        .with("expected", expected)
}

/// What the rule asks for, as the end of "must be …".
fn expected(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Broken::Type { kind: TypeKind::Single(one) } => format!("of type {one}"),
        Broken::Type { kind: TypeKind::Multiple(many) } => {
            let words: Vec<String> = many.into_iter().map(|one| one.to_string()).collect();
            format!("of type {}", words.join(" or "))
        }
        Broken::Required { property } => format!("the property `{}`", property.as_str().unwrap_or_default()),
        Broken::AdditionalProperties { unexpected } | Broken::UnevaluatedProperties { unexpected } => {
            format!("without {}", named(unexpected))
        }
        Broken::Enum { options } => format!("one of {options}"),
        Broken::Constant { expected_value } => expected_value.to_string(),
        Broken::Minimum { limit } => format!("at least {limit}"),
        Broken::Maximum { limit } => format!("at most {limit}"),
        Broken::ExclusiveMinimum { limit } => format!("more than {limit}"),
        Broken::ExclusiveMaximum { limit } => format!("less than {limit}"),
        Broken::MultipleOf { multiple_of } => format!("a multiple of {multiple_of}"),
        Broken::MinLength { limit } => format!("at least {limit} characters long"),
        Broken::MaxLength { limit } => format!("at most {limit} characters long"),
        Broken::MinItems { limit } => format!("a list of at least {limit} items"),
        Broken::MaxItems { limit } => format!("a list of at most {limit} items"),
        Broken::MinProperties { limit } => format!("an object of at least {limit} properties"),
        Broken::MaxProperties { limit } => format!("an object of at most {limit} properties"),
        Broken::Pattern { pattern } => format!("text that matches `{pattern}`"),
        Broken::BacktrackLimitExceeded { .. } => "text that its pattern can be tried on in bounded time".to_owned(),
        Broken::Format { format } => format!("of the format `{format}`"),
        Broken::UniqueItems => "a list without repeated items".to_owned(),
        Broken::AnyOf { .. } => "valid under one of the schemas in `anyOf`".to_owned(),
        Broken::OneOfNotValid { .. } | Broken::OneOfMultipleValid { .. } => {
            "valid under exactly one of the schemas in `oneOf`".to_owned()
        }
        Broken::FalseSchema => "left out".to_owned(),
        other => format!("valid by the keyword `{}`", other.keyword()),
    }
}

fn named(names: &[String]) -> String {
    let shown: Vec<String> = names.iter().take(5).map(|name| format!("`{}`", cut(name))).collect();
    let more = if names.len() > 5 { ", …" } else { "" };
    let word = if names.len() == 1 { "the property" } else { "the properties" };
    format!("{word} {}{more}", shown.join(", "))
}

fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(MAX_SHOWN).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    if text.chars().nth(MAX_SHOWN).is_some() {
        shown.push('…');
    }
    shown
}
