//! `callbook token narrow`: by the gateway, or with the holder's key and nobody else.

use callbook_domain::invocation::uuid_at;
use callbook_domain::key::Key;
use callbook_domain::token::{Claims, Link, Prefix, argument_hash, mint, parse};
use clap::Args;
use reqwest::Method;
use serde_json::Value;

use super::super::gateway::Gateway;
use super::super::screen::Screen;
use super::super::trouble::Trouble;
use super::super::{Ended, Verdict};
use super::scope::Scope;
use super::{holder, now, own, refused, show_made};

#[derive(Debug, Args)]
#[command(
    after_help = "What is not said stays as it is. The gateway makes a bearer token, for callers without a crypto library. With
--offline the token gets one more link, signed with the key of its holder; nobody is asked.

Examples:
  CALLBOOK_KEY=$TOKEN callbook token narrow TEMPERATURE --uses 1
  CALLBOOK_KEY=$TOKEN callbook token narrow --offline --holder-key alice.jwk --to bob.jwk TEMPERATURE --ttl 60"
)]
pub struct Narrow {
    #[command(flatten)]
    scope: Scope,
    /// Pin the keys to the contracts that they have now
    #[arg(long, conflicts_with = "offline")]
    pin: bool,
    /// It may travel in an address, as share=
    #[arg(long, conflicts_with = "offline")]
    share: bool,
    /// What it is for
    #[arg(long, value_name = "TEXT", conflicts_with = "offline")]
    purpose: Option<String>,
    /// Sign the narrower token here
    #[arg(long, requires = "holder_key")]
    offline: bool,
    /// File with the private key of the token's holder
    #[arg(long, value_name = "FILE", requires = "offline")]
    holder_key: Option<String>,
    /// File with the public key of the new holder [default: the same holder]
    #[arg(long, value_name = "FILE", requires = "offline")]
    to: Option<String>,
    /// Greatest depth of what is derived from it
    #[arg(long, value_name = "N", requires = "offline", value_parser = clap::value_parser!(u8).range(0..=3))]
    max_depth: Option<u8>,
}

impl Narrow {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        if let Some(file) = &self.holder_key {
            let longer = self.derived(own(gateway)?, file)?;
            return screen.text(&format!("{longer}\n")).map(|()| Verdict::Done);
        }
        let more = [
            ("pin", self.pin.then_some(Value::Bool(true))),
            ("url", self.share.then_some(Value::Bool(true))),
            ("purpose", self.purpose.map(Value::from)),
        ];
        let mut fields = self.scope.fields()?;
        fields.extend(more.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
        let body = Value::from(fields).to_string();
        let answer = gateway.send(gateway.json(Method::POST, &["api", "tokens", "narrow"], body)?).await?;
        show_made(&answer, screen)
    }

    /// The token with one more link.
    fn derived(&self, token: &str, holder_key: &str) -> Result<String, Trouble> {
        let key = holder::private(holder_key)?;
        let to = self.to.as_deref().map(holder::public).transpose()?.unwrap_or_else(|| key.public());
        let parsed = parse(token).map_err(|fault| refused(&fault))?;
        let parent = parsed.last().expect("a text has at least one link").peek().map_err(|fault| refused(&fault))?;
        let now = now();
        let mut claims = mint::child(&parent, uuid_at(now), now, to);
        self.narrow(&parent, &mut claims)?;
        mint::derived(token, &claims, &key).map_err(|fault| refused(&fault))
    }

    fn narrow(&self, parent: &Link, claims: &mut Claims) -> Result<(), Trouble> {
        self.cover(parent, claims)?;
        let scope = &self.scope;
        if let Some(ttl) = scope.ttl {
            claims.exp = claims.iat + i64::from(ttl);
        }
        if let Some(depth) = self.max_depth {
            claims.del.max = depth;
        }
        let cap = &mut claims.cap;
        cap.risk = scope.risk.unwrap_or(cap.risk);
        cap.effect = scope.effect.unwrap_or(cap.effect);
        cap.max_bytes = scope.max_bytes.or(cap.max_bytes);
        cap.uses = scope.uses.or(cap.uses);
        cap.owner_gate |= scope.owner_gate;
        if let Some(sent) = scope.fixed()? {
            cap.body = Some(argument_hash(&sent).map_err(|fault| refused(&fault))?);
        }
        Ok(())
    }

