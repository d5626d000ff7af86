//! What a call would do, before it is made.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::gateway::Answer;
use super::screen::{Form, Screen};
use super::text::{BAD, GOOD, Pairs, visible};
use super::{Ended, Verdict};

/// The outbound request of a call, or what would run in its place.
#[derive(Debug, Deserialize)]
pub struct Shape {
    method: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    body: Option<Value>,
    secret: Option<Secret>,
    verdict: String,
    effect: Option<String>,
    risk: Option<String>,
    plan: Option<Box<RawValue>>,
    #[serde(default)]
    warnings: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Secret {
    name: String,
    allowed: bool,
}

/// Writes the shape; it ends well where the call would be let through.
pub fn show(answer: &Answer, screen: &Screen) -> Ended {
    let shape: Shape = answer.read()?;
    let verdict = Verdict::of(shape.verdict == "allowed");
    if screen.form != Form::Text {
        return screen.json(&answer.body).map(|()| verdict);
    }
    screen.text(&shape.lines(screen))?;
    for warning in &shape.warnings {
        screen.note(&visible(&format!("warning: {warning}")));
    }
    Ok(verdict)
}

impl Shape {
    /// It for people.
    pub fn lines(&self, screen: &Screen) -> String {
        let mut pairs = Pairs::default();
        if let (Some(method), Some(url)) = (&self.method, &self.url) {
            pairs.add("request", format!("{method} {url}"));
        }
        let header = |(name, value): (&String, &Value)| format!("{name}: {}", plain(value));
        pairs.add("headers", self.headers.iter().map(header).collect::<Vec<_>>().join("\n"));
        pairs.maybe("body", self.body.as_ref().map(plain));
        pairs.maybe("plan", self.plan.as_ref().map(|plan| plan.get()));
        if let Some(Secret { name, allowed }) = &self.secret {
            let style = if *allowed { GOOD } else { BAD };
            pairs.styled(
                "secret",
                format!("{name} ({})", if *allowed { "may go there" } else { "may not go there" }),
                style,
            );
        }
        let words = [&self.effect, &self.risk];
        pairs.add("effect", words.into_iter().flatten().cloned().collect::<Vec<_>>().join(" · risk "));
        pairs.styled("verdict", self.verdict.as_str(), if self.verdict == "allowed" { GOOD } else { BAD });
        pairs.lines(screen)
    }
}

/// Text as it is, anything else as JSON.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::super::text::screen_of;
    use super::*;

    #[test]
    fn a_shape_shows_the_request_and_the_verdict() {
        let shape: Shape = serde_json::from_str(
            r#"{"ok":false,"ran":false,"method":"GET","url":"https://h/x?q=1","headers":{"accept":"a","x-n":"1"},"body":null,
            "secret":{"name":"XAI","allowed":false},"verdict":"owner_gate_required","effect":"read","risk":"high","plan":null,
            "proof":{"ok":false,"did":"DRY-RUN — X"},"warnings":[]}"#,
        )
        .unwrap();
        assert_eq!(
            shape.lines(&screen_of(80)),
            "  request  GET https://h/x?q=1\n  headers  accept: a\n           x-n: 1\n  \
             secret   XAI (may not go there)\n  effect   read · risk high\n  verdict  owner_gate_required\n"
        );
    }
}
