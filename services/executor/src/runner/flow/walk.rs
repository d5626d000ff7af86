//! The walk through a flow, part by part. What it calls is an argument: the executor's rows, or a table in a test.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use callbook_domain::arguments::{Argument, Bound};
use callbook_domain::flow::{Action, Flow, MAX_FAN_OUT, Part, Slot, Step, StepArguments};
use callbook_domain::json;
use callbook_domain::key::Key;
use callbook_domain::outcome::{Failure, Outcome, Output};
use callbook_domain::template::PublicVariables;
use futures::StreamExt as _;
use futures::future::{BoxFuture, join_all};
use futures::stream;

use super::fill::{Seen, fill};
use super::halt::Halt;
use super::value;
use crate::runner::function::json_get;
use crate::tree::MAX_CALLS;

/// The most bytes that the steps of one flow may give and be given.
pub(super) const MAX_BYTES: usize = 16 * 1024 * 1024;

/// Calls a row. What it gives belongs to nobody, as a call goes on without its flow.
pub(super) type CallRow<'a> =
    dyn Fn(&Key, Vec<Argument>) -> BoxFuture<'static, Result<Output, Halt>> + Send + Sync + 'a;

/// A flow that runs.
pub(super) struct Walk<'a> {
    flow: &'a Flow,
    own: &'a Bound,
    variables: &'a PublicVariables,
    call_row: &'a CallRow<'a>,
    bytes: AtomicUsize,
    part: AtomicUsize,
}

impl<'a> Walk<'a> {
    /// A flow with its own arguments, that has not begun.
    pub(super) fn new(
        flow: &'a Flow,
        own: &'a Bound,
        variables: &'a PublicVariables,
        call_row: &'a CallRow<'a>,
    ) -> Self {
        Walk { flow, own, variables, call_row, bytes: AtomicUsize::new(0), part: AtomicUsize::new(0) }
    }

    /// The part that runs or ran last, from 1.
    pub(super) fn part(&self) -> usize {
        self.part.load(Ordering::Relaxed)
    }

    /// Runs the parts in order and gives what the last one gave.
    ///
    /// # Errors
    /// The failure of the step that ended it, with its place; what else ran has receipts of its own.
    pub(super) async fn run(&self) -> Result<Output, Failure> {
        let mut seen = Seen::new(self.own, self.variables);
        for (at, part) in self.flow.parts.iter().enumerate() {
            self.part.store(at + 1, Ordering::Relaxed);
            let given = match part {
                Part::Single(step) => {
                    let given = self.step(step, &seen).await;
                    given.inspect(|given| seen.bind(step.bind.as_ref(), given))
                }
                Part::Block { steps, bind } => {
                    let given = self.block(steps, &mut seen).await;
                    given.inspect(|list| seen.bind(bind.as_ref(), list))
                }
                Part::Condition { test, then, otherwise } => {
                    self.condition(test, then, otherwise.as_ref(), &mut seen).await
                }
            };
            seen.prev = Some(given.map_err(Halt::into_failure)?);
        }
        Ok(seen.prev.take().map_or_else(Output::empty, Arc::unwrap_or_clone))
    }

    /// All steps at once. Each of them ends by itself, also where another one failed.
    async fn block(&self, steps: &[Step], seen: &mut Seen<'_>) -> Result<Arc<Output>, Halt> {
        let ended = join_all(steps.iter().map(|step| self.step(step, seen))).await;
        let given = ended.into_iter().collect::<Result<Vec<Arc<Output>>, Halt>>()?;
        let list = self.counted(value::list(given.iter().map(|given| &**given)))?;
        for (step, given) in steps.iter().zip(&given) {
            seen.bind(step.bind.as_ref(), given);
        }
        Ok(Arc::new(list))
    }

    async fn condition(
        &self,
        test: &Step,
        then: &Step,
        otherwise: Option<&Step>,
        seen: &mut Seen<'_>,
    ) -> Result<Arc<Output>, Halt> {
        let (given, branch) = match self.tried(test, seen).await {
            Ok(given) => (given, Some(then)),
            Err(Halt::Failed(failure)) => (Output::text(Outcome::Failed(failure).render()), otherwise),
            Err(ended @ Halt::Ended(_)) => return Err(ended.at_step(test, self.part())),
        };
        let given = Arc::new(given);
        seen.bind(test.bind.as_ref(), &given);
        let Some(branch) = branch else { return Ok(Arc::new(Output::empty())) };
        seen.prev = Some(given);
        let given = self.step(branch, seen).await?;
        seen.bind(branch.bind.as_ref(), &given);
        Ok(given)
    }

