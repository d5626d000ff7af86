//! `callbook stamp`: the digest of the catalogue that the caller sees.

use clap::Args;
use serde::Deserialize;

use super::gateway::Gateway;
use super::screen::{Form, Screen};
use super::text::{Pairs, visible};
use super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(after_help = "Equal catalogues have equal stamps, on every replica and at every revision.")]
pub struct Stamp {}

#[derive(Debug, Deserialize)]
struct Given {
    stamp: String,
    count: u64,
    revision: i64,
}

impl Stamp {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let answer = gateway.send(gateway.get(&["api", "directory:stamp"], &[])?).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let given: Given = answer.read()?;
        let mut pairs = Pairs::default();
        pairs.add("stamp", visible(&given.stamp));
        pairs.add("rows", given.count.to_string());
        pairs.add("revision", given.revision.to_string());
        screen.text(&pairs.lines(screen)).map(|()| Verdict::Done)
    }
}