    /// Keys and prefixes where some were named, each key with the pin that it has. A pinned key that a prefix still
    /// reaches is named with its pin, as the rules ask.
    fn cover(&self, parent: &Link, claims: &mut Claims) -> Result<(), Trouble> {
        let scope = &self.scope;
        if scope.keys.is_empty() && scope.prefixes.is_empty() {
            return Ok(());
        }
        let above = &parent.claims.cap;
        let keys = scope.keys.iter().map(|key| Key::parse(key)).collect::<Result<Vec<Key>, _>>();
        let keys = keys.map_err(|fault| refused(&fault))?;
        let prefix = |text: &String| {
            Prefix::parse(text).ok_or_else(|| Trouble::usage(format!("{text} is not the beginning of a key")))
        };
        claims.cap.prefixes = scope.prefixes.iter().map(prefix).collect::<Result<_, _>>()?;
        let reached = |key: &Key| claims.cap.prefixes.iter().any(|prefix| prefix.covers(key));
        let pinned = above.keys.iter().filter(|(key, pin)| pin.is_some() && reached(key));
        let pinned: Vec<_> = pinned.map(|(key, pin)| (key.clone(), *pin)).collect();
        claims.cap.keys = keys.into_iter().map(|key| (key.clone(), above.pin(&key))).chain(pinned).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use callbook_domain::token::Digest;
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::super::holder::tests::{file, root};
    use super::*;

    fn derived(line: &[&str]) -> Result<Claims, String> {
        let (alice, bob) = (file(2), file(3));
        let command = Narrow::augment_args(Command::new("narrow").no_binary_name(true));
        let own = ["--offline", "--holder-key", alice.path().to_str().unwrap(), "--to", bob.path().to_str().unwrap()];
        let matches = command.try_get_matches_from(own.iter().chain(line)).unwrap();
        let narrow = Narrow::from_arg_matches(&matches).unwrap();
        let token = root();
        let longer =
            narrow.derived(&token, alice.path().to_str().unwrap()).map_err(|trouble| trouble.lines().join(" "))?;
        assert!(longer.starts_with(&format!("{token}~")));
        Ok(parse(&longer).unwrap().pop().unwrap().peek().unwrap().claims)
    }

    #[test]
    fn a_holder_narrows_its_token_alone() {
        let pin = Some(Digest::of("contract"));
        let claims = derived(&["PINNED", "--uses", "2", "--ttl", "60", "--body", "a|b", "--owner-gate"]).unwrap();
        assert_eq!(claims.cap.keys, [(Key::parse("PINNED").unwrap(), pin)].into());
        assert_eq!((claims.cap.uses, claims.life(), claims.cap.owner_gate, claims.del.d), (Some(2), 60, true, 1));
        assert_eq!(claims.cap.body, Some(Digest::of("\"a|b\"")));
        assert!(claims.cap.prefixes.is_empty());
    }

    #[test]
    fn a_pinned_key_that_a_prefix_reaches_keeps_its_pin() {
        let claims = derived(&["--prefix", "PIN"]).unwrap();
        assert_eq!(claims.cap.keys.len(), 1);
        assert_eq!(derived(&[]).unwrap().cap, parse(&root()).unwrap()[0].peek().unwrap().claims.cap);
    }

    #[test]
    fn what_is_wider_is_refused_here() {
        for (line, error) in [
            (&["--uses", "6"][..], "widened:uses"),
            (&["--ttl", "100000"], "widened:exp"),
            (&["--risk", "high"], "widened:risk"),
            (&["--max-depth", "3"], "widened:del"),
        ] {
            let said = derived(line).unwrap_err();
            assert!(said.contains(error), "{said}");
        }
    }
}