    /// Runs a step; a failure says where it happened.
    async fn step(&self, step: &Step, seen: &Seen<'_>) -> Result<Arc<Output>, Halt> {
        self.tried(step, seen).await.map(Arc::new).map_err(|halt| halt.at_step(step, self.part()))
    }

    async fn tried(&self, step: &Step, seen: &Seen<'_>) -> Result<Output, Halt> {
        match &step.action {
            Action::Call { key, arguments } => self.call(key, arguments, seen).await,
            Action::Each { key, arguments } => self.each(key, arguments, seen).await,
            Action::Json(path) => self.counted(found(path, seen).await?),
            Action::Merge(fields) => self.merged(fields, seen),
        }
    }

    async fn call(&self, key: &Key, arguments: &StepArguments, seen: &Seen<'_>) -> Result<Output, Halt> {
        let filled = fill(arguments, seen, &|bytes| self.count(bytes))?;
        self.counted((self.call_row)(key, filled).await?)
    }

    /// A call for each element, as many at once as a block may have. Once one has failed no other begins.
    async fn each(&self, key: &Key, arguments: &StepArguments, seen: &Seen<'_>) -> Result<Output, Halt> {
        let items = seen.output(&Slot::Prev).map_or_else(|| Ok(Vec::new()), |list| value::items(list))?;
        if items.len() > MAX_CALLS as usize {
            let message = format!("`EACH` has {} elements, and one call may grow to {MAX_CALLS} calls", items.len());
            return Err(Halt::Ended(Failure::new("budget_exhausted:calls", message)));
        }
        let failed = &AtomicBool::new(false);
        let calls = items.into_iter().enumerate().map(|(at, item)| {
            let seen = Seen { prev: Some(Arc::new(item)), ..seen.clone() };
            async move {
                if failed.load(Ordering::Relaxed) {
                    return None;
                }
                let given = self.call(key, arguments, &seen).await;
                failed.fetch_or(given.is_err(), Ordering::Relaxed);
                Some(given.map_err(|halt| halt.at_element(at)))
            }
        });
        let ended: Vec<Option<Result<Output, Halt>>> = stream::iter(calls).buffered(MAX_FAN_OUT).collect().await;
        let given = ended.into_iter().flatten().collect::<Result<Vec<Output>, Halt>>()?;
        self.counted(value::list(&given))
    }

    /// A JSON object of the fields. One whose optional argument was not given is left out.
    fn merged(&self, fields: &[(String, Slot)], seen: &Seen<'_>) -> Result<Output, Halt> {
        let mut object = String::from("{");
        for (name, slot) in fields {
            let value = match seen.output(slot) {
                Some(output) => value::document(output),
                None => match seen.argument(slot)? {
                    Some(argument) => argument.exact().into_owned().into(),
                    None => continue,
                },
            };
            self.count(value.len())?;
            object.push_str(if object.len() > 1 { "," } else { "" });
            object.push_str(&json::quote(name));
            object.push(':');
            object.push_str(&value);
        }
        object.push('}');
        Ok(Output::json(object))
    }

    fn counted(&self, given: Output) -> Result<Output, Halt> {
        self.count(given.bytes.len()).map(|()| given)
    }

    fn count(&self, bytes: usize) -> Result<(), Halt> {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) <= MAX_BYTES {
            return Ok(());
        }
        let message = format!("what the flow's steps give and are given is more than {MAX_BYTES} bytes");
        Err(Halt::Ended(Failure::new("budget_exhausted:bytes", message)))
    }
}

/// What the path names in `$PREV`, as the function `json_get` finds it. To look through a large document takes long, so
/// it is done on a thread that nobody waits for.
async fn found(path: &str, seen: &Seen<'_>) -> Result<Output, Halt> {
    let document = match seen.output(&Slot::Prev) {
        Some(output) => value::read(output)?.to_owned(),
        None => String::new(),
    };
    let arguments = [Argument::string(path), Argument::untyped(document)];
    let found = tokio::task::spawn_blocking(move || json_get(&arguments)).await;
    Ok(found.unwrap_or_else(|_| Err(Failure::new("internal", "the path came to no end")))?)
}
