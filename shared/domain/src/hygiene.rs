//! What the book refuses to hold, in the order in which it is looked at, and what it only remarks on.

use crate::auth::Auth;
use crate::compile::{Compiled, Parts, Plan, Rules};
use crate::describe::{self, Described};
use crate::docstring::MAX_DOCSTRING;
use crate::fault::{Fault, Reason};
use crate::key::Key;
use crate::row::{Definition, Provenance};
use crate::secret::Verdict;
use crate::template::BadTemplate;

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The literal code after `registry_hygiene_refused:`.
    pub code: &'static str,
    /// What is wrong, with its place.
    pub message: String,
    /// What the writer can do.
    pub how_to_fix: String,
}

/// What a look at a definition gave.
#[derive(Clone, Debug)]
pub struct Checked {
    /// Ready to run, where nothing in the way of that is broken.
    pub compiled: Option<Compiled>,
    /// Broken rules, first one first.
    pub violations: Vec<Violation>,
    /// Oddities that refuse nothing.
    pub warnings: Vec<String>,
}

impl Checked {
    /// Turns a violation that may stand into a warning. What keeps a row from being compiled never may.
    pub fn forgive(&mut self, code: &str) {
        if matches!(code, "bad_template" | "bad_schema" | "secret_origin_refused" | "description_too_large" | "cycle") {
            return;
        }
        let before = self.violations.len();
        self.violations.retain(|violation| violation.code != code);
        if self.violations.len() < before {
            self.warnings.push(code.to_owned());
        }
    }
}

impl Violation {
    fn new(code: &'static str, message: impl Into<String>, how_to_fix: impl Into<String>) -> Self {
        Violation { code, message: message.into(), how_to_fix: how_to_fix.into() }
    }

    /// A template or flow text that does not compile.
    pub(crate) fn bad_template(bad: &BadTemplate) -> Self {
        let fix = bad.fix.clone().unwrap_or_else(|| format!("change `{}` and write the row again", bad.place));
        Violation::new("bad_template", format!("{}: {}", bad.place, bad.why), fix)
    }

    pub(crate) fn bad_auth(why: &str) -> Self {
        Violation::new(
            "bad_template",
            format!("auth: {why}"),
            "use `bearer:NAME`, `basic:NAME`, `basic:USER:PASS`, `headers:{\"K\":\"$NAME\"}` or `query:param=NAME`",
        )
    }

    pub(crate) fn bad_schema(column: &str, why: &str) -> Self {
        let fix = "give a JSON Schema of draft 2020-12 with references inside itself only";
        Violation::new("bad_schema", format!("{column}: {why}"), fix)
    }

    /// A row that reaches itself.
    pub fn cycle() -> Self {
        Violation::new(
            "cycle",
            "the row reaches itself through its steps or includes",
            "take one of the steps out of the circle",
        )
    }

    /// A step that other executors run than its flow.
    pub fn pool_mismatch(step: &str, pool: &str) -> Self {
        Violation::new(
            "bad_template",
            format!("pool_mismatch: step `{step}` runs in pool `{pool}`"),
            "put the flow into that pool, or the step into `default`",
        )
    }

    /// The refusal that a writer reads.
    pub fn fault(&self, key: &Key) -> Fault {
        Fault::new(Reason::RegistryHygieneRefused, self.message.clone())
            .detail(self.code)
            .fix(self.how_to_fix.clone())
            .with("key", key.as_str())
    }
}

/// Looks at a definition by itself. What needs the rest of the book (cycles, unknown steps) is looked at by the write.
pub fn check(definition: &Definition, rules: &Rules) -> Checked {
    let parts = Parts::read(definition, rules);
    let mut violations = words(definition, &parts);
    violations.extend(templates(&parts));
    violations.extend(secrets(definition, &parts, rules));
    violations.extend(schemas(&parts));
    let mut warnings = warnings(definition, &parts, rules);
    let compiled = if violations.iter().any(|v| matches!(v.code, "bad_template" | "bad_schema")) {
        None
    } else {
        match parts.finish(definition) {
            Ok(compiled) => Some(compiled),
            Err(violation) => {
                violations.push(violation);
                None
            }
        }
    };
    if let Some(compiled) = &compiled {
        violations.extend(too_large(definition, compiled));
    }
    warnings.dedup();
    Checked { compiled, violations, warnings }
}

