//! Writes and lists the watcher's rules. The owner's.

use callbook_domain::caller::Caller;
use callbook_domain::event::{Body, EventKind};
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::row::timestamp;
use callbook_store::fault::fault;

use super::rule::{Rule, is_name};
use super::watcher::rule;
use crate::App;
use crate::store::watch::{self, Put, Record, Written};

/// The most rules: each is asked for each call of a sensitive row.
const MAX_RULES: i64 = 256;

/// Adds a rule, or puts it in the place of the one of its name. True: it is new.
///
/// # Errors
/// `unauthorized` and `forbidden` for everybody but the owner; `invalid_request` with the field, for one rule more than
/// 256 too.
pub async fn put_rule(app: &App, caller: &Caller, rule: &Rule) -> Result<bool> {
    caller.require_owner()?;
    rule.check()?;
    let record = Record {
        name: rule.name.clone(),
        position: rule.position,
        pattern_key: rule.pattern_key.clone(),
        pattern_body: rule.pattern_body.clone(),
        action: rule.action.as_str().to_owned(),
        reason: rule.reason.clone(),
    };
    let event = Body::new(EventKind::Mutate)
        .set("watch_rule", rule.name.as_str())
        .set("position", rule.position)
        .set("pattern_key", rule.pattern_key.as_str())
        .set("pattern_body", rule.pattern_body.as_str())
        .set("action", rule.action.as_str())
        .set("reason", rule.reason.as_str());
    match watch::put(app.directory.pool(), &record, MAX_RULES, &written(app, caller, event)).await.map_err(fault)? {
        Put::Created => Ok(true),
        Put::Replaced => Ok(false),
        Put::Full => Err(Fault::new(Reason::InvalidRequest, format!("there are {MAX_RULES} rules and no more"))
            .with("field", "name")
            .fix("take a rule away first")),
    }
}

/// All rules in the order in which they are asked.
///
/// # Errors
/// `unauthorized` and `forbidden` for everybody but the owner.
pub async fn rules(app: &App, caller: &Caller) -> Result<Vec<Rule>> {
    caller.require_owner()?;
    let stored = watch::rules(app.directory.pool()).await.map_err(fault)?;
    stored.into_iter().map(rule).collect()
}

/// Takes a rule away. False where there was none.
///
/// # Errors
/// `unauthorized` and `forbidden` for everybody but the owner.
pub async fn delete_rule(app: &App, caller: &Caller, name: &str) -> Result<bool> {
    caller.require_owner()?;
    if !is_name(name) {
        return Ok(false);
    }
    let event = Body::new(EventKind::Mutate).set("watch_rule", name).set("action", "delete");
    watch::delete(app.directory.pool(), name, &written(app, caller, event)).await.map_err(fault)
}

fn written(app: &App, caller: &Caller, event: Body) -> Written {
    let (actor, at) = (caller.actor(), app.clock.now());
    let event = event.set("actor", actor.as_str()).set("ts", timestamp(at)).canonical();
    Written { actor, at, event }
}
