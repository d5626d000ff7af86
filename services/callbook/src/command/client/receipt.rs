//! `callbook receipt`: what happened, as the engine has it on record.

use callbook_domain::contract::clean;
use clap::Args;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::gateway::{Answer, Gateway};
use super::invocation::Failure;
use super::screen::{Form, Screen};
use super::text::{BAD, BOLD, CARE, GOOD, Pairs};
use super::trouble::Trouble;
use super::value::{Content, Packed};
use super::{Ended, Verdict};

/// How much of what went in and out is shown, in characters.
const SHOWN: usize = 600;

#[derive(Debug, Args)]
#[command(after_help = "-o raw writes what the row gave, byte for byte, without calling it again.

Examples:
  callbook receipt inv_01ARZ3NDEKTSV4RRFFQ69G5FAV
  callbook receipt inv_01ARZ3NDEKTSV4RRFFQ69G5FAV -o raw > picture.png")]
pub struct Receipt {
    /// Id of the invocation
    #[arg(value_name = "INV")]
    id: String,
    /// Only the confirmation that everybody may see
    #[arg(long)]
    public: bool,
}

/// The whole record and the public one; the public one lacks most.
#[derive(Debug, Deserialize)]
struct Record {
    invocation_id: String,
    status: Option<String>,
    key: String,
    #[serde(default)]
    contract_hash: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    duration_ms: Option<i64>,
    revision: Option<i64>,
    #[serde(rename = "type")]
    row_type: Option<String>,
    effect: Option<String>,
    risk: Option<String>,
    actor: Option<String>,
    runner: Option<String>,
    pool: Option<String>,
    trace: Option<String>,
    mode: Option<String>,
    input: Option<Packed>,
    request: Option<Packed>,
    response: Option<Packed>,
    output: Option<Packed>,
    error: Option<Failure>,
    upstream_status: Option<u16>,
    cost_usd: Option<f64>,
    parent: Option<String>,
    #[serde(default)]
    children: Vec<String>,
    repairs: Option<String>,
    #[serde(default)]
    repaired_by: Vec<String>,
    replay_of: Option<String>,
    #[serde(default)]
    erased: bool,
    commitments: Option<Commitments>,
    #[serde(default)]
    events: Vec<Event>,
}

#[derive(Debug, Deserialize)]
struct Commitments {
    input: Option<String>,
    output: Option<String>,
    request: Option<String>,
    response: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Event {
    kind: String,
    at: Option<String>,
    #[serde(rename = "body")]
    _body: Option<Box<RawValue>>,
}

impl Receipt {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let has_key = gateway.credential.secret.is_some();
        let is_public = self.public || !has_key;
        let verb = if is_public { "confirm" } else { "receipt" };
        let answer = gateway.send(gateway.get(&["api", "dispatch"], &[(verb, self.id.clone())])?).await?;
        match screen.form {
            Form::Json => screen.json(&answer.body)?,
            Form::Raw => output(&answer, screen, &self.id)?,
            Form::Text => screen.text(&answer.read::<Record>()?.lines(screen))?,
        }
        if is_public && !self.public {
            screen.note("without a key this is the public confirmation; set CALLBOOK_KEY for the whole receipt");
        }
        Ok(Verdict::Done)
    }
}

fn output(answer: &Answer, screen: &Screen, id: &str) -> Result<(), Trouble> {
    let record: Record = answer.read()?;
    let erased = record.erased;
    let missing = if erased { "the output was erased" } else { "there is no output in this receipt" };
    let content = record.output.and_then(Packed::content).ok_or_else(|| Trouble::Broken(missing.to_owned()))?;
    screen.raw(content.bytes(), &format!("callbook receipt {id} -o raw > file"))
}

impl Record {
    fn lines(self, screen: &Screen) -> String {
        let status = self.status.clone().unwrap_or_else(|| "on record".to_owned());
        let style = match status.as_str() {
            "PROVEN_MATERIAL_RESULT" => GOOD,
            "DENIED" | "UNKNOWN" => BAD,
            _ => CARE,
        };
        let head =
            format!("{}  {}\n", screen.paint.with(BOLD, &clean(&self.key)), screen.paint.with(style, &clean(&status)));
        let mut pairs = Pairs::default();
        self.what_happened(&mut pairs);
        self.relations(&mut pairs);
        self.commitments(&mut pairs);
        self.contents(&mut pairs);
        head + &pairs.lines(screen)
    }

