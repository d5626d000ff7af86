//! `callbook token explain`.

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::super::gateway::Gateway;
use super::super::page::given;
use super::super::screen::{Form, Screen};
use super::super::text::{BAD, GOOD, Pairs};
use super::super::trouble::Trouble;
use super::super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(after_help = "With a key it ends with 1 where a call of that row would be refused.

Examples:
  CALLBOOK_KEY=$TOKEN callbook token explain
  CALLBOOK_KEY=$TOKEN callbook token explain TEMPERATURE")]
pub struct Explain {
    /// Key of a row that the token might call
    key: Option<String>,
}

/// Verdicts on a call that is not refused: it runs, or waits for a person.
const GOES_ON: [&str; 2] = ["allowed", "held"];

#[derive(Debug, Deserialize)]
struct Explained {
    claims: Vec<Value>,
    expires_at: Option<String>,
    uses_left: Option<u64>,
    needs_proof: bool,
    verdict: Option<String>,
}

impl Explain {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let query = given([("key", self.key)]);
        let answer = gateway.send(gateway.get(&["api", "tokens", "explain"], &query)?).await?;
        let explained: Explained = answer.read()?;
        let ended = Verdict::of(explained.verdict.as_deref().is_none_or(|verdict| GOES_ON.contains(&verdict)));
        match screen.form {
            Form::Text => screen.text(&explained.lines(screen)?)?,
            Form::Json | Form::Raw => screen.json(&answer.body)?,
        }
        Ok(ended)
    }
}

impl Explained {
    fn lines(&self, screen: &Screen) -> Result<String, Trouble> {
        let leaf = self.claims.last().ok_or_else(|| Trouble::foreign("the answer has no claims"))?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let cap = &leaf["cap"];
        let mut pairs = Pairs::default();
        pairs.maybe("token", text(&leaf["jti"])).maybe("subject", text(&leaf["sub"])).add("covers", covers(cap));
        pairs.maybe("effect", text(&cap["effect"])).maybe("risk", text(&cap["risk"]));
        pairs.maybe("until", self.expires_at.clone());
        pairs.add("uses left", self.uses_left.map_or_else(|| "not counted".to_owned(), |left| left.to_string()));
        let limits = [("max_bytes", "bytes"), ("body", "arguments")];
        for (claim, name) in limits {
            pairs.maybe(name, (!cap[claim].is_null()).then(|| text(&cap[claim]).unwrap_or(cap[claim].to_string())));
        }
        let flags = [
            (self.needs_proof, "each call needs the holder's proof"),
            (cap["owner_gate"] == true, "each call waits for a person"),
            (cap["url"] == true, "it may travel in an address"),
        ];
        for (_, note) in flags.iter().filter(|(holds, _)| *holds) {
            pairs.add("note", *note);
        }
        if let Some(verdict) = &self.verdict {
            pairs.styled("verdict", verdict, if GOES_ON.contains(&verdict.as_str()) { GOOD } else { BAD });
        }
        Ok(pairs.lines(screen))
    }
}

/// Keys and prefixes on one line; a pinned key is marked.
pub fn covers(cap: &Value) -> String {
    let keys = cap["keys"].as_object().into_iter().flatten();
    let keys = keys.map(|(key, pin)| if pin.is_null() { key.clone() } else { format!("{key} (pinned)") });
    let prefixes = cap["prefixes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let prefixes = prefixes.map(|prefix| if prefix.is_empty() { "all rows".to_owned() } else { format!("{prefix}…") });
    keys.chain(prefixes).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::text::screen_of;
    use super::*;

    #[test]
    fn a_token_is_told_on_a_few_lines() {
        let cap = json!({"keys": {"A": "sha256:1", "B": null}, "prefixes": ["C_"], "risk": "low", "effect": "read",
            "max_bytes": 9, "url": true});
        let explained = Explained {
            claims: vec![json!({"jti": "x"}), json!({"jti": "y", "sub": "alice", "cap": cap})],
            expires_at: Some("2026-12-01T00:00:00.000Z".into()),
            uses_left: Some(2),
            needs_proof: false,
            verdict: Some("risk_ceiling:low<row:high".into()),
        };
        let lines = explained.lines(&screen_of(100)).unwrap();
        for line in [
            "  token      y",
            "  covers     A (pinned), B, C_…",
            "  uses left  2",
            "  bytes      9",
            "  note       it may travel in an address",
            "  verdict    risk_ceiling:low<row:high",
        ] {
            assert!(lines.lines().any(|own| own == line), "{line}\n{lines}");
        }
    }
}
