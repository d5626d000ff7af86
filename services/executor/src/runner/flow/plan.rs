//! What the steps of a flow would do, as far as that is known before any of them ran.

use std::sync::Arc;

use callbook_domain::arguments::{Argument, Sent};
use callbook_domain::caller::Caller;
use callbook_domain::compile::Plan;
use callbook_domain::fault::{Reason, Result};
use callbook_domain::flow::{Action, ListArgument, Step, StepArguments};
use callbook_domain::invocation::InvocationId;
use callbook_domain::json;
use callbook_domain::key::Key;
use serde_json::{Map, Value, json};

use super::fill::{Seen, fill};
use super::halt::Halt;
use crate::App;
use crate::admit::{callable, check_pool, work};
use crate::call::Call;
use crate::shape::{Shaped, render};
use crate::tree::{Authority, Place, Tree};

/// Every step in the order in which it is written: its text, its row with effect and risk, its arguments, and, where
/// these are known, what its call would do. An argument that a step before it gives stands as `{"later": "$PREV"}`.
/// Steps of steps are shown as far as one call may grow.
///
/// Nothing for a row that is no flow.
pub fn plan(app: &App, call: &Call) -> Option<Value> {
    let flow = match call.entry.compiled.as_ref().map(|compiled| &compiled.plan) {
        Ok(Plan::Flow(flow)) => flow,
        Ok(Plan::Http(_) | Plan::Fn(_) | Plan::Agent(_) | Plan::Block) | Err(_) => return None,
    };
    let tree = match &call.place {
        Some(place) => place.tree.clone(),
        None => Tree::new(InvocationId::new(app.clock.now())),
    };
    let parts = flow.parts.iter().enumerate();
    let steps = parts.flat_map(|(at, part)| part.steps().map(move |step| (at + 1, step)));
    let steps: Vec<Value> = steps.map(|(part, step)| shown(app, call, &tree, part, step)).collect();
    Some(json!({ "steps": steps }))
}

fn shown(app: &App, call: &Call, tree: &Arc<Tree>, part: usize, step: &Step) -> Value {
    let mut fields = Map::new();
    fields.insert("part".to_owned(), part.into());
    fields.insert("step".to_owned(), step.text.as_str().into());
    if let Action::Call { key, arguments } | Action::Each { key, arguments } = &step.action {
        let filled = filled(app, call, arguments);
        fields.insert("key".to_owned(), key.as_str().into());
        fields.insert("arguments".to_owned(), arguments_of(arguments, filled.as_ref()));
        match callable(&call.book, &Caller::Owner, key.as_str()) {
            // what a step would send is told to those who see its row
            Ok((entry, _)) if call.caller.sees(entry.key()) => {
                let row = &entry.row;
                fields.insert("type".to_owned(), row.definition.row_type.as_str().into());
                fields.insert("effect".to_owned(), row.effect.as_str().into());
                fields.insert("risk".to_owned(), row.risk.as_str().into());
                fields.insert("contract_hash".to_owned(), row.contract_hash.as_str().into());
                fields.extend(filled.map(|filled| outlook(app, call, tree, key, filled)).into_iter().flatten());
            }
            Ok(_) => {}
            Err(fault) => drop(fields.insert("verdict".to_owned(), fault.error_text().into())),
        }
    }
    Value::Object(fields)
}

/// The step's arguments, where the call alone gives all of them.
fn filled(app: &App, call: &Call, arguments: &StepArguments) -> Option<Result<Vec<Argument>, Halt>> {
    if arguments.slots().any(|slot| slot.is_of_a_step()) {
        return None;
    }
    let seen = Seen::new(&call.bound, &app.directory.rules().variables);
    Some(fill(arguments, &seen, &|_| Ok(())))
}

fn arguments_of(written: &StepArguments, filled: Option<&Result<Vec<Argument>, Halt>>) -> Value {
    let exact = |text: &str| json::value(text).unwrap_or_else(|_| text.into());
    if let Some(Ok(known)) = filled {
        return known.iter().map(|argument| exact(&argument.exact())).collect();
    }
    let later = |text: String| json!({ "later": text });
    match written {
        StepArguments::Pipe(list) => list.iter().map(|template| later(template.to_string())).collect(),
        StepArguments::List(list) => list
            .iter()
            .map(|element| match element {
                ListArgument::Text(template) => later(template.to_string()),
                ListArgument::Json(text) => exact(text),
            })
            .collect(),
    }
}

/// What the step's call would do, or why it would not.
fn outlook(
    app: &App,
    call: &Call,
    tree: &Arc<Tree>,
    key: &Key,
    filled: Result<Vec<Argument>, Halt>,
) -> Map<String, Value> {
    let made = match filled {
        Ok(arguments) => made(app, call, tree, key, arguments),
        Err(halt) => return [("verdict".to_owned(), halt.into_failure().code.into())].into_iter().collect(),
    };
    match made {
        Ok(shaped) => fields_of(shaped),
        // further down than a call may reach
        Err(fault) if fault.reason() == Reason::BudgetExhausted => Map::new(),
        Err(fault) => [("verdict".to_owned(), fault.error_text().into())].into_iter().collect(),
    }
}

fn made(app: &App, call: &Call, tree: &Arc<Tree>, key: &Key, arguments: Vec<Argument>) -> Result<Shaped> {
    let depth = call.place.as_ref().map_or(0, |place| place.depth);
    let place: Place = tree.grow(tree.root, depth, Authority::Written, call.book.clone())?;
    let (entry, compiled) = callable(&call.book, &Caller::Owner, key.as_str())?;
    let bound = compiled.signature.bind(&Sent::List(arguments))?;
    let work = work(compiled, &bound)?;
    check_pool(app, &entry, true)?;
    let (caller, book) = (call.caller.clone(), call.book.clone());
    render(app, &Call { caller, entry: entry.clone(), bound, work, place: Some(place), book })
}

fn fields_of(shaped: Shaped) -> Map<String, Value> {
    let mut fields = Map::new();
    fields.insert("verdict".to_owned(), shaped.verdict.into());
    if let Some(plan) = shaped.plan {
        fields.insert("plan".to_owned(), plan);
    }
    if !shaped.method.is_empty() {
        fields.insert("method".to_owned(), shaped.method.into());
        fields.insert("url".to_owned(), shaped.url.into());
        fields.extend(shaped.body.map(|body| ("body".to_owned(), String::from_utf8_lossy(&body).into())));
    }
    if !shaped.secret_name.is_empty() {
        fields.insert("secret".to_owned(), shaped.secret_name.into());
    }
    fields
}
