//! Why a step gave nothing, and where.

use callbook_domain::flow::{Action, Step};
use callbook_domain::outcome::Failure;

/// How much of a step's text a message repeats, in characters.
const SHOWN: usize = 80;
/// How long a message may get, in bytes: each flow around a failure adds its own step.
const MAX_MESSAGE: usize = 2 * 1024;

/// Why a step gave nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Halt {
    /// It failed. A condition may go on from here.
    Failed(Failure),
    /// The flow ends here, whatever stands around the step.
    Ended(Failure),
}

/// A step that cannot be made of its values failed like one that was called.
impl From<Failure> for Halt {
    fn from(failure: Failure) -> Self {
        Halt::Failed(failure)
    }
}

impl Halt {
    /// The failure, wherever it leads.
    pub(super) fn into_failure(self) -> Failure {
        match self {
            Halt::Failed(failure) | Halt::Ended(failure) => failure,
        }
    }

    /// The same at an element of a list, from 0.
    pub(super) fn at_element(self, at: usize) -> Self {
        self.with(|failure| Failure { at: Some(joined(&format!("[{at}]"), failure.at)), ..failure })
    }

    /// The same at a step of a part: its place leads with the step's row or verb, its message repeats the step.
    pub(super) fn at_step(self, step: &Step, part: usize) -> Self {
        let place = match &step.action {
            Action::Call { key, .. } | Action::Each { key, .. } => key.as_str(),
            Action::Json(_) => "JSON",
            Action::Merge(_) => "MERGE",
        };
        let mut shown: String = step.text.chars().take(SHOWN).collect();
        if shown.len() < step.text.len() {
            shown.push('…');
        }
        self.with(|failure| {
            let mut message = format!("part {part}, `{shown}`: {}", failure.message);
            message.truncate(message.floor_char_boundary(MAX_MESSAGE));
            Failure { at: Some(joined(place, failure.at)), message, ..failure }
        })
    }

    fn with(self, change: impl FnOnce(Failure) -> Failure) -> Self {
        match self {
            Halt::Failed(failure) => Halt::Failed(change(failure)),
            Halt::Ended(failure) => Halt::Ended(change(failure)),
        }
    }
}

/// `A > B`, or `A[3]` where what is inside is an element.
fn joined(place: &str, inside: Option<String>) -> String {
    match inside {
        None => place.to_owned(),
        Some(inside) if inside.starts_with('[') => format!("{place}{inside}"),
        Some(inside) => format!("{place} > {inside}"),
    }
}
