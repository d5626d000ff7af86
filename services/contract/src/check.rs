//! Check a row as a write would, shape its example, and neither run nor store anything.

use std::collections::BTreeSet;

use callbook_domain::arguments::Sent;
use callbook_domain::caller::{Caller, May};
use callbook_domain::compile::{Compiled, Plan, ReachKind};
use callbook_domain::contract;
use callbook_domain::fault::Result;
use callbook_domain::hygiene::{Checked, Violation};
use callbook_domain::key::Key;
use callbook_domain::row::{DEFAULT_POOL, Definition};
use callbook_domain::secret::{Bindings, Verdict};
use callbook_store::fault::fault;
use callbook_store::snapshot::Snapshot;
use callbook_store::write;
use serde_json::{Map, Value, json};

use crate::App;
use crate::error::not_found;
use crate::write::pool_warning;

/// What to check.
pub(crate) enum Subject {
    /// The stored row of this key.
    Stored(String),
    /// A row that is not stored.
    Given(Map<String, Value>),
}

/// What a look at a row gave.
pub(crate) struct Report {
    /// The row.
    pub(crate) key: Key,
    /// What a write would be refused for.
    pub(crate) violations: Vec<Violation>,
    /// What is doubtful.
    pub(crate) warnings: Vec<String>,
    /// What the example would send or run.
    pub(crate) shaped: Option<Value>,
}

/// Checks a row that the caller may edit.
///
/// # Errors
/// `unauthorized`, `forbidden`, `not found`, `invalid_request` for a row that cannot be read.
pub(crate) async fn check(app: &App, caller: &Caller, subject: Subject, allow_lookalike: bool) -> Result<Report> {
    caller.require_credential()?;
    let snapshot = app.look().await?.snapshot;
    let definition = match subject {
        Subject::Stored(key) => {
            caller.require(May::Edit, Some(&Key::parse(&key).map_err(|_| not_found())?))?;
            snapshot.get(&key).ok_or_else(not_found)?.row.definition.clone()
        }
        Subject::Given(fields) => {
            let (definition, _) = Definition::from_json(&fields)?;
            caller.require(May::Edit, Some(&definition.key))?;
            definition
        }
    };
    let mut checked = write::check(&app.writer(caller), &definition);
    if snapshot.get(definition.key.as_str()).is_none() {
        checked.forgive("keyless_missing_examples");
        checked.violations.splice(0..0, neighbours(app, caller, &definition.key, allow_lookalike).await?);
    }
    reaches(&snapshot, &definition, &mut checked);
    checked.warnings.extend(pool_warning(app, &definition).await);
    let shaped = checked.compiled.as_ref().and_then(|compiled| match shaped(app, &definition, compiled)? {
        Ok(shaped) => Some(shaped),
        Err(refused) => {
            checked.warnings.push(format!("example_refused:{}", refused.error_text()));
            None
        }
    });
    Ok(Report { key: definition.key, violations: checked.violations, warnings: checked.warnings, shaped })
}

/// What keeps a new key from being taken.
async fn neighbours(app: &App, caller: &Caller, key: &Key, allow_lookalike: bool) -> Result<Vec<Violation>> {
    let mut connection = app.directory.pool().acquire().await.map_err(fault)?;
    let mut violations = Vec::new();
    // a key that the caller does not see is not named
    let named = |other: String| match Key::parse(&other) {
        Ok(key) if caller.sees(&key) => format!("`{other}`"),
        Ok(_) | Err(_) => "another one".to_owned(),
    };
    if let Some(other) = write::namespace_clash(&mut connection, key).await? {
        violations.push(Violation {
            code: "namespace_conflict",
            message: format!("a key cannot be the namespace of another, and {} exists", named(other)),
            how_to_fix: "choose another key".into(),
        });
    }
    if let Some(other) = write::twin(&mut connection, key).await?.filter(|_| !allow_lookalike) {
        violations.push(Violation {
            code: "lookalike_key",
            message: format!("`{key}` reads like {}, which exists", named(other)),
            how_to_fix: "choose another key, or say allow_lookalike".into(),
        });
    }
    Ok(violations)
}

