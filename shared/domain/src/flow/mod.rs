//! The text of a flow: a short program whose instructions are other rows.
//!
//! ```text
//! flow  := part ('>' part)*
//! part  := '{' step ('|' step)* '}' ['=>' NAME]     all at once; $PREV becomes the list of outputs
//!        | '?:' step '>' step ['|' step]            first succeeded → second, else third
//!        | step
//! step  := KEY ':' arguments ['=>' NAME]
//!        | 'JSON:' path | 'EACH:' KEY ':' arguments | 'MERGE:' a=$x, b=$y
//! ```
//!
//! Outside a block a step's arguments are pipe text; in a block or a condition, where `|` separates steps, several are
//! written as a JSON list. `>`, `|` and `=>` inside `[…]`, `{…}` or `"…"` are text.

mod parse;
mod scan;
mod slot;
mod step;

use std::fmt;

use crate::key::Key;

pub use slot::{ArgTemplate, Piece, Slot};

/// The longest flow, in bytes.
pub const MAX_FLOW: usize = 64 * 1024;
/// The most steps that a flow may write.
pub const MAX_STEPS: usize = 64;
/// The most steps of one block.
pub const MAX_FAN_OUT: usize = 16;
/// The most fields of one `MERGE`.
pub const MAX_FIELDS: usize = 64;
/// How deep brackets may nest in a step's arguments.
pub const MAX_NESTING: usize = 64;

/// A flow as its parts, in order. Printing it and reading it again gives the same flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// At least one.
    pub parts: Vec<Part>,
}

/// What stands between two `>`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "a flow has at most 64 steps, and a box would be in every reader's way")]
pub enum Part {
    /// Steps that run at once. One that fails fails the block.
    Block {
        /// One to [`MAX_FAN_OUT`].
        steps: Vec<Step>,
        /// The name of the list of outputs.
        bind: Option<Name>,
    },
    /// One of two steps, by whether the test succeeded. In both of them `$PREV` is what the test gave.
    Condition {
        /// The step whose outcome decides.
        test: Step,
        /// What runs where it succeeded.
        then: Step,
        /// What runs where it failed.
        otherwise: Option<Step>,
    },
    /// One step.
    Single(Step),
}

/// One call or one of the three verbs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// The name by which later steps find its output.
    pub bind: Option<Name>,
    /// The step as it was written, for messages and receipts.
    pub text: String,
}

/// What a step does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Calls a row.
    Call {
        /// The row.
        key: Key,
        /// What it is called with.
        arguments: StepArguments,
    },
    /// Takes what the JSONPath finds in `$PREV`.
    Json(String),
    /// Calls a row once for each element of `$PREV`; in its arguments `$PREV` is the element.
    Each {
        /// The row.
        key: Key,
        /// What it is called with.
        arguments: StepArguments,
    },
    /// Makes a JSON object of values.
    Merge(Vec<(String, Slot)>),
}

/// What a row is called with. No argument is split again once it is filled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepArguments {
    /// Pipe text, cut at its pipes; empty where nothing was written.
    Pipe(Vec<ArgTemplate>),
    /// A JSON list.
    List(Vec<ListArgument>),
}

/// One element of a JSON list of arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListArgument {
    /// A string, with slots.
    Text(ArgTemplate),
    /// Any other value, as JSON text; it holds no slot.
    Json(String),
}

/// A binding's name: a letter or `_`, then letters, digits and `_`; never `PREV`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name(String);

/// Why a text is no flow, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at byte {at})")]
pub struct FlowError {
    /// The place, in bytes from the start of the text.
    pub at: usize,
    /// What is wrong, with the part and the words that it is about.
    pub message: String,
}

/// Which of its own arguments a flow reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotUse {
    /// The highest `N` of any `$N` or `$N+`; 0 where there is none.
    pub highest: usize,
    /// The lowest `N` of any `$N+`.
    pub rest_from: Option<usize>,
    /// The names of all `${name}`, each once, in order.
    pub named: Vec<String>,
}

impl Flow {
    /// Every row that the flow calls, each once, in order.
    pub fn steps_keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        for key in self.steps().filter_map(Step::key) {
            if !keys.contains(key) {
                keys.push(key.clone());
            }
        }
        keys
    }

    /// Every step as it was written, in order.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.parts.iter().flat_map(Part::steps)
    }

    /// Which of its own arguments the flow reads.
    pub fn slot_use(&self) -> SlotUse {
        let mut found = SlotUse::default();
        for slot in self.steps().flat_map(Step::slots) {
            match slot {
                Slot::Argument(n) => found.highest = found.highest.max(*n),
                Slot::Rest(n) => {
                    found.highest = found.highest.max(*n);
                    found.rest_from = Some(found.rest_from.map_or(*n, |least| least.min(*n)));
                }
                Slot::Named(name) if !found.named.contains(name) => found.named.push(name.clone()),
                Slot::Named(_) | Slot::Prev | Slot::Binding(_) | Slot::Variable(_) => {}
            }
        }
        found
    }
}

impl Part {
    /// The part's steps, in the order in which they were written.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        let (many, one, two, three) = match self {
            Part::Block { steps, .. } => (steps.as_slice(), None, None, None),
            Part::Condition { test, then, otherwise } => (&[][..], Some(test), Some(then), otherwise.as_ref()),
            Part::Single(step) => (&[][..], Some(step), None, None),
        };
        many.iter().chain(one).chain(two).chain(three)
    }
}

impl Step {
    /// The row that it calls.
    pub fn key(&self) -> Option<&Key> {
        match &self.action {
            Action::Call { key, .. } | Action::Each { key, .. } => Some(key),
            Action::Json(_) | Action::Merge(_) => None,
        }
    }

    fn slots(&self) -> Vec<&Slot> {
        match &self.action {
            Action::Call { arguments, .. } | Action::Each { arguments, .. } => arguments.slots().collect(),
            Action::Merge(fields) => fields.iter().map(|(_, slot)| slot).collect(),
            Action::Json(_) => Vec::new(),
        }
    }
}

impl StepArguments {
    /// The slots, in order.
    pub fn slots(&self) -> Box<dyn Iterator<Item = &Slot> + '_> {
        match self {
            StepArguments::Pipe(list) => Box::new(list.iter().flat_map(ArgTemplate::slots)),
            StepArguments::List(list) => Box::new(list.iter().flat_map(|argument| match argument {
                ListArgument::Text(template) => template.slots().collect(),
                ListArgument::Json(_) => Vec::new(),
            })),
        }
    }
}

impl Name {
    /// Reads a name of at most 64 characters.
    pub fn parse(text: &str) -> Option<Name> {
        let starts_well = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let all = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        (starts_well && all && text.len() <= 64 && text != "PREV").then(|| Name(text.to_owned()))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, part) in self.parts.iter().enumerate() {
            if at > 0 {
                f.write_str("\n> ")?;
            }
            write!(f, "{part}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Part::Block { steps, bind } => {
                let texts: Vec<&str> = steps.iter().map(|step| step.text.as_str()).collect();
                write!(f, "{{ {} }}", texts.join(" | "))?;
                bind.as_ref().map_or(Ok(()), |name| write!(f, " => {}", name.0))
            }
            Part::Condition { test, then, otherwise } => {
                write!(f, "?: {} > {}", test.text, then.text)?;
                otherwise.as_ref().map_or(Ok(()), |step| write!(f, " | {}", step.text))
            }
            Part::Single(step) => f.write_str(&step.text),
        }
    }
}

#[cfg(test)]
mod tests;
