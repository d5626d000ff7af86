//! What a row is called with, and the binding of a call to it.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use super::argument::Argument;
use super::bound::Bound;
use super::{Sent, pipe};
use crate::fault::{Fault, Reason, Result};
use crate::json::{self, Problem};
use crate::schema::Schema;

/// How many warnings about unknown names one call gets.
const MAX_WARNINGS: usize = 20;

/// Which arguments a row's template reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotUse {
    /// The highest `N` of any `$N` or `$N+`; 0 where there is none.
    pub highest: usize,
    /// The lowest `N` of any `$N+`: the last argument takes the rest of pipe text.
    pub rest_from: Option<usize>,
    /// The names of all `${name}`.
    pub named: BTreeSet<String>,
    /// The template does without: no argument has to be given. A row without a template passes what it is given, and
    /// a map of operations knows only later what its operation needs.
    pub optional: bool,
}

impl SlotUse {
    /// Both uses together.
    pub fn merge(mut self, other: SlotUse) -> SlotUse {
        self.highest = self.highest.max(other.highest);
        self.rest_from = self.rest_from.into_iter().chain(other.rest_from).min();
        self.named.extend(other.named);
        self.optional |= other.optional;
        self
    }

    /// Refuses a set that lacks an argument which the template reads.
    ///
    /// # Errors
    /// `missing_argument:$N`, or the name where the caller spoke in names.
    pub fn require(&self, bound: &Bound, names: &[String], by_name: bool) -> Result<()> {
        for n in 1..=self.highest {
            if bound.position(n).is_none() {
                let slot = format!("${n}");
                let name = names.get(n - 1).filter(|_| by_name);
                return Err(missing(name.unwrap_or(&slot), names.get(n - 1).map(String::as_str)));
            }
        }
        match self.named.iter().find(|name| bound.name(name).is_none()) {
            Some(name) => Err(missing(name, Some(name))),
            None => Ok(()),
        }
    }
}

/// What a row is called with.
#[derive(Clone, Debug, Default)]
pub struct Signature {
    /// The names by position, as [`argument_names`] gives them; fewer than the positions where the row names none.
    pub names: Vec<String>,
    /// What the template reads.
    pub uses: SlotUse,
    /// The schema of the argument set.
    pub schema: Option<Arc<Schema>>,
}

/// The names of a row's positions: `x-arg-order`, else the labels of `ARGS`, else the order of the schema's properties.
/// Properties that the chosen order leaves out follow it, so that each has a position. Labels that the schema does not
/// know, where it knows others, are words for readers and name nothing.
pub fn argument_names(schema: Option<&Schema>, labels: &[String]) -> Vec<String> {
    let Some(schema) = schema else { return labels.to_vec() };
    let properties = schema.properties();
    let fit = properties.is_empty() || labels.iter().all(|label| properties.contains(label));
    let mut names = match schema.arg_order() {
        Some(order) => order.to_vec(),
        None if fit => labels.to_vec(),
        None => Vec::new(),
    };
    for property in properties {
        if !names.contains(property) {
            names.push(property.clone());
        }
    }
    names
}

impl Signature {
    /// Puts what the caller sent into the row's places and checks the whole set.
    ///
    /// # Errors
    /// `args_invalid:<pointer>:<keyword>`, `missing_argument:<slot>`, `extra_arguments:expected N, got M`, or
    /// `argument_refused:body:<rule>` for JSON that two readers could understand differently.
    pub fn bind(&self, sent: &Sent) -> Result<Bound> {
        match sent {
            Sent::Nothing => self.bind_list(Vec::new()),
            Sent::List(arguments) => self.bind_list(arguments.clone()),
            Sent::Args(raw) => self.bind_json(raw.get(), true),
            Sent::Body(text) => {
                let looks_like_json = text.trim_start().starts_with(['{', '[']);
                match json::check(text) {
                    Ok(()) if looks_like_json => self.bind_json(text, false),
                    Err(problem) if looks_like_json && problem != Problem::NotJson => Err(unreadable("body", &problem)),
                    Ok(()) | Err(_) => self.bind_list(self.split(text)),
                }
            }
        }
    }

    /// Binds arguments that are already apart, as the steps of a flow bring them; nothing is split again. What is more
    /// than the row's places joins the last, where that takes the rest.
    ///
    /// # Errors
    /// As [`Signature::bind`].
    pub fn bind_list(&self, mut arguments: Vec<Argument>) -> Result<Bound> {
        let places = self.places();
        if self.uses.rest_from.is_some() && places > 0 && arguments.len() > places {
            let rest = pipe::join(arguments[places - 1..].iter().map(Argument::as_text));
            arguments.truncate(places - 1);
            arguments.push(Argument::untyped(rest));
        }
        if arguments.len() > places {
            return Err(extra(places, arguments.len()));
        }
        match &self.schema {
            Some(schema) => {
                let names = self.names.iter().cloned();
                self.bind_checked(schema, names.zip(arguments).collect())
            }
            None => self.bind_open(arguments.into_iter().map(Some).collect(), false),
        }
    }

    fn split(&self, text: &str) -> Vec<Argument> {
        if text.is_empty() {
            return Vec::new();
        }
        let limit = self.uses.rest_from.map(|_| self.places());
        pipe::split(text, limit).into_iter().map(Argument::untyped).collect()
    }

