//! Templates: text with slots, compiled once and filled in one pass. What is inserted is escaped for the place where it
//! lands and is never read again; a template cannot reach a secret.

mod body;
mod json_tree;
mod list;
mod pair;
mod scope;
mod slot;
#[cfg(test)]
mod tests;
mod url;

use std::collections::BTreeMap;

use crate::fault::{Fault, Reason};

pub use body::{BodyTemplate, FilledBody};
pub use list::ListTemplate;
pub use slot::{Piece, Slot};

pub use url::UrlTemplate;

pub(crate) use scope::{Scope, shown};
pub(crate) use slot::slot_use;

/// Configuration that the operator declared public, by name. Templates may read it; they can read nothing else.
pub type PublicVariables = BTreeMap<String, String>;

/// The longest header value, in bytes.
pub const MAX_HEADER_VALUE: usize = 4 * 1024;

/// Why a template does not compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {why}")]
pub struct BadTemplate {
    /// Where: `host`, `path`, `query name`, `JSON key`, `body`, …
    pub place: String,
    /// What is wrong there.
    pub why: String,
    /// What to write instead, where that can be said.
    pub fix: Option<String>,
}

impl BadTemplate {
    /// A refusal with its place.
    pub fn new(place: impl Into<String>, why: impl Into<String>) -> Self {
        BadTemplate { place: place.into(), why: why.into(), fix: None }
    }

    /// Adds what to write instead.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Whether a text may be a header's value: visible ASCII and spaces, at most [`MAX_HEADER_VALUE`] bytes.
///
/// # Errors
/// The name of the rule that it breaks.
pub fn header_value(text: &str) -> Result<(), &'static str> {
    if text.len() > MAX_HEADER_VALUE {
        return Err("too_long");
    }
    match text.bytes().find(|byte| !(b' '..=b'~').contains(byte)) {
        None => Ok(()),
        Some(byte) if byte.is_ascii() => Err("control_character"),
        Some(_) => Err("not_ascii"),
    }
}

/// `argument_refused:<slot>:<rule>`.
pub(crate) fn refused(slot: &Slot, rule: &str, message: impl Into<String>) -> Fault {
    let label = slot.label();
    Fault::new(Reason::ArgumentRefused, message)
        .detail(format!("{label}:{rule}"))
        .with("argument", label)
        .with("rule", rule)
}
