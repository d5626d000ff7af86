//! The answer to a call that ran, what the row gave and its proof, or to one that waits.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::gateway::Answer;
use super::screen::{Form, Screen};
use super::text::visible;
use super::trouble::Trouble;
use super::value::Content;
use super::{Ended, Verdict};

#[derive(Debug, Deserialize)]
struct Invocation {
    ok: bool,
    #[serde(default)]
    replayed: bool,
    #[serde(default)]
    result: String,
    output: Option<Box<RawValue>>,
    error: Option<Failure>,
    held: Option<Held>,
    proof: Proof,
    #[serde(default)]
    cost: f64,
    #[serde(default)]
    warnings: Vec<String>,
}

/// What a call waits for.
#[derive(Debug, Deserialize)]
struct Held {
    approval: String,
    reason: String,
    expires_at: Option<String>,
}

/// Why a call that ran did not succeed.
#[derive(Debug, Deserialize)]
pub struct Failure {
    code: String,
    #[serde(default)]
    message: String,
    #[serde(default)]
    retryable: bool,
    #[serde(rename = "where")]
    at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Proof {
    invocation_id: String,
    #[serde(default)]
    did: String,
}

/// Writes the output on standard output and the proof on standard error.
pub fn show(answer: &Answer, screen: &Screen) -> Ended {
    let invocation: Invocation = answer.read()?;
    let verdict = Verdict::of(invocation.ok);
    if screen.form == Form::Json {
        return screen.json(&answer.body).map(|()| verdict);
    }
    let again = format!("callbook receipt {} -o raw > file", invocation.proof.invocation_id);
    let written = invocation.write(screen, &again);
    for note in invocation.notes() {
        screen.note(&visible(&note));
    }
    match written {
        // the call was made, and its proof says how to get what it gave
        Err(Trouble::Broken(why)) if screen.form == Form::Text => screen.note(&visible(&why)),
        written => written?,
    }
    Ok(verdict)
}

impl Invocation {
    fn write(&self, screen: &Screen, again: &str) -> Result<(), Trouble> {
        let Some(output) = &self.output else { return Ok(()) };
        let (content, truncated) = Content::of_output(output, &self.result);
        match screen.form {
            Form::Raw => screen.raw(content.bytes(), again)?,
            Form::Text | Form::Json => content.show(screen, again)?,
        }
        if truncated {
            screen.note("… the upstream sent more than the row takes; this is its head");
        }
        Ok(())
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(error) = &self.error {
            notes.push(format!("callbook: {}", error.sentence()));
        }
        if let Some(held) = &self.held {
            notes.extend(held.sentences());
        }
        notes.extend(self.warnings.iter().map(|warning| format!("warning: {warning}")));
        let replayed = if self.replayed { " · stored answer, nothing fired" } else { "" };
        let cost = if self.cost > 0.0 { format!(" · ${}", self.cost) } else { String::new() };
        let did = match (&self.error, &self.held) {
            (Some(_), _) => "FAILED",
            (None, Some(_)) => "HELD",
            (None, None) => self.proof.did.as_str(),
        };
        notes.push(format!("{did} · {}{replayed}{cost}", self.proof.invocation_id));
        notes
    }
}

impl Held {
    fn sentences(&self) -> [String; 2] {
        let until = self.expires_at.as_deref().unwrap_or("?");
        [
            format!("callbook: the call waits for a person until {until} ({})", self.reason),
            format!(
                "nothing was fired; once `callbook approvals approve {}` was said, the same call again is",
                self.approval
            ),
        ]
    }
}

impl Failure {
    /// It in one line.
    pub fn sentence(&self) -> String {
        let at = self.at.as_ref().map(|at| format!(" at {at}")).unwrap_or_default();
        let again = if self.retryable { " (the same call may succeed later)" } else { "" };
        format!("{}{at}: {}{again}", self.code, self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(text: &str) -> Invocation {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_call_that_succeeded_names_its_receipt() {
        let done = invocation(
            r#"{"ok":true,"ran":true,"result":"a","output":"a","proof":{"invocation_id":"inv_1","did":"DONE — NOW"},
            "cost":0.0,"warnings":["unknown property `x`"],"trace":"t"}"#,
        );
        assert_eq!(done.notes(), ["warning: unknown property `x`", "DONE — NOW · inv_1"]);
    }

    #[test]
    fn a_held_call_says_how_it_goes_on() {
        let held = invocation(
            r#"{"ok":false,"ran":false,"held":{"approval":"apr_1","url":"http://h/api/approvals/apr_1","reason":"sensitive",
            "expires_at":"2026-01-01T00:15:00.000Z"},"result":"","output":null,"proof":{"invocation_id":"inv_1","did":""},
            "cost":0.0,"warnings":[]}"#,
        );
        assert_eq!(
            held.notes(),
            [
                "callbook: the call waits for a person until 2026-01-01T00:15:00.000Z (sensitive)",
                "nothing was fired; once `callbook approvals approve apr_1` was said, the same call again is",
                "HELD · inv_1"
            ]
        );
    }

    #[test]
    fn a_failure_is_told_first() {
        let failed = invocation(
            r#"{"ok":false,"ran":true,"replayed":true,"result":"ERR:http:503:x","output":null,"cost":0.25,"warnings":[],
            "error":{"code":"http:503","message":"the upstream answered 503","upstream_status":503,"retryable":true,"where":"STEP"},
            "proof":{"invocation_id":"inv_1","did":"FAILED — W"}}"#,
        );
        assert_eq!(
            failed.notes(),
            [
                "callbook: http:503 at STEP: the upstream answered 503 (the same call may succeed later)",
                "FAILED · inv_1 · stored answer, nothing fired · $0.25"
            ]
        );
    }
}