    /// How many positions there are.
    fn places(&self) -> usize {
        match self.schema {
            Some(_) => self.names.len(),
            None => self.names.len().max(self.uses.highest),
        }
    }

    fn bind_json(&self, text: &str, is_args: bool) -> Result<Bound> {
        let field = if is_args { "args" } else { "body" };
        let is_object = text.trim_start().starts_with('{');
        if !is_args && self.schema.is_none() {
            return self.bind_list(vec![Argument::json(text).map_err(|problem| unreadable(field, &problem))?]);
        }
        if !is_object {
            let items = json::list(text).map_err(|problem| unreadable(field, &problem))?;
            return self.bind_list(items.iter().map(|item| Argument::raw(item)).collect());
        }
        let members = json::object(text).map_err(|problem| unreadable(field, &problem))?;
        let named = members.into_iter().map(|(name, raw)| (name, Argument::raw(&raw))).collect();
        match &self.schema {
            Some(schema) => self.bind_checked(schema, named),
            None => self.bind_names(named),
        }
    }

    /// A set that the schema judges as a whole.
    fn bind_checked(&self, schema: &Schema, named: Vec<(String, Argument)>) -> Result<Bound> {
        let mut named: Vec<(String, Argument)> = named
            .into_iter()
            .map(|(name, argument)| {
                let argument = argument.coerced(schema.property_type(&name)).styled(schema.list_style(&name));
                (name, argument)
            })
            .collect();
        let members = named.iter().map(|(name, argument)| Ok((name.clone(), json::value(&argument.exact())?)));
        let set = members.collect::<Result<_, Problem>>().map_err(|problem| unreadable("args", &problem))?;
        schema.check(&Value::Object(set))?;
        named.sort_by_key(|(name, _)| self.names.iter().position(|known| known == name).unwrap_or(usize::MAX));
        let of = |name: &String| named.iter().find(|(known, _)| known == name).map(|(_, argument)| argument.clone());
        let unknown = named.iter().filter(|(name, _)| !schema.knows(name) && !self.names.contains(name));
        let warnings =
            unknown.take(MAX_WARNINGS).map(|(name, _)| format!("unknown_argument:{}", shown(name))).collect();
        Ok(Bound { positional: self.names.iter().map(of).collect(), named, warnings, checked: true })
    }

    /// A named set of a row without a schema: the names are all there is, and all are needed.
    fn bind_names(&self, mut named: Vec<(String, Argument)>) -> Result<Bound> {
        let places = self.places();
        let name_of = |n: usize| self.names.get(n - 1).cloned().unwrap_or_else(|| format!("${n}"));
        let names: Vec<String> = (1..=places).map(name_of).collect();
        if let Some((unknown, _)) = named.iter().find(|(name, _)| !names.contains(name)) {
            return Err(not_taken(unknown, &names));
        }
        let mut take = |name: &String| {
            let at = named.iter().position(|(known, _)| known == name)?;
            Some(named.swap_remove(at).1)
        };
        let positional = names.iter().map(&mut take).collect();
        self.bind_open(positional, true)
    }

    fn bind_open(&self, positional: Vec<Option<Argument>>, by_name: bool) -> Result<Bound> {
        let positional: Vec<Option<Argument>> =
            positional.into_iter().map(|argument| argument.map(Argument::loosened)).collect();
        let pairs = self.names.iter().zip(&positional);
        let named = pairs.filter_map(|(name, argument)| Some((name.clone(), argument.clone()?))).collect();
        let bound = Bound { positional, named, warnings: Vec::new(), checked: false };
        if !self.uses.optional {
            self.uses.require(&bound, &self.names, by_name)?;
        }
        Ok(bound)
    }
}

/// `missing_argument:<slot>`.
pub(crate) fn missing(slot: &str, name: Option<&str>) -> Fault {
    let fault = Fault::new(Reason::MissingArgument, format!("the row needs the argument `{slot}`"))
        .detail(slot)
        .with("argument", slot);
    match name {
        Some(name) if name != slot => fault.with("name", name),
        Some(_) | None => fault,
    }
}

/// `extra_arguments:expected N, got M`.
pub(crate) fn extra(expected: usize, got: usize) -> Fault {
    Fault::new(Reason::ExtraArguments, format!("the row takes {expected} arguments and was given {got}"))
        .detail(format!("expected {expected}, got {got}"))
        .fix("write `\\|` for a pipe inside an argument, or send the arguments as `args`")
        .with("expected", expected.to_string())
        .with("got", got.to_string())
}

/// A hostile name cut to what an answer may repeat and a database can hold.
fn shown(name: &str) -> String {
    name.chars().take(64).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn not_taken(name: &str, names: &[String]) -> Fault {
    let shown = shown(name);
    let fix = match names {
        [] => "the row takes no arguments".to_owned(),
        names => format!("the row takes: {}", names.join(", ")),
    };
    Fault::new(Reason::ArgsInvalid, format!("the row has no argument `{shown}`"))
        .detail(":additionalProperties")
        .fix(fix)
        .with("pointer", "")
        .with("keyword", "additionalProperties")
        .with("expected", format!("without the property `{shown}`"))
}

fn unreadable(field: &'static str, problem: &Problem) -> Fault {
    Fault::new(Reason::ArgumentRefused, format!("`{field}` is not taken: {problem}"))
        .detail(format!("{field}:{}", problem.rule()))
        .with("field", field)
}
