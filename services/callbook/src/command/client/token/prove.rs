//! `callbook token prove`: the holder's proof for one call.

use callbook_domain::arguments::Sent;
use callbook_domain::invocation::uuid_at;
use callbook_domain::key::Key;
use callbook_domain::token::{Claims, Proof, argument_hash, parse};
use clap::Args;

use super::super::gateway::Gateway;
use super::super::screen::Screen;
use super::super::trouble::Trouble;
use super::super::{Ended, Verdict, input};
use super::scope::json;
use super::{holder, now, own, refused};

#[derive(Debug, Args)]
#[command(
    after_help = "A proof is good for 30 seconds, for these arguments and for one call: its id is the call's idempotency key.

Example:
  curl $CALLBOOK_URL/api/dispatch -H \"authorization: Cap $CALLBOOK_KEY\" \\
    -H \"cap-proof: $(callbook token prove TEMPERATURE '1|2' --holder-key alice.jwk)\" \\
    -H 'content-type: application/json' -d '{\"key\":\"TEMPERATURE\",\"body\":\"1|2\"}'"
)]
pub struct Prove {
    /// Key of the row that is called
    key: String,
    /// Its arguments as text with | between them; - reads standard input
    body: Option<String>,
    /// Its arguments as a JSON object or list, as they are sent
    #[arg(long, value_name = "JSON", conflicts_with = "body")]
    args: Option<String>,
    /// File with the private key of the token's holder
    #[arg(long, value_name = "FILE")]
    holder_key: String,
    /// Audience name of the executor [default: the token's, where it has one alone]
    #[arg(long, value_name = "NAME")]
    audience: Option<String>,
    /// Name of the call [default: a new one]
    #[arg(long, value_name = "NAME")]
    id: Option<String>,
}

impl Prove {
    pub fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let proof = self.proof(own(gateway)?)?;
        screen.text(&format!("{proof}\n")).map(|()| Verdict::Done)
    }

    fn proof(self, token: &str) -> Result<String, Trouble> {
        let key = holder::private(&self.holder_key)?;
        let links = parse(token).map_err(|fault| refused(&fault))?;
        let leaf = links.last().expect("a text has at least one link").peek().map_err(|fault| refused(&fault))?;
        if leaf.claims.cnf != Some(key.public()) {
            return Err(Trouble::usage(format!("{} is not the key of the token's holder", self.holder_key)));
        }
        let audience = self.audience.map_or_else(|| only_audience(&leaf.claims), Ok)?;
        let body = self.body.map(input::argument).transpose()?;
        let args = self.args.as_deref().map(json).transpose()?;
        let sent = Sent::new(body, args).map_err(|fault| refused(&fault))?;
        let now = now();
        let proof = Proof {
            ath: leaf.hash,
            aud: audience,
            iat: now.unix_timestamp(),
            jti: self.id.unwrap_or_else(|| uuid_at(now).to_string()),
            key: Key::parse(&self.key).map_err(|fault| refused(&fault))?,
            arg: argument_hash(&sent).map_err(|fault| refused(&fault))?,
        };
        Ok(proof.sign(&key))
    }
}

fn only_audience(claims: &Claims) -> Result<String, Trouble> {
    match claims.aud.as_slice() {
        [only] => Ok(only.clone()),
        several => Err(Trouble::usage(format!("say --audience, one of {}", several.join(", ")))),
    }
}

#[cfg(test)]
mod tests {
    use callbook_domain::token::{Digest, Expect, Keys, PrivateKey, ProofInput, verify};

    use super::super::holder::tests::{file, root};
    use super::*;

    fn prove(key: u8, body: Option<&str>, args: Option<&str>) -> Result<(String, String), Trouble> {
        let (token, file) = (root(), file(key));
        let proof = Prove {
            key: "PINNED".into(),
            body: body.map(str::to_owned),
            args: args.map(str::to_owned),
            holder_key: file.path().to_str().unwrap().into(),
            audience: None,
            id: Some("call-1".into()),
        };
        proof.proof(&token).map(|proof| (token, proof))
    }

    #[test]
    fn a_proof_is_good_for_what_was_typed() {
        let mut keys = Keys::default();
        keys.add(PrivateKey::from_seed(&[1; 32]).public());
        let expect = Expect { audience: "callbook", iss: "here", now: now(), max_ttl: time::Duration::seconds(900) };
        for (body, args, canonical) in [
            (None, None, "null"),
            (Some("a|b"), None, "\"a|b\""),
            (None, Some(r#"{"b":1.0,"a":[]}"#), r#"{"a":[],"b":1}"#),
        ] {
            let (token, text) = prove(2, body, args).unwrap();
            let input = ProofInput { text: &text, key: "PINNED", arg: Digest::of(canonical) };
            assert_eq!(verify(&token, &keys, &expect, Some(&input)).unwrap().proof.as_deref(), Some("call-1"));
        }
    }

    #[test]
    fn nothing_is_proved_with_another_key_or_for_numbers_that_readers_disagree_about() {
        assert!(prove(3, None, None).unwrap_err().lines()[0].contains("not the key of the token's holder"));
        let inexact = prove(2, None, Some(r#"{"n":9007199254740993}"#)).unwrap_err();
        assert!(inexact.lines()[0].contains("args_not_canonical"), "{inexact:?}");
    }
}
