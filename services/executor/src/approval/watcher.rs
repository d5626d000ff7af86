//! Asks the watcher's rules about a call.

use std::sync::{Arc, Mutex, PoisonError};

use callbook_domain::arguments::Sent;
use callbook_domain::canonical;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::key::Key;
use callbook_store::fault::fault;

use super::rule::{Action, Rule, Rules, Verdict};
use crate::App;
use crate::store::watch::{self, Record};

/// The most bytes of arguments that patterns are asked about.
const MAX_INPUT: usize = 1024 * 1024;

/// The rules that were asked last, compiled. Which rules stand is asked of the database for each call: a rule holds on
/// every executor once it is acknowledged.
#[derive(Debug, Default)]
pub struct Watcher(Mutex<Option<(Vec<Record>, Arc<Rules>)>>);

impl Watcher {
    /// What the rules say to these arguments of this row.
    ///
    /// # Errors
    /// Whatever keeps them from saying anything: no database, a rule that does not compile, arguments over 1 MiB.
    pub async fn verdict(&self, app: &App, key: &Key, sent: &Sent) -> Result<Verdict> {
        let stored = watch::rules(app.directory.pool()).await.map_err(fault)?;
        let rules = self.compiled(stored)?;
        if sent.bytes() > MAX_INPUT {
            return Err(broken("the arguments are larger than patterns are asked about"));
        }
        let (key, forms) = (key.to_string(), forms(sent));
        // a pattern may take its time, and others' calls do not wait for it
        let asked = tokio::task::spawn_blocking(move || rules.verdict(&key, &forms)).await;
        asked.map_err(|error| broken(error.to_string()))
    }

    fn compiled(&self, stored: Vec<Record>) -> Result<Arc<Rules>> {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, rules)) = &*held
            && *known == stored
        {
            return Ok(rules.clone());
        }
        let parsed: Vec<Rule> = stored.iter().cloned().map(rule).collect::<Result<_>>()?;
        let rules = Arc::new(Rules::compile(parsed).map_err(broken)?);
        *held = Some((stored, rules.clone()));
        Ok(rules)
    }
}

/// A stored rule.
///
/// # Errors
/// `internal` for an action that this build does not know.
pub(super) fn rule(record: Record) -> Result<Rule> {
    let Some(action) = Action::parse(&record.action) else {
        return Err(broken(format!("rule `{}`: unknown action `{}`", record.name, record.action)));
    };
    Ok(Rule {
        name: record.name,
        position: record.position,
        pattern_key: record.pattern_key,
        pattern_body: record.pattern_body,
        action,
        reason: record.reason,
    })
}

fn broken(why: impl Into<String>) -> Fault {
    Fault::new(Reason::Internal, why)
}

/// The ways in which the arguments can be written: as they were sent, and, where that is JSON, in canonical form, which
/// has no escapes that hide a word.
fn forms(sent: &Sent) -> Vec<String> {
    let text = match sent {
        Sent::Nothing => String::new(),
        Sent::Body(body) => body.clone(),
        Sent::Args(raw) => raw.get().to_owned(),
        Sent::List(arguments) => Sent::list_text(arguments),
    };
    let canonical = serde_json::from_str(&text).ok().map(|value| canonical::to_string(&value));
    let second = canonical.filter(|canonical| *canonical != text);
    [text].into_iter().chain(second).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_looked_at_as_sent_and_without_escapes() {
        let of = |sent| forms(&sent);
        assert_eq!(of(Sent::Nothing), [""]);
        assert_eq!(of(Sent::Body("a|b".into())), ["a|b"]);
        let raw = |text: &str| Sent::Args(serde_json::from_str(text).unwrap());
        assert_eq!(of(raw(r#"{"a":1}"#)), [r#"{"a":1}"#]);
        assert_eq!(of(raw(r#"{ "a":"\u0064" }"#)), [r#"{ "a":"\u0064" }"#, r#"{"a":"d"}"#]);
        assert_eq!(of(Sent::Body(r#"["\u0064"]"#.into())), [r#"["\u0064"]"#, r#"["d"]"#]);
    }
}
