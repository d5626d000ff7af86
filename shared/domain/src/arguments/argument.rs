//! One argument: JSON with its exact text, or text that nobody has given a type.

use std::borrow::Cow;

use serde_json::value::RawValue;

use crate::json::{self, JsonKind, Problem};
use crate::schema::{ListStyle, PropertyType};

/// One argument of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    form: Form,
    list_style: ListStyle,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Form {
    /// Text of a row without a schema: it stands as a JSON value where it is JSON.
    Untyped(String),
    /// A string, by the caller's JSON and the row's schema.
    String(String),
    /// Any other JSON, as it was written.
    Json(String),
}

impl Argument {
    /// Text without a type, as a piece of pipe text is.
    pub fn untyped(text: impl Into<String>) -> Self {
        Form::Untyped(text.into()).into()
    }

    /// A string.
    pub fn string(text: impl Into<String>) -> Self {
        Form::String(text.into()).into()
    }

    /// JSON text, kept as it is written.
    ///
    /// # Errors
    /// Why the text is not taken as JSON.
    pub fn json(text: impl Into<String>) -> Result<Self, Problem> {
        let text = text.into();
        json::check(&text)?;
        Ok(Argument::checked(&text))
    }

    /// A part of a JSON text that was checked.
    pub(crate) fn raw(part: &RawValue) -> Self {
        Argument::checked(part.get())
    }

    fn checked(text: &str) -> Self {
        match json::kind(text) {
            JsonKind::String => Form::String(json::unescape(text.trim()).unwrap_or_else(|_| text.to_owned())).into(),
            JsonKind::Object | JsonKind::Array | JsonKind::Number | JsonKind::Boolean | JsonKind::Null => {
                Form::Json(text.to_owned()).into()
            }
        }
    }

    /// The exact JSON text; a string for text without a type.
    pub fn exact(&self) -> Cow<'_, str> {
        match &self.form {
            Form::Untyped(text) | Form::String(text) => Cow::Owned(json::quote(text)),
            Form::Json(text) => Cow::Borrowed(text),
        }
    }

    /// What stands in text: a string's content, the JSON text of anything else.
    pub fn as_text(&self) -> &str {
        match &self.form {
            Form::Untyped(text) | Form::String(text) | Form::Json(text) => text,
        }
    }

    /// What stands as a JSON value: text without a type stands as the JSON that it is, else as a string.
    ///
    /// # Errors
    /// Text without a type that is JSON and is not taken, such as an object with a name twice.
    pub fn value_text(&self) -> Result<Cow<'_, str>, Problem> {
        match &self.form {
            Form::Untyped(text) => match json::check(text) {
                Ok(()) => Ok(Cow::Borrowed(text.trim())),
                Err(Problem::NotJson) => Ok(self.exact()),
                Err(problem) => Err(problem),
            },
            Form::String(_) => Ok(self.exact()),
            Form::Json(text) => Ok(Cow::Borrowed(text.trim())),
        }
    }

    /// Whether it is text: a string, or text without a type.
    pub fn is_string(&self) -> bool {
        match self.form {
            Form::Untyped(_) | Form::String(_) => true,
            Form::Json(_) => false,
        }
    }

    /// Whether it is the JSON `null`.
    pub fn is_null(&self) -> bool {
        matches!(&self.form, Form::Json(text) if json::kind(text) == JsonKind::Null)
    }

    /// The items of a JSON list; nothing for anything else, text that looks like a list included.
    pub fn items(&self) -> Option<Vec<Argument>> {
        match &self.form {
            Form::Json(text) if json::kind(text) == JsonKind::Array => {
                json::list(text).ok().map(|items| items.iter().map(|item| Argument::raw(item)).collect())
            }
            Form::Json(_) | Form::Untyped(_) | Form::String(_) => None,
        }
    }

    /// How the row's schema wants a list written into a query or a form.
    pub fn list_style(&self) -> ListStyle {
        self.list_style
    }

    pub(super) fn styled(mut self, list_style: ListStyle) -> Self {
        self.list_style = list_style;
        self
    }

    /// A string of a row without a schema is text like any other.
    pub(super) fn loosened(self) -> Self {
        match self.form {
            Form::String(text) => Argument::untyped(text),
            Form::Untyped(_) | Form::Json(_) => self,
        }
    }

    /// Text without a type as the type that its property declares, where that is exact; else as a string, which the
    /// schema then answers. A property that declares nothing takes an object or a list as one.
    pub(super) fn coerced(self, types: &[PropertyType]) -> Self {
        let Form::Untyped(text) = self.form else { return self };
        let open = [PropertyType::Object, PropertyType::Array];
        let types = if types.is_empty() { &open } else { types };
        if types.contains(&PropertyType::String) || json::check(&text).is_err() {
            return Argument::string(text);
        }
        let kind = json::kind(&text);
        let is_exact = matches!(kind, JsonKind::Object | JsonKind::Array) || text.trim() == text;
        if is_exact && types.iter().any(|declared| declared.admits(kind)) {
            return Argument::checked(&text);
        }
        Argument::string(text)
    }
}

impl From<Form> for Argument {
    fn from(form: Form) -> Self {
        Argument { form, list_style: ListStyle::default() }
    }
}
