//! Reading a flow: parts, and what each may see of the parts before it.

use super::scan::{Cut, Span};
use super::slot::Scope;
use super::step::{Form, name};
use super::{Flow, FlowError, MAX_FAN_OUT, MAX_FLOW, MAX_STEPS, Name, Part, Step};

impl Flow {
    /// Reads a flow that uses no public configuration.
    ///
    /// # Errors
    /// With the place: what the grammar does not have, a slot that nothing fills, a bound passed.
    pub fn parse(text: &str) -> Result<Flow, FlowError> {
        Flow::parse_with(text, &|_| false)
    }

    /// Reads a flow; `$NAME` may also be a variable that the operator declared as public configuration.
    ///
    /// # Errors
    /// As [`Flow::parse`].
    pub fn parse_with(text: &str, is_variable: &dyn Fn(&str) -> bool) -> Result<Flow, FlowError> {
        let span = Span { text, at: 0 };
        if text.len() > MAX_FLOW {
            return span.fail(format!("the flow is longer than {MAX_FLOW} bytes"));
        }
        if text.trim().is_empty() {
            return span.fail("the flow is empty");
        }
        let mut reader = Reader { is_variable, parts: Vec::new(), bound: Vec::new(), steps: 0 };
        let mut pieces = span.split(Cut::Part)?.into_iter();
        while let Some(piece) = pieces.next() {
            reader.part(piece.trim(), &mut pieces).map_err(|error| reader.placed(error))?;
        }
        Ok(Flow { parts: reader.parts })
    }
}

struct Reader<'a> {
    is_variable: &'a dyn Fn(&str) -> bool,
    parts: Vec<Part>,
    bound: Vec<Name>,
    steps: usize,
}

impl Reader<'_> {
    fn part<'t>(&mut self, piece: Span<'t>, rest: &mut impl Iterator<Item = Span<'t>>) -> Result<(), FlowError> {
        let part = if piece.is_empty() {
            return piece.fail("the part is empty");
        } else if piece.text.starts_with('{') {
            self.block(piece)?
        } else if piece.text.starts_with("?:") {
            self.condition(piece.from(2), rest.next())?
        } else {
            let step = self.step(piece, Form::Pipe, !self.parts.is_empty())?;
            self.bound.extend(step.bind.clone());
            Part::Single(step)
        };
        self.parts.push(part);
        Ok(())
    }

    fn block(&mut self, piece: Span<'_>) -> Result<Part, FlowError> {
        let end = piece.bracketed()?;
        let inner = piece.range(1, end - 1);
        if let [_, second, ..] = inner.split(Cut::Part)?.as_slice() {
            return second.fail("`>` cannot stand in a block, whose steps all run at once");
        }
        let pieces = inner.split(Cut::Pipe)?;
        if pieces.len() > MAX_FAN_OUT {
            return piece.fail(format!("{} steps at once, more than {MAX_FAN_OUT}", pieces.len()));
        }
        let mut steps = Vec::with_capacity(pieces.len());
        let mut names: Vec<Name> = Vec::new();
        for one in pieces {
            let step = self.step(one, Form::List, !self.parts.is_empty())?;
            self.name_once(&mut names, step.bind.as_ref(), one.trim())?;
            steps.push(step);
        }
        let after = piece.from(end).trim();
        let bind = match after.text.strip_prefix("=>") {
            Some(_) => Some(name(after.from(2))?),
            None if after.is_empty() => None,
            None => return after.fail(format!("`{}` after the block", after.shown())),
        };
        self.name_once(&mut names, bind.as_ref(), after)?;
        // Only now, so that no step saw a sibling's name.
        self.bound.extend(names);
        Ok(Part::Block { steps, bind })
    }

    fn name_once(&self, names: &mut Vec<Name>, bind: Option<&Name>, at: Span<'_>) -> Result<(), FlowError> {
        if let Some(twice) = bind.filter(|name| names.contains(name)) {
            return at.fail(format!("the block binds `{}` twice", twice.as_str()));
        }
        names.extend(bind.cloned());
        Ok(())
    }

    fn condition(&mut self, test: Span<'_>, branches: Option<Span<'_>>) -> Result<Part, FlowError> {
        let place = test;
        let test = self.step(test, Form::List, !self.parts.is_empty())?;
        self.bound.extend(test.bind.clone());
        let Some(branches) = branches else { return place.fail("the condition has no `> step` after its test") };
        let mut pieces = branches.split(Cut::Pipe)?.into_iter();
        let then = self.step(pieces.next().unwrap_or(branches), Form::List, true)?;
        let otherwise = pieces.next().map(|piece| self.step(piece, Form::List, true)).transpose()?;
        if let Some(third) = pieces.next() {
            return third.fail("the condition has more than two branches; write several arguments as a JSON list");
        }
        // A name is sure to be bound only where both branches bind it.
        let both =
            otherwise.as_ref().and_then(|step| step.bind.as_ref()).filter(|name| then.bind.as_ref() == Some(name));
        self.bound.extend(both.cloned());
        Ok(Part::Condition { test, then, otherwise })
    }

    fn step(&mut self, span: Span<'_>, form: Form, has_prev: bool) -> Result<Step, FlowError> {
        self.steps += 1;
        if self.steps > MAX_STEPS {
            return span.fail(format!("the flow has more than {MAX_STEPS} steps"));
        }
        Step::read(span, form, &Scope { bound: &self.bound, has_prev, is_variable: self.is_variable })
    }

    fn placed(&self, error: FlowError) -> FlowError {
        FlowError { message: format!("part {}: {}", self.parts.len() + 1, error.message), ..error }
    }
}
