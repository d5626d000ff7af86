//! A definition made ready to run: its words read, its template compiled, its arguments known.
//!
//! Done once when the row is written and once when a process takes it in; never on a call.

use std::sync::Arc;

use crate::agent::{AgentBounds, CallForm, ModelTarget};
use crate::arguments::{Signature, SlotUse, argument_names};
use crate::auth::Auth;
use crate::docstring::Docstring;
use crate::fault::{Fault, Result};
use crate::flow::Flow;
use crate::function::{self, Function};
use crate::hygiene;
use crate::key::Key;
use crate::row::{Definition, Effect, RowType};
use crate::schema::Schema;
use crate::secret::Bindings;
use crate::target::HttpPlan;
use crate::template::{BadTemplate, ListTemplate, PublicVariables};

/// What the operator configured and rows are read against.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Public configuration that templates may name.
    pub variables: Arc<PublicVariables>,
    /// Secrets by name, with the origins and keys that they are bound to.
    pub secrets: Arc<Bindings>,
}

/// How a row is reached by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachKind {
    /// A step of a flow.
    Step,
    /// A block of an agent's prompt.
    Include,
}

/// One row that this one reaches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// Its key; the row need not exist.
    pub key: Key,
    /// How.
    pub kind: ReachKind,
}

/// What runs when the row is called.
#[derive(Clone, Debug)]
pub enum Plan {
    /// A request to an upstream.
    Http(HttpPlan),
    /// A built-in function with its arguments.
    Fn(FnPlan),
    /// Steps.
    Flow(Flow),
    /// A model with a prompt.
    Agent(AgentPlan),
    /// Text for agents' prompts; not callable.
    Block,
}

/// A call of a built-in function.
#[derive(Clone, Debug)]
pub struct FnPlan {
    /// What `target` says; a function of this build, or an unknown name that fails when called.
    pub target: String,
    /// The function, where this build has it.
    pub function: Option<&'static Function>,
    /// What it is called with.
    pub arguments: ListTemplate,
}

/// A call of a model.
#[derive(Clone, Debug)]
pub struct AgentPlan {
    /// The model's id.
    pub model: String,
    /// What one run may take.
    pub bounds: AgentBounds,
    /// How the model calls functions, where the row says so.
    pub calls: Option<CallForm>,
    /// The system text without its included blocks.
    pub prompt: String,
}

/// A row that can be bound and run.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// The words for readers.
    pub docstring: Docstring,
    /// The content without them.
    pub template: String,
    /// What runs.
    pub plan: Plan,
    /// What it is called with.
    pub signature: Signature,
    /// The credential's form.
    pub auth: Auth,
    /// The output's schema.
    pub output_schema: Option<Arc<Schema>>,
    /// What the row itself may change, whatever it reaches.
    pub effect: Effect,
    /// The rows that it reaches by name, in order.
    pub reaches: Vec<Reach>,
}

/// Compiles a definition.
///
/// # Errors
/// `registry_hygiene_refused` with the first rule that keeps the row from being called.
pub fn compile(definition: &Definition, rules: &Rules) -> Result<Compiled, Fault> {
    let parts = Parts::read(definition, rules);
    parts.finish(definition).map_err(|violation| violation.fault(&definition.key))
}

/// What could be read of a definition, and what could not. Hygiene reports from it in its own order.
pub(crate) struct Parts {
    pub docstring: Docstring,
    pub template: String,
    pub auth: std::result::Result<Auth, String>,
    pub input_schema: std::result::Result<Option<Arc<Schema>>, String>,
    pub output_schema: std::result::Result<Option<Arc<Schema>>, String>,
    pub names: Vec<String>,
    pub plan: std::result::Result<Plan, BadTemplate>,
    pub reaches: std::result::Result<Vec<Reach>, BadTemplate>,
}

impl Parts {
    pub(crate) fn read(definition: &Definition, rules: &Rules) -> Parts {
        let (docstring, template) = Docstring::split(&definition.content);
        let input_schema = schema(definition.input_schema.as_deref());
        let labels = docstring.argument_names();
        let known = input_schema.as_ref().ok().and_then(Option::as_deref);
        let names = argument_names(known, &labels);
        let plan = plan(definition, template, &names, rules);
        let reaches = match &plan {
            Ok(plan) => reaches(definition, plan),
            Err(_) => Ok(Vec::new()),
        };
        Parts {
            template: template.to_owned(),
            auth: Auth::parse(&definition.auth).map_err(|bad| bad.to_string()),
            output_schema: schema(definition.output_schema.as_deref()),
            docstring,
            input_schema,
            names,
            plan,
            reaches,
        }
    }