    fn what_happened(&self, pairs: &mut Pairs) {
        let took = self.duration_ms.map(|ms| format!("  ({ms} ms)")).unwrap_or_default();
        pairs.add("invocation", self.invocation_id.as_str());
        pairs.maybe("started", self.started_at.clone());
        pairs.maybe("ended", self.ended_at.as_ref().map(|at| format!("{at}{took}")));
        pairs.maybe("actor", self.actor.clone());
        let risk = self.risk.as_ref().map(|risk| format!("risk {risk}"));
        let revision = self.revision.map(|revision| format!("revision {revision}"));
        pairs.add("row", words([self.row_type.clone(), self.effect.clone(), risk, revision]));
        let pool = self.pool.as_ref().filter(|name| !name.is_empty()).map(|pool| format!("pool {pool}"));
        pairs.add("ran on", words([self.runner.clone().filter(|name| !name.is_empty()), pool]));
        pairs.add("contract", self.contract_hash.as_str());
        pairs.maybe("upstream", self.upstream_status.map(|status| format!("HTTP {status}")));
        if let Some(error) = &self.error {
            pairs.styled("error", error.sentence(), BAD);
        }
        pairs.maybe("cost", self.cost_usd.filter(|cost| *cost > 0.0).map(|cost| format!("${cost}")));
        pairs.maybe("mode", self.mode.clone().filter(|mode| mode != "durable"));
        pairs.maybe("trace", self.trace.clone());
    }

    fn relations(&self, pairs: &mut Pairs) {
        pairs.maybe("step of", self.parent.clone());
        pairs.add("steps", self.children.join("\n"));
        pairs.maybe("corrects", self.repairs.clone());
        pairs.add("corrected by", self.repaired_by.join("\n"));
        pairs.maybe("runs again", self.replay_of.clone());
        let event = |event: &Event| words([event.at.clone(), Some(event.kind.clone())]);
        pairs.add("log", self.events.iter().map(event).collect::<Vec<_>>().join("\n"));
    }

    fn commitments(&self, pairs: &mut Pairs) {
        let Some(made) = &self.commitments else { return };
        let each =
            [("in", &made.input), ("out", &made.output), ("request", &made.request), ("response", &made.response)];
        let lines = each.iter().filter_map(|(name, made)| Some(format!("{name} {}", made.as_ref()?)));
        pairs.add("committed", lines.collect::<Vec<_>>().join("\n"));
    }

    fn contents(self, pairs: &mut Pairs) {
        if self.erased {
            pairs.add("contents", "erased");
        }
        let each =
            [("input", self.input), ("request", self.request), ("response", self.response), ("output", self.output)];
        for (name, packed) in each {
            pairs.maybe(name, packed.and_then(Packed::content).map(|content: Content| content.summary(SHOWN)));
        }
    }
}

fn words<const N: usize>(words: [Option<String>; N]) -> String {
    words.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use super::super::text::screen_of;
    use super::*;

    #[test]
    fn the_public_record_is_short() {
        let record: Record = serde_json::from_str(
            r#"{"confirmed":true,"status":"PROVEN_MATERIAL_RESULT","invocation_id":"inv_1","key":"NOW","contract_hash":"sha256:a",
            "started_at":"2026-01-01T00:00:00.000Z","ended_at":null,"commitments":{"input":"c1:a","output":null,"request":null,
            "response":null},"mode":"durable"}"#,
        )
        .unwrap();
        assert_eq!(
            record.lines(&screen_of(80)),
            "NOW  PROVEN_MATERIAL_RESULT\n  invocation  inv_1\n  started     2026-01-01T00:00:00.000Z\n  \
             contract    sha256:a\n  committed   in c1:a\n"
        );
    }

    #[test]
    fn the_whole_record_tells_what_went_in_and_out() {
        let record: Record = serde_json::from_str(
            r#"{"invocation_id":"inv_1","status":"PROVEN_ATTEMPT_NO_MATERIAL_RESULT","key":"W","type":"http","revision":7,
            "contract_hash":"sha256:a","text_hash":"sha256:b","effect":"read","risk":"low","actor":"owner:terminal-key","lineage":[],
            "runner":"http","pool":"default","trace":"","started_at":"s","ended_at":"e","duration_ms":3,
            "input":{"media_type":"text/plain","text":"1|2"},"request":null,"response":null,
            "output":{"base64":"/w=="},"error":{"code":"http:401","message":"no","upstream_status":401,"retryable":false},
            "upstream_status":401,"commitments":{},"nonces":{},"fingerprints":{},"material":false,"waste":true,"cost_usd":0.0,
            "parent":null,"children":["inv_2"],"repairs":null,"repaired_by":[],"replay_of":null,"mode":"durable","erased":false,
            "events":[{"kind":"intent","at":"s","body":{}},{"kind":"result","at":"e","body":{}}]}"#,
        )
        .unwrap();
        let text = record.lines(&screen_of(80));
        for line in [
            "  row         http · read · risk low · revision 7",
            "  ended       e  (3 ms)",
            "  error       http:401: no",
            "  steps       inv_2",
            "              e · result",
            "  input       1|2",
            "  output      1 bytes that are not text",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
    }
}
