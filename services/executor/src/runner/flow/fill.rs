//! The arguments of a step, filled once. What a slot inserts is never read again and never split.

use std::collections::HashMap;
use std::sync::Arc;

use callbook_domain::arguments::{Argument, Bound};
use callbook_domain::flow::{ArgTemplate, ListArgument, Name, Piece, Slot, StepArguments};
use callbook_domain::outcome::{Failure, Output};
use callbook_domain::template::PublicVariables;

use super::halt::Halt;
use super::value;

/// What slots are filled from.
#[derive(Clone)]
pub(super) struct Seen<'a> {
    /// The flow's own arguments.
    pub own: &'a Bound,
    /// The operator's public configuration.
    pub variables: &'a PublicVariables,
    /// `$PREV`.
    pub prev: Option<Arc<Output>>,
    /// `$NAME`.
    pub bound: HashMap<Name, Arc<Output>>,
}

impl<'a> Seen<'a> {
    /// What the first part sees.
    pub(super) fn new(own: &'a Bound, variables: &'a PublicVariables) -> Self {
        Seen { own, variables, prev: None, bound: HashMap::new() }
    }

    /// Lets later steps find what was given under a name.
    pub(super) fn bind(&mut self, name: Option<&Name>, given: &Arc<Output>) {
        if let Some(name) = name {
            self.bound.insert(name.clone(), given.clone());
        }
    }

    /// The output that the slot names; none for the slots of the flow's own arguments.
    pub(super) fn output(&self, slot: &Slot) -> Option<&Arc<Output>> {
        match slot {
            Slot::Prev => self.prev.as_ref(),
            Slot::Binding(name) => self.bound.get(name),
            Slot::Argument(_) | Slot::Rest(_) | Slot::Named(_) | Slot::Variable(_) => None,
        }
    }

    /// What fills the slot; nothing where the caller left an optional argument out.
    ///
    /// # Errors
    /// As [`value::argument`].
    pub(super) fn argument(&self, slot: &Slot) -> Result<Option<Argument>, Failure> {
        match slot {
            Slot::Argument(n) => Ok(self.own.position(*n).cloned()),
            Slot::Rest(n) => Ok(self.own.rest(*n)),
            Slot::Named(name) => Ok(self.own.name(name).cloned()),
            Slot::Variable(name) => Ok(self.variables.get(name.as_str()).map(Argument::untyped)),
            Slot::Prev | Slot::Binding(_) => self.output(slot).map(|output| value::argument(output)).transpose(),
        }
    }
}

/// Where each inserted byte is counted: refuses them where the flow has used up its own.
pub(super) type Count<'a> = &'a (dyn Fn(usize) -> Result<(), Halt> + Sync);

/// The arguments of a step. Optional arguments at the end that the caller left out are left out here too.
///
/// # Errors
/// `flow:bad_step` for one in the middle or within text; whatever `count` refuses.
pub(super) fn fill(arguments: &StepArguments, seen: &Seen<'_>, count: Count<'_>) -> Result<Vec<Argument>, Halt> {
    let filled: Vec<Option<Argument>> = match arguments {
        StepArguments::Pipe(list) => {
            list.iter().map(|piece| template(piece, Argument::untyped, seen, count)).collect::<Result<_, _>>()?
        }
        StepArguments::List(list) => {
            list.iter().map(|element| list_argument(element, seen, count)).collect::<Result<_, _>>()?
        }
    };
    let given = filled.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
    let absent = |at: usize| Failure::new("flow:bad_step", format!("its argument {} was not given", at + 1)).into();
    filled.into_iter().take(given).enumerate().map(|(at, argument)| argument.ok_or_else(|| absent(at))).collect()
}

fn list_argument(element: &ListArgument, seen: &Seen<'_>, count: Count<'_>) -> Result<Option<Argument>, Halt> {
    match element {
        ListArgument::Text(text) => template(text, Argument::string, seen, count),
        ListArgument::Json(text) => {
            count(text.len())?;
            let argument = Argument::json(text.as_str());
            Ok(Some(argument.map_err(|problem| Failure::new("flow:bad_step", format!("`{text}`: {problem}")))?))
        }
    }
}

/// A slot alone keeps the type of what fills it; anything else is text.
fn template(
    template: &ArgTemplate,
    text_of: fn(String) -> Argument,
    seen: &Seen<'_>,
    count: Count<'_>,
) -> Result<Option<Argument>, Halt> {
    if let [Piece::Slot(slot)] = template.pieces.as_slice() {
        let argument = seen.argument(slot)?;
        count(argument.as_ref().map_or(0, |argument| argument.as_text().len()))?;
        return Ok(argument);
    }
    let mut text = String::new();
    for piece in &template.pieces {
        match piece {
            Piece::Literal(literal) => text.push_str(literal),
            Piece::Slot(slot) => {
                let absent = || Failure::new("flow:bad_step", format!("`{slot}` was not given"));
                let argument = seen.argument(slot)?.ok_or_else(absent)?;
                count(argument.as_text().len())?;
                text.push_str(argument.as_text());
            }
        }
    }
    Ok(Some(text_of(text)))
}