    pub(crate) fn finish(self, definition: &Definition) -> std::result::Result<Compiled, hygiene::Violation> {
        let plan = self.plan.map_err(|bad| hygiene::Violation::bad_template(&bad))?;
        let reaches = self.reaches.map_err(|bad| hygiene::Violation::bad_template(&bad))?;
        let auth = self.auth.map_err(|why| hygiene::Violation::bad_auth(&why))?;
        let schema = self.input_schema.map_err(|why| hygiene::Violation::bad_schema("input_schema", &why))?;
        let output_schema = self.output_schema.map_err(|why| hygiene::Violation::bad_schema("output_schema", &why))?;
        let effect = effect(definition, &plan, &self.docstring);
        let signature = Signature { names: self.names, uses: uses(&plan, &self.template), schema };
        Ok(Compiled {
            docstring: self.docstring,
            template: self.template,
            plan,
            signature,
            auth,
            output_schema,
            effect,
            reaches,
        })
    }
}

fn schema(text: Option<&str>) -> std::result::Result<Option<Arc<Schema>>, String> {
    text.map(|text| Schema::parse(text).map(Arc::new)).transpose()
}

fn plan(
    definition: &Definition,
    template: &str,
    names: &[String],
    rules: &Rules,
) -> std::result::Result<Plan, BadTemplate> {
    match definition.row_type {
        RowType::Http => HttpPlan::compile(&definition.target, template, names, &rules.variables).map(Plan::Http),
        RowType::Fn if definition.is_prompt_block() => Ok(Plan::Block),
        RowType::Fn => {
            if definition.target.trim().is_empty() {
                return Err(BadTemplate::new("target", "a function row names its function here"));
            }
            let arguments = ListTemplate::compile(template, names, &rules.variables)?;
            let function = function::find(&definition.target);
            Ok(Plan::Fn(FnPlan { target: definition.target.clone(), function, arguments }))
        }
        RowType::Flow => {
            let known = |name: &str| rules.variables.contains_key(name);
            let flow = Flow::parse_with(template, &known)
                .map_err(|error| BadTemplate::new(format!("content at byte {}", error.at), error.message))?;
            Ok(Plan::Flow(flow))
        }
        RowType::Agent => {
            let ModelTarget { model, bounds, calls } = ModelTarget::parse(&definition.target)?;
            Ok(Plan::Agent(AgentPlan { model, bounds, calls, prompt: template.to_owned() }))
        }
    }
}

fn reaches(definition: &Definition, plan: &Plan) -> std::result::Result<Vec<Reach>, BadTemplate> {
    let steps = match plan {
        Plan::Flow(flow) => flow.steps_keys(),
        Plan::Http(_) | Plan::Fn(_) | Plan::Agent(_) | Plan::Block => Vec::new(),
    };
    let mut reaches: Vec<Reach> = steps.into_iter().map(|key| Reach { key, kind: ReachKind::Step }).collect();
    for include in &definition.includes {
        let key = Key::parse(include).map_err(|fault| BadTemplate::new("includes", fault.message()))?;
        reaches.push(Reach { key, kind: ReachKind::Include });
    }
    Ok(reaches)
}

/// Functions say themselves what they may change; requests by their method; the rest by the word of their writer.
fn effect(definition: &Definition, plan: &Plan, docstring: &Docstring) -> Effect {
    let said = if docstring.safe == Some(true) { Effect::Read } else { Effect::Write };
    match plan {
        Plan::Http(http) => match http.effect() {
            Effect::Write => said,
            own @ (Effect::Read | Effect::Destructive) => own,
        },
        Plan::Fn(plan) => plan.function.map_or(said, |function| function.effect),
        // what a flow changes is what its steps change
        Plan::Flow(_) | Plan::Block => Effect::Read,
        Plan::Agent(_) => {
            debug_assert_eq!(definition.row_type, RowType::Agent);
            said
        }
    }
}

fn uses(plan: &Plan, template: &str) -> SlotUse {
    match plan {
        Plan::Http(http) => http.slot_use(),
        // without a template a function is passed what it is given: at most one argument
        Plan::Fn(_) if template.is_empty() => SlotUse { highest: 1, optional: true, ..SlotUse::default() },
        Plan::Fn(function) => function.arguments.slot_use(),
        Plan::Flow(flow) => {
            let used = flow.slot_use();
            SlotUse {
                highest: used.highest,
                rest_from: used.rest_from,
                named: used.named.into_iter().collect(),
                optional: false,
            }
        }
        Plan::Agent(_) => SlotUse { highest: 1, rest_from: Some(1), ..SlotUse::default() },
        Plan::Block => SlotUse::default(),
    }
}
