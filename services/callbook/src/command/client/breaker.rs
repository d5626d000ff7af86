//! `callbook breaker`: credentials that their upstream refused too often.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Deserialize;

use super::gateway::Gateway;
use super::screen::{Form, Screen};
use super::text::visible;
use super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(after_help = "Example:\n  callbook breaker reset GROK_MODELS")]
pub struct Breaker {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Let calls with a row's credential out again
    Reset(Reset),
}

#[derive(Debug, Args)]
struct Reset {
    /// Key of a row that names the credential
    row: String,
}

#[derive(Debug, Deserialize)]
struct Cleared {
    key: String,
    cleared: u32,
}

impl Breaker {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let Action::Reset(Reset { row }) = self.action;
        let request = gateway.request(Method::POST, &["api", "directory", &row, "breaker", "reset"])?;
        let answer = gateway.send(request).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let Cleared { key, cleared } = answer.read()?;
        let said = match cleared {
            0 => format!("the credential of {key} had no failures on record\n"),
            _ => format!("the credential of {key} is believed again\n"),
        };
        screen.text(&visible(&said)).map(|()| Verdict::Done)
    }
}
