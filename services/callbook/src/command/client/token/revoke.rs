//! `callbook token revoke`.

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::super::gateway::Gateway;
use super::super::screen::{Form, Screen};
use super::super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  callbook token revoke 0193a000-0000-7000-8000-000000000001 --reason 'laptop lost'
  callbook token revoke --subject agent:alice")]
pub struct Revoke {
    #[command(flatten)]
    what: What,
    /// Why, for people
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// What is taken back.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// Id of one link: it and all that was derived from it
    jti: Option<String>,
    /// Id of a root: it and all that was derived from it, by holders or by the gate
    #[arg(long, value_name = "JTI")]
    root: Option<String>,
    /// Thumbprint of a holder's key: every token with a link of that holder
    #[arg(long, value_name = "THUMBPRINT")]
    holder: Option<String>,
    /// Every token that was issued for this subject
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// Every token that this key signed
    #[arg(long, value_name = "KID")]
    kid: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Revoked {
    revoked: u32,
}

impl Revoke {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let what = self.what;
        let named = [
            ("jti", what.jti),
            ("root", what.root),
            ("holder", what.holder),
            ("subject", what.subject),
            ("kid", what.kid),
            ("reason", self.reason),
        ];
        let fields: Map<String, Value> =
            named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
        let body = Value::from(fields).to_string();
        let answer = gateway.send(gateway.json(Method::POST, &["api", "tokens", "revoke"], body)?).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let Revoked { revoked } = answer.read()?;
        screen.text(if revoked > 0 { "revoked\n" } else { "was revoked before\n" }).map(|()| Verdict::Done)
    }
}
