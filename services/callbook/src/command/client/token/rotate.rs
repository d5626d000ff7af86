//! `callbook token rotate`.

use clap::Args;
use reqwest::Method;
use serde::Deserialize;

use super::super::gateway::Gateway;
use super::super::screen::{Form, Screen};
use super::super::text::{BOLD, Cell, DIM, table};
use super::super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(
    after_help = "The next key signs from now on. Tokens of the one before stay good until they end; to end them at once,
`callbook token revoke --kid`."
)]
pub struct Rotate {}

#[derive(Debug, Deserialize)]
struct Rotated {
    keys: Vec<Key>,
}

#[derive(Debug, Deserialize)]
struct Key {
    kid: String,
    state: Option<String>,
}

impl Rotate {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let request = gateway.request(Method::POST, &["api", "tokens", "keys", "rotate"])?;
        let answer = gateway.send(request).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let rotated: Rotated = answer.read()?;
        let cells = |key: &Key| vec![Cell::new(&key.kid, BOLD), Cell::new(key.state.as_deref().unwrap_or("?"), DIM)];
        let rows: Vec<Vec<Cell>> = rotated.keys.iter().map(cells).collect();
        screen.text(&table(&rows, screen)).map(|()| Verdict::Done)
    }
}
