//! The arguments of a built-in function: a JSON list with slots.

use super::json_tree::{self, Node};
use super::scope::Scope;
use super::slot::{Slot, slot_use};
use super::{BadTemplate, PublicVariables};
use crate::arguments::{Argument, Bound, SlotUse, missing};
use crate::fault::{Fault, Reason, Result};

/// A JSON list with slots. Without a template it is `["$1"]`, and gives nothing where nothing was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListTemplate {
    items: Vec<Node>,
    uses: SlotUse,
}

impl ListTemplate {
    /// Reads the list. `names` are the row's argument names by position.
    ///
    /// # Errors
    /// Text that is not JSON with slots, or not a list; a slot that nothing can fill.
    pub fn compile(text: &str, names: &[String], variables: &PublicVariables) -> Result<Self, BadTemplate> {
        let text = text.trim();
        if text.is_empty() {
            let uses = SlotUse { highest: 1, optional: true, ..SlotUse::default() };
            return Ok(ListTemplate { items: vec![Node::Value(Slot::Position(1))], uses });
        }
        let fix = "write a JSON list of the function's arguments, as in `[\"$1\", \"$2+\"]`";
        let scope = Scope::new(names, variables);
        let node = json_tree::compile(text, &scope).map_err(|bad| match bad.fix {
            Some(_) => bad,
            None => bad.fix(fix),
        })?;
        let Node::Array(items) = node else {
            return Err(BadTemplate::new("body", "the template is not a list").fix(fix));
        };
        let mut slots = Vec::new();
        items.iter().for_each(|item| item.slots(&mut slots));
        let uses = slot_use(slots, &scope);
        Ok(ListTemplate { items, uses })
    }

    /// The function's arguments. Optional arguments at the end that were not given are left out.
    ///
    /// # Errors
    /// `missing_argument` for one in the middle, `argument_refused` for text that is JSON and is not taken.
    pub fn fill(&self, bound: &Bound) -> Result<Vec<Argument>> {
        let given = self.items.iter().rposition(|item| !item.is_absent(bound)).map_or(0, |last| last + 1);
        self.items[..given].iter().map(|item| fill_item(item, bound)).collect()
    }

    /// What the list reads.
    pub fn slot_use(&self) -> SlotUse {
        self.uses.clone()
    }
}

fn fill_item(item: &Node, bound: &Bound) -> Result<Argument> {
    if let Node::Value(slot) = item {
        return slot.argument(bound).map(|argument| argument.into_owned()).ok_or_else(|| missing(&slot.label(), None));
    }
    let mut text = String::new();
    item.write(bound, &mut text)?;
    Argument::json(text).map_err(|problem| {
        Fault::new(Reason::ArgumentRefused, format!("the arguments are not taken: {problem}"))
            .detail(format!("content:{}", problem.rule()))
    })
}
