//! `callbook token mint`.

use clap::Args;
use reqwest::Method;
use serde_json::{Map, Value};

use super::super::Ended;
use super::super::gateway::Gateway;
use super::super::screen::Screen;
use super::super::trouble::Trouble;
use super::scope::Scope;
use super::{holder, show_made};

#[derive(Debug, Args)]
#[command(
    after_help = "Without more words a token reads rows of low risk, for 15 minutes, and whoever has it may use it.

Examples:
  callbook token mint TEMPERATURE
  callbook token mint --prefix GITHUB_ --ttl 3600 --holder alice.jwk
  callbook token mint ORDER_SEND --pin --effect write --uses 1 --body '7|express'
  callbook token mint TEMPERATURE --uses 20 --share"
)]
pub struct Mint {
    #[command(flatten)]
    scope: Scope,
    /// Pin the keys to the contracts that they have now
    #[arg(long)]
    pin: bool,
    /// File with the holder's key as a JWK; only whoever has its private part may use the token
    #[arg(long, value_name = "FILE")]
    holder: Option<String>,
    /// It may travel in an address, as share=
    #[arg(long)]
    share: bool,
    /// What it is for
    #[arg(long, value_name = "TEXT")]
    purpose: Option<String>,
    /// For whom it is [default: the caller's name]
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    /// Audience name of executors that may take it; may be given several times
    #[arg(long, value_name = "NAME")]
    audience: Vec<String>,
    /// How often it may be derived from [default: 3 with a holder]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=3))]
    max_depth: Option<u8>,
}

impl Mint {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let body = Value::from(self.fields()?).to_string();
        let answer = gateway.send(gateway.json(Method::POST, &["api", "tokens"], body)?).await?;
        show_made(&answer, screen)
    }

    fn fields(self) -> Result<Map<String, Value>, Trouble> {
        let holder = self.holder.as_deref().map(holder::public).transpose()?;
        let more = [
            ("pin", self.pin.then_some(Value::Bool(true))),
            ("holder", holder.map(|key| key.jwk())),
            ("url", self.share.then_some(Value::Bool(true))),
            ("purpose", self.purpose.map(Value::from)),
            ("subject", self.subject.map(Value::from)),
            ("audience", (!self.audience.is_empty()).then(|| self.audience.into())),
            ("max_depth", self.max_depth.map(Value::from)),
        ];
        let mut fields = self.scope.fields()?;
        fields.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        Ok(fields)
    }
}
