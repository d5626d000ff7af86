//! What a call brings, and how it becomes the arguments that a template is filled with.

mod argument;
mod bound;
mod pipe;
mod signature;
#[cfg(test)]
mod tests;

use serde_json::value::RawValue;

use crate::fault::{Fault, Reason, Result};

pub use argument::Argument;
pub use bound::Bound;
pub use signature::{Signature, SlotUse, argument_names};

pub(crate) use signature::{extra, missing};

/// What the caller sent: text, or a JSON object or list. Never both.
#[derive(Clone, Debug)]
pub enum Sent {
    /// No arguments.
    Nothing,
    /// Pipe text, or text that is one JSON object or list.
    Body(String),
    /// A JSON object or list with its exact text.
    Args(Box<RawValue>),
    /// Arguments in their order, as a flow has filled them; no surface takes them. Nothing is split again.
    List(Vec<Argument>),
}

impl Sent {
    /// Arguments in order as the text of one JSON list.
    pub fn list_text(arguments: &[Argument]) -> String {
        let items: Vec<_> = arguments.iter().map(Argument::exact).collect();
        format!("[{}]", items.join(","))
    }

    /// How many bytes the caller sent: of `args` as JSON text, of `body` as text.
    pub fn bytes(&self) -> usize {
        match self {
            Sent::Nothing => 0,
            Sent::Body(body) => body.len(),
            Sent::Args(raw) => raw.get().len(),
            Sent::List(arguments) => Sent::list_text(arguments).len(),
        }
    }

    /// What a request's two fields say.
    ///
    /// # Errors
    /// `invalid_request` where both are given, or where `args` is neither an object nor a list.
    pub fn new(body: Option<String>, args: Option<Box<RawValue>>) -> Result<Sent> {
        match (body, args) {
            (Some(_), Some(_)) => Err(Fault::new(Reason::InvalidRequest, "`body` and `args` are given, never both")
                .fix("send the arguments as `args`, and no `body`")
                .with("field", "args")),
            (None, None) => Ok(Sent::Nothing),
            (Some(body), None) if body.is_empty() => Ok(Sent::Nothing),
            (Some(body), None) => Ok(Sent::Body(body)),
            (None, Some(args)) if args.get() == "null" => Ok(Sent::Nothing),
            (None, Some(args)) if args.get().starts_with(['{', '[']) => Ok(Sent::Args(args)),
            (None, Some(_)) => Err(Fault::new(Reason::InvalidRequest, "`args` must be a JSON object or list")
                .fix("name the arguments in an object, or give them in order in a list")
                .with("field", "args")),
        }
    }
}
