//! `callbook invoke`: run a row, shape a call, repair or replay an earlier one.

use std::time::Duration;

use clap::Args;
use reqwest::Method;
use serde::Serialize;
use serde_json::value::RawValue;

use super::gateway::Gateway;
use super::screen::Screen;
use super::trouble::Trouble;
use super::{Ended, input, invocation, shape};

/// How long the server lets a call take that says nothing.
const DEADLINE: Duration = Duration::from_secs(30);
/// How much longer than its deadline we wait for the answer to a call.
const GRACE: Duration = Duration::from_secs(15);

#[derive(Debug, Args)]
#[command(after_help = "What the row gives goes to standard output, its proof to standard error.

Examples:
  callbook invoke NOW
  callbook invoke WEATHER_NOW '37.77|-122.42'
  callbook invoke LOWER -- '-A body that begins with a dash'
  callbook invoke ROW_PUT --args '{\"row\":{\"key\":\"K\",\"type\":\"fn\"}}' --shape
  echo text | callbook invoke SHA256 -
  callbook invoke --replay inv_01ARZ3NDEKTSV4RRFFQ69G5FAV")]
pub struct Invoke {
    /// Key of the row
    #[arg(required_unless_present = "replay", conflicts_with = "replay")]
    key: Option<String>,
    /// Arguments as text with | between them; - reads standard input, without the last line end
    #[arg(conflicts_with = "replay")]
    body: Option<String>,
    /// Arguments as a JSON object (by name) or list (by position); - reads standard input
    #[arg(long, value_name = "JSON", conflicts_with_all = ["body", "replay"])]
    args: Option<String>,
    /// Build the whole outbound request and run nothing; ends with 1 where the call would be refused
    #[arg(long, conflicts_with_all = ["replay", "repairs"])]
    shape: bool,
    /// Name of this call: sent again within 24 h it gives the same answer and fires nothing
    #[arg(long, value_name = "NAME")]
    idempotency_key: Option<String>,
    /// How long to wait, in milliseconds [default: 30000]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    deadline_ms: Option<u64>,
    /// How long to wait for the decision of a call that is held, in milliseconds, within the deadline
    #[arg(long, value_name = "MS", conflicts_with_all = ["replay", "repairs"])]
    wait_ms: Option<u32>,
    /// The invocation that this call corrects
    #[arg(long, value_name = "INV", conflicts_with = "replay")]
    repairs: Option<String>,
    /// The invocation to run again
    #[arg(long, value_name = "INV")]
    replay: Option<String>,
}

/// The call as it is sent.
#[derive(Debug, Serialize)]
struct Call {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    shape: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    deadline_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wait_ms: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repairs: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replay: Option<String>,
}

impl Invoke {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let call = self.call()?;
        let patience = call.deadline_ms.map_or(DEADLINE, Duration::from_millis) + GRACE;
        let body = serde_json::to_vec(&call).map_err(|error| Trouble::usage(error.to_string()))?;
        let request = gateway.json(Method::POST, &["api", "dispatch"], body)?.timeout(patience);
        let answer = gateway.send(request).await?;
        if call.shape { shape::show(&answer, screen) } else { invocation::show(&answer, screen) }
    }

    fn call(self) -> Result<Call, Trouble> {
        Ok(Call {
            key: self.key,
            body: self.body.map(input::argument).transpose()?,
            args: self.args.map(input::argument).transpose()?.map(arguments).transpose()?,
            shape: self.shape,
            idempotency_key: self.idempotency_key,
            deadline_ms: self.deadline_ms,
            wait_ms: self.wait_ms,
            repairs: self.repairs,
            replay: self.replay,
        })
    }
}

/// Arguments that are sent as they are written.
fn arguments(text: String) -> Result<Box<RawValue>, Trouble> {
    let raw: Box<RawValue> = serde_json::from_str(text.trim())
        .map_err(|error| Trouble::usage(format!("--args is not JSON ({error}); text arguments go behind the key")))?;
    match raw.get().starts_with(['{', '[']) {
        true => Ok(raw),
        false => Err(Trouble::usage("--args is a JSON object or list; text arguments go behind the key")),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    fn parsed(line: &[&str]) -> Result<Invoke, clap::Error> {
        let command = Invoke::augment_args(Command::new("invoke").no_binary_name(true));
        command.try_get_matches_from(line).and_then(|matches| Invoke::from_arg_matches(&matches))
    }

    fn sent(line: &[&str]) -> String {
        serde_json::to_string(&parsed(line).unwrap().call().unwrap()).unwrap()
    }

    #[test]
    fn a_call_is_sent_with_what_was_said_and_nothing_else() {
        assert_eq!(sent(&["NOW"]), r#"{"key":"NOW"}"#);
        assert_eq!(sent(&["W", "37.77|-122.42", "--shape"]), r#"{"key":"W","body":"37.77|-122.42","shape":true}"#);
        assert_eq!(
            sent(&["W", "--idempotency-key", "a", "--deadline-ms", "50", "--repairs", "inv_1"]),
            r#"{"key":"W","idempotency_key":"a","deadline_ms":50,"repairs":"inv_1"}"#
        );
        assert_eq!(sent(&["W", "--wait-ms", "900"]), r#"{"key":"W","wait_ms":900}"#);
        assert_eq!(sent(&["--replay", "inv_1"]), r#"{"replay":"inv_1"}"#);
        assert_eq!(sent(&["W", "--", "-1|2"]), r#"{"key":"W","body":"-1|2"}"#);
    }

    #[test]
    fn arguments_keep_their_text() {
        assert_eq!(
            sent(&["W", "--args", r#" {"n":1.10,"m":9007199254740993, "n2":-0} "#]),
            r#"{"key":"W","args":{"n":1.10,"m":9007199254740993, "n2":-0}}"#
        );
        for bad in ["12", "\"a\"", "{", "", "{}{}"] {
            assert_eq!(parsed(&["W", "--args", bad]).unwrap().call().unwrap_err().code(), 2, "{bad}");
        }
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        for bad in [
            &[][..],
            &["W", "--replay", "inv_1"],
            &["W", "b", "--args", "{}"],
            &["--replay", "inv_1", "--shape"],
            &["--replay", "inv_1", "--repairs", "inv_2"],
            &["W", "-1"],
            &["W", "--deadline-ms", "0"],
        ] {
            assert!(parsed(bad).is_err(), "{bad:?}");
        }
    }
}