/// What a write would notice about the rows that this one reaches.
fn reaches(snapshot: &Snapshot, definition: &Definition, checked: &mut Checked) {
    let Some(compiled) = &checked.compiled else { return };
    for reach in &compiled.reaches {
        let reached = snapshot.get(reach.key.as_str()).map(|entry| &entry.row.definition);
        match (reach.kind, reached) {
            (ReachKind::Step, None) if reach.key != definition.key => {
                checked.warnings.push(format!("unknown_step:{}", reach.key));
            }
            (ReachKind::Include, None) if reach.key != definition.key => {
                checked.warnings.push(format!("unknown_include:{}", reach.key));
            }
            (ReachKind::Step, Some(step)) if step.pool() != DEFAULT_POOL && step.pool() != definition.pool() => {
                checked.violations.push(Violation::pool_mismatch(reach.key.as_str(), step.pool()));
            }
            (ReachKind::Step | ReachKind::Include, None | Some(_)) => {}
        }
    }
    if reaches_itself(snapshot, &definition.key, compiled) {
        checked.violations.push(Violation::cycle());
    }
}

fn reaches_itself(snapshot: &Snapshot, key: &Key, compiled: &Compiled) -> bool {
    let mut waiting: Vec<&Key> = compiled.reaches.iter().map(|reach| &reach.key).collect();
    let mut seen = BTreeSet::new();
    while let Some(next) = waiting.pop() {
        if next == key {
            return true;
        }
        if let Some(Ok(inner)) = snapshot.get(next.as_str()).map(|entry| &entry.compiled)
            && seen.insert(next)
        {
            waiting.extend(inner.reaches.iter().map(|reach| &reach.key));
        }
    }
    false
}

/// What the example would send or run, without what a secret would add; nothing where the row has no example.
fn shaped(app: &App, definition: &Definition, compiled: &Compiled) -> Option<Result<Value>> {
    let body = contract::example(definition, compiled)?;
    Some(plan(definition, compiled, body, &app.directory.rules().secrets))
}

fn plan(definition: &Definition, compiled: &Compiled, body: String, secrets: &Bindings) -> Result<Value> {
    let bound = compiled.signature.bind(&Sent::new(Some(body), None)?)?;
    Ok(match &compiled.plan {
        Plan::Http(http) => {
            let request = http.fill(&bound)?;
            let names = compiled.auth.secret_names();
            let origin = request.url.origin().ascii_serialization();
            let is_allowed = |name: &String| secrets.verdict(name, &origin, &definition.key) == Verdict::Allowed;
            let secret =
                (!names.is_empty()).then(|| json!({"name": names.join("+"), "allowed": names.iter().all(is_allowed)}));
            let headers: Map<String, Value> = request
                .media_type
                .into_iter()
                .map(|media_type| ("content-type".to_owned(), media_type.into()))
                .collect();
            let body = request.body.map(|body| String::from_utf8_lossy(&body).into_owned());
            json!({"method": request.method.as_str(), "url": request.url.as_str(), "headers": headers, "body": body, "secret": secret})
        }
        Plan::Fn(function) => {
            let arguments = function.arguments.fill(&bound)?;
            let arguments: Vec<Value> =
                arguments.iter().map(|argument| serde_json::from_str(&argument.exact()).unwrap_or_default()).collect();
            json!({"function": function.target, "arguments": arguments})
        }
        Plan::Flow(flow) => json!({"steps": flow.steps().map(|step| step.text.as_str()).collect::<Vec<_>>()}),
        Plan::Agent(agent) => {
            let input: Value = serde_json::from_str(&bound.canonical_text()).unwrap_or_default();
            json!({"model": agent.model, "prompt": agent.prompt, "input": input})
        }
        Plan::Block => json!({}),
    })
}
