//! A refusal of the server in one or two lines.

use callbook_domain::contract::clean;
use serde::Deserialize;

/// A request that the server refused.
#[derive(Debug)]
pub struct Refusal {
    /// The body as it came.
    pub body: Vec<u8>,
    /// What it says.
    pub problem: Problem,
    /// What a person with this command line can do, where the server's own words are for programs.
    pub fix: Option<String>,
}

/// The members of a refusal that a person needs.
#[derive(Debug, Deserialize)]
pub struct Problem {
    /// The reason, and its detail after a colon.
    pub error: String,
    /// A sentence.
    #[serde(default)]
    message: String,
    /// Null: nobody knows.
    #[serde(default = "did_not_run")]
    ran: Option<bool>,
    fix: Option<String>,
    #[serde(default)]
    did_you_mean: Vec<String>,
    needs: Option<String>,
    retry_after_ms: Option<u64>,
    invocation_id: Option<String>,
}

/// A refusal that does not speak of it did not run.
fn did_not_run() -> Option<bool> {
    Some(false)
}

impl Problem {
    /// Reads the body of a refusal; nothing where it is not one of ours.
    pub fn read(body: &[u8]) -> Option<Self> {
        serde_json::from_slice(body).ok()
    }

    /// Whether this is the reason, whatever its detail.
    pub fn is(&self, reason: &str) -> bool {
        self.error.strip_prefix(reason).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    }

    fn hints(&self) -> Vec<String> {
        let mut hints = Vec::new();
        if !self.did_you_mean.is_empty() {
            hints.push(format!("did you mean {}?", self.did_you_mean.join(", ")));
        }
        if let Some(needs) = &self.needs {
            hints.push(format!("it needs the grant {needs}"));
        }
        match (self.ran, &self.invocation_id) {
            (Some(true), Some(id)) => hints.push(format!("it was fired; look at `callbook receipt {id}` later")),
            (Some(true), None) => hints.push("it was fired".to_owned()),
            (None, _) => hints.push("it may have been done all the same".to_owned()),
            (Some(false), Some(id)) => hints.push(format!("see `callbook receipt {id}`")),
            (Some(false), None) => {}
        }
        if let Some(ms) = self.retry_after_ms {
            hints.push(format!("try again in {} s", ms.div_ceil(1_000).max(1)));
        }
        hints
    }
}

impl Refusal {
    /// Reason and message, then what can be done.
    pub fn lines(&self) -> Vec<String> {
        let problem = &self.problem;
        let message = if problem.message.is_empty() { String::new() } else { format!(": {}", problem.message) };
        let mut lines = vec![clean(&format!("callbook: {}{message}", problem.error))];
        // keys that come near say more than the sentence that points at them
        let own = problem.fix.clone().filter(|_| problem.did_you_mean.is_empty());
        let hints: Vec<String> = problem.hints().into_iter().chain(self.fix.clone().or(own)).collect();
        if !hints.is_empty() {
            lines.push(format!("  fix: {}", clean(&hints.join("; "))));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(body: &str) -> Vec<String> {
        let problem = Problem::read(body.as_bytes()).unwrap();
        Refusal { body: Vec::new(), problem, fix: None }.lines()
    }

    #[test]
    fn a_refusal_is_reason_message_and_fix() {
        let body = r#"{"error":"args_invalid:/age:type","message":"`age` must be a number","ran":false,"fix":"send 12",
            "status":400,"detail":"x"}"#;
        assert_eq!(lines(body), ["callbook: args_invalid:/age:type: `age` must be a number", "  fix: send 12"]);
        assert_eq!(lines(r#"{"error":"forbidden","message":"no","ran":false}"#), ["callbook: forbidden: no"]);
        assert_eq!(lines(r#"{"error":"forbidden"}"#), ["callbook: forbidden"]);
    }

    #[test]
    fn what_the_reason_knows_beside_its_message_is_told() {
        let unknown = r#"{"error":"unknown_key","message":"no row","ran":false,"did_you_mean":["NOW","NOON"],"fix":"use a key of did_you_mean"}"#;
        assert_eq!(lines(unknown)[1], "  fix: did you mean NOW, NOON?");
        let lost = r#"{"error":"service_unavailable","message":"gone","ran":null,"retry_after_ms":1500}"#;
        assert_eq!(lines(lost)[1], "  fix: it may have been done all the same; try again in 2 s");
        let stored = r#"{"error":"result_not_stored","message":"m","ran":true,"invocation_id":"inv_1"}"#;
        assert_eq!(lines(stored)[1], "  fix: it was fired; look at `callbook receipt inv_1` later");
        assert_eq!(lines(r#"{"error":"forbidden","needs":"edit:K"}"#)[1], "  fix: it needs the grant edit:K");
    }

    #[test]
    fn a_reason_is_known_with_and_without_its_detail() {
        let is =
            |error: &str| Problem::read(format!(r#"{{"error":"{error}"}}"#).as_bytes()).unwrap().is("already_exists");
        assert!(is("already_exists") && is("already_exists:K") && !is("already_exists_too"));
        assert!(Problem::read(b"<html>").is_none() && Problem::read(b"{}").is_none());
    }
}
