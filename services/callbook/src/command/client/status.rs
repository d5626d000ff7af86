//! `callbook status`: whether the gateway answers, and to whom.

use clap::Args;
use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::gateway::{Answer, Gateway};
use super::map::Book;
use super::screen::{Form, Screen};
use super::text::{BAD, CARE, GOOD, PLAIN, Pairs};
use super::trouble::Trouble;
use super::{Ended, Verdict};

/// This program's version.
const VERSION: &str = env!("CARGO_PKG_VERSION");

#[derive(Debug, Args)]
#[command(
    after_help = "Ends with 0 where the gateway is ready and takes the key, 1 where not, 3 where nobody answers."
)]
pub struct Status {}

#[derive(Debug, Deserialize)]
struct Index {
    name: String,
    version: String,
}

/// What was found.
struct Found {
    version: String,
    health: Answer,
    ready: Answer,
    map: Result<Answer, Trouble>,
}

impl Status {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let index = gateway.get(&["api", "dispatch"], &[])?;
        let index: Index = gateway.send(index).await?.read()?;
        if index.name != "callbook" {
            return Err(Trouble::foreign(format!("{} is {} and not Callbook", gateway.url, index.name)));
        }
        let map = gateway.send(gateway.get(&["api", "dispatch"], &[("map", "1".to_owned())])?).await;
        if let Err(lost @ (Trouble::Unreachable { .. } | Trouble::Broken(_) | Trouble::Usage(_) | Trouble::Closed)) =
            map
        {
            return Err(lost);
        }
        let health = gateway.ask(gateway.get(&["healthz"], &[])?).await?;
        let ready = gateway.ask(gateway.get(&["readyz"], &[])?).await?;
        let found = Found { version: index.version, health, ready, map };
        match screen.form {
            Form::Text => screen.text(&found.lines(gateway, screen)?)?,
            Form::Json | Form::Raw => screen.json(found.json(gateway).to_string().as_bytes())?,
        }
        Ok(Verdict::of(found.ready.status == StatusCode::OK && found.map.is_ok()))
    }
}

impl Found {
    fn lines(&self, gateway: &Gateway, screen: &Screen) -> Result<String, Trouble> {
        let mut pairs = Pairs::default();
        pairs.add("url", gateway.url.as_str());
        let style = if self.version == VERSION { PLAIN } else { CARE };
        let this = if self.version == VERSION { String::new() } else { format!("  (this program is {VERSION})") };
        pairs.styled("version", format!("{}{this}", self.version), style);
        let alive = self.health.status == StatusCode::OK;
        pairs.styled("health", if alive { "ok" } else { "not ok" }, if alive { GOOD } else { BAD });
        let (ready, style) = ready(&self.ready);
        pairs.styled("ready", ready, style);
        pairs.add("key", gateway.credential.source.to_string());
        if gateway.is_key_exposed() {
            pairs.styled("careful", "the key goes over the network unencrypted; use https", CARE);
        }
        match &self.map {
            Ok(map) => pairs.add("book", map.read::<Book>()?.counts()),
            Err(trouble) => pairs.styled("book", trouble.lines().join("\n").trim_start_matches("callbook: "), BAD),
        };
        Ok(pairs.lines(screen))
    }

    fn json(&self, gateway: &Gateway) -> Value {
        let refused = |trouble: &Trouble| match trouble {
            Trouble::Refused(refusal) => embedded(&refusal.body),
            _ => Value::Null,
        };
        json!({
            "url": gateway.url.as_str(),
            "version": self.version,
            "client_version": VERSION,
            "key": gateway.credential.source.to_string(),
            "health": embedded(&self.health.body),
            "ready": embedded(&self.ready.body),
            "map": self.map.as_ref().map_or_else(refused, |map| embedded(&map.body)),
        })
    }
}

fn embedded(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or(Value::Null)
}

/// The parts of the server and how they are.
fn ready(answer: &Answer) -> (String, clap::builder::styling::Style) {
    let parts: Map<String, Value> = serde_json::from_slice(&answer.body).unwrap_or_default();
    let part = |(name, state): (&String, &Value)| Some(format!("{name} {}", state.as_str()?.replace('_', " ")));
    let parts: Vec<String> = parts.iter().filter_map(part).collect();
    let parts = if parts.is_empty() { String::new() } else { format!("  ({})", parts.join(", ")) };
    match answer.status {
        StatusCode::OK => (format!("yes{parts}"), GOOD),
        _ => (format!("no{parts}"), BAD),
    }
}

#[cfg(test)]
mod tests {
    use super::super::gateway::gateway_at;
    use super::super::text::screen_of;
    use super::*;

    fn answer(status: u16, body: &str) -> Answer {
        Answer { status: StatusCode::from_u16(status).unwrap(), body: body.into() }
    }

    fn found(map: Result<Answer, Trouble>) -> Found {
        let parts =
            r#"{"ready":false,"resolver":"serving","contract":"serving","gate":"serving","executor":"not_serving"}"#;
        Found { version: VERSION.into(), health: answer(200, r#"{"ok":true}"#), ready: answer(503, parts), map }
    }

    #[test]
    fn the_parts_and_the_counts_are_shown_and_never_the_key() {
        let gateway = gateway_at("http://book.example", "cbk_secret_0123456789");
        let map = answer(200, r#"{"counts":{"rows":1,"enabled":1,"registry":1,"mcp":1},"shelves":[]}"#);
        let found = found(Ok(map));
        let text = found.lines(&gateway, &screen_of(120)).unwrap();
        for line in [
            "  ready    no  (resolver serving, contract serving, gate serving, executor not serving)",
            "  key      from --key or CALLBOOK_KEY",
            "  careful  the key goes over the network unencrypted; use https",
            "  book     1 row · 1 enabled · 1 in the registry · 1 for planners",
        ] {
            assert!(text.lines().any(|own| own == line), "{line}\n{text}");
        }
        assert!(!format!("{text}{}", found.json(&gateway)).contains("0123456789"));
        assert_eq!(found.json(&gateway)["ready"]["executor"], "not_serving");
    }

    #[test]
    fn a_key_that_is_not_taken_is_said_in_the_place_of_the_counts() {
        let gateway = gateway_at("http://book.example", "cbk_secret_0123456789");
        let refused =
            gateway.refused(answer(401, r#"{"error":"unauthorized","message":"a credential is needed","ran":false}"#));
        let text = found(Err(refused)).lines(&gateway, &screen_of(120)).unwrap();
        assert!(text.contains("  book     unauthorized: a credential is needed\n"), "{text}");
    }
}
