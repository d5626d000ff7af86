//! The parts of a template text, and what stands in for a slot.

use std::borrow::Cow;

use super::scope::Scope;
use crate::arguments::{Argument, Bound, SlotUse};

/// A part of a template text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text as it goes out.
    Literal(String),
    /// A place for an argument.
    Slot(Slot),
}

/// A place for an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// `$N`: the argument at N, counted from 1 as the caller counts.
    Position(usize),
    /// `$N+`: the arguments from N on.
    Rest(usize),
    /// `${name}`: the argument of a name.
    Name(String),
    /// `${+name}`: the same, and in a path it may span segments.
    Spread(String),
    /// `$NAME`: public configuration, known when the template is compiled.
    Variable(String, Argument),
}

impl Slot {
    /// The slot as a caller knows it.
    pub fn label(&self) -> String {
        match self {
            Slot::Position(n) | Slot::Rest(n) => format!("${n}"),
            Slot::Name(name) | Slot::Spread(name) => name.clone(),
            Slot::Variable(name, _) => format!("${name}"),
        }
    }

    /// What stands in for it; nothing where an optional argument was not given.
    pub fn argument<'a>(&'a self, bound: &'a Bound) -> Option<Cow<'a, Argument>> {
        match self {
            Slot::Position(n) => bound.position(*n).map(Cow::Borrowed),
            Slot::Rest(n) => bound.rest(*n).map(Cow::Owned),
            Slot::Name(name) | Slot::Spread(name) => bound.name(name).map(Cow::Borrowed),
            Slot::Variable(_, value) => Some(Cow::Borrowed(value)),
        }
    }

    /// Whether it may span the segments of a path.
    pub fn spans(&self) -> bool {
        match self {
            Slot::Rest(_) | Slot::Spread(_) => true,
            Slot::Position(_) | Slot::Name(_) | Slot::Variable(..) => false,
        }
    }
}

/// What a template reads, from its slots.
pub(crate) fn slot_use<'a>(slots: impl IntoIterator<Item = &'a Slot>, scope: &Scope<'_>) -> SlotUse {
    let mut uses = SlotUse::default();
    for slot in slots {
        match slot {
            Slot::Position(n) => uses.highest = uses.highest.max(*n),
            Slot::Rest(n) => {
                uses.highest = uses.highest.max(*n);
                uses.rest_from = Some(uses.rest_from.map_or(*n, |lowest| lowest.min(*n)));
            }
            Slot::Name(name) => drop(uses.named.insert(name.clone())),
            Slot::Spread(name) => {
                if scope.names.last() == Some(name) {
                    uses.rest_from = uses.rest_from.or(Some(scope.names.len() + scope.shift));
                }
                uses.named.insert(name.clone());
            }
            Slot::Variable(..) => {}
        }
    }
    uses
}

/// The slots of pieces.
pub(crate) fn slots(pieces: &[Piece]) -> impl Iterator<Item = &Slot> {
    pieces.iter().filter_map(|piece| match piece {
        Piece::Slot(slot) => Some(slot),
        Piece::Literal(_) => None,
    })
}