fn words(definition: &Definition, parts: &Parts) -> Vec<Violation> {
    let mut violations = Vec::new();
    if definition.content.trim().is_empty() {
        violations.push(Violation::new(
            "missing_description",
            "content is blank",
            "content (the docstring and template) is required: write `# WHAT:`, `# ARGS:` and `# EX:` lines",
        ));
    }
    if definition.sensitive && definition.input_schema.is_none() {
        violations.push(Violation::new(
            "high_risk_missing_schema",
            "a sensitive row has no input_schema",
            "give input_schema in the same write",
        ));
    }
    let keyless = definition.auth.trim().is_empty() && !definition.is_prompt_block();
    if keyless && definition.examples.is_empty() && parts.docstring.example.is_none() {
        violations.push(Violation::new(
            "keyless_missing_examples",
            "a row without a credential has neither examples nor an `# EX:` line",
            "give one worked example in `examples`, or an `# EX:` line",
        ));
    }
    violations
}

fn templates(parts: &Parts) -> Vec<Violation> {
    let mut violations = Vec::new();
    if parts.docstring.raw.len() > MAX_DOCSTRING {
        let bad = BadTemplate::new(
            "content",
            format!("the docstring is {} bytes, more than {MAX_DOCSTRING}", parts.docstring.raw.len()),
        );
        violations.push(Violation::bad_template(&bad));
    }
    if let Err(bad) = &parts.plan {
        violations.push(Violation::bad_template(bad));
    }
    if let Err(bad) = &parts.reaches {
        violations.push(Violation::bad_template(bad));
    }
    match &parts.auth {
        Ok(Auth::Oauth(_)) => violations.push(Violation::bad_auth("this build has no oauth credentials")),
        Ok(_) => {}
        Err(why) => violations.push(Violation::bad_auth(why)),
    }
    violations
}

fn secrets(definition: &Definition, parts: &Parts, rules: &Rules) -> Vec<Violation> {
    let (Ok(auth), Ok(Plan::Http(http))) = (&parts.auth, &parts.plan) else { return Vec::new() };
    let mut violations = Vec::new();
    for name in auth.secret_names() {
        for origin in http.origins() {
            let why = match rules.secrets.verdict(&name, &origin, &definition.key) {
                Verdict::Allowed | Verdict::NotConfigured => continue,
                Verdict::WrongOrigin => format!("secret `{name}` is not bound to {origin}"),
                Verdict::WrongKey => format!("secret `{name}` is not bound to this key"),
            };
            violations.push(Violation::new(
                "secret_origin_refused",
                why,
                "point the row at an origin that the operator bound the secret to, or ask for the binding",
            ));
        }
    }
    violations.truncate(1);
    violations
}

fn schemas(parts: &Parts) -> Vec<Violation> {
    let bad = |column, schema: &Result<_, String>| schema.as_ref().err().map(|why| Violation::bad_schema(column, why));
    let input = bad("input_schema", &parts.input_schema.as_ref().map(|_| ()).map_err(Clone::clone));
    let output = bad("output_schema", &parts.output_schema.as_ref().map(|_| ()).map_err(Clone::clone));
    input.into_iter().chain(output).collect()
}

fn warnings(definition: &Definition, parts: &Parts, rules: &Rules) -> Vec<String> {
    let mut warnings = Vec::new();
    if parts.docstring.summary().is_none() && !definition.content.trim().is_empty() {
        warnings.push("no_what".to_owned());
    }
    if let Ok(Plan::Fn(plan)) = &parts.plan
        && plan.function.is_none()
    {
        warnings.push(format!("unknown_fn_target:{}", plan.target));
    }
    if let Ok(auth) = &parts.auth {
        let unknown = auth.secret_names().into_iter().filter(|name| !rules.secrets.0.contains_key(name));
        warnings.extend(unknown.map(|name| format!("secret_not_configured:{name}")));
    }
    warnings
}

fn too_large(definition: &Definition, compiled: &Compiled) -> Option<Violation> {
    let input = compiled.signature.schema.as_deref().map(crate::schema::Schema::value);
    let output = compiled.output_schema.as_deref().map(crate::schema::Schema::value);
    let described = Described {
        key: &definition.key,
        docstring: &compiled.docstring,
        input_schema: input,
        output_schema: output,
        argument_names: &compiled.signature.names,
        third_party: definition.provenance == Provenance::ThirdParty,
    };
    describe::describe(&[described]).err().map(|_| {
        Violation::new(
            "description_too_large",
            "the row's description as TypeScript passes 16 KiB",
            "shorten the docstring or the schemas",
        )
    })
}
