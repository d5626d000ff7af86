//! What a token covers, as it is typed.

use callbook_domain::arguments::Sent;
use callbook_domain::row::{Effect, Risk};
use clap::Args;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::trouble::Trouble;

/// The limits of a token. What is not said is left out.
#[derive(Debug, Default, Args)]
pub struct Scope {
    /// Keys of the rows that it covers
    #[arg(value_name = "KEY")]
    pub keys: Vec<String>,
    /// Rows whose keys begin so; '' is all of them
    #[arg(long = "prefix", value_name = "PREFIX")]
    pub prefixes: Vec<String>,
    /// Life in seconds [default: 900]
    #[arg(long, value_name = "SECONDS")]
    pub ttl: Option<u32>,
    /// Most calls, of it and of all that is derived from it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub uses: Option<u64>,
    /// Highest risk of a row: low or high
    #[arg(long, value_parser = risk)]
    pub risk: Option<Risk>,
    /// Gravest effect of a row: read, write or destructive
    #[arg(long, value_parser = effect)]
    pub effect: Option<Effect>,
    /// Most bytes of a call's arguments
    #[arg(long, value_name = "BYTES")]
    pub max_bytes: Option<u64>,
    /// The only arguments that it may be used with, as text with | between them
    #[arg(long, value_name = "TEXT", conflicts_with = "args")]
    pub body: Option<String>,
    /// The only arguments that it may be used with, as a JSON object or list
    #[arg(long, value_name = "JSON")]
    pub args: Option<String>,
    /// Every call waits for a person
    #[arg(long)]
    pub owner_gate: bool,
}

impl Scope {
    /// The arguments that the token is fixed to, if any.
    pub fn fixed(&self) -> Result<Option<Sent>, Trouble> {
        match (&self.body, &self.args) {
            (None, None) => Ok(None),
            (body, args) => {
                let args = args.as_deref().map(json).transpose()?;
                Sent::new(body.clone(), args).map(Some).map_err(|fault| super::refused(&fault))
            }
        }
    }

    /// The fields of a request, as far as something was said.
    pub fn fields(&self) -> Result<Map<String, Value>, Trouble> {
        let list = |items: &Vec<String>| (!items.is_empty()).then(|| Value::from(items.clone()));
        let body = match (&self.body, &self.args) {
            (Some(body), _) => Some(Value::from(body.as_str())),
            (None, Some(args)) => Some(serde_json::from_str(json(args)?.get()).map_err(|_| not_json())?),
            (None, None) => None,
        };
        let fields = [
            ("keys", list(&self.keys)),
            ("prefixes", list(&self.prefixes)),
            ("ttl", self.ttl.map(Value::from)),
            ("uses", self.uses.map(Value::from)),
            ("risk", self.risk.map(|risk| risk.as_str().into())),
            ("effect", self.effect.map(|effect| effect.as_str().into())),
            ("max_bytes", self.max_bytes.map(Value::from)),
            ("body", body),
            ("owner_gate", self.owner_gate.then_some(Value::Bool(true))),
        ];
        Ok(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
    }
}

/// Arguments as JSON, kept as they are written.
pub fn json(text: &str) -> Result<Box<RawValue>, Trouble> {
    let raw: Box<RawValue> = serde_json::from_str(text.trim()).map_err(|_| not_json())?;
    if raw.get().starts_with(['{', '[']) { Ok(raw) } else { Err(not_json()) }
}

fn not_json() -> Trouble {
    Trouble::usage("--args is a JSON object or list")
}

fn risk(text: &str) -> Result<Risk, String> {
    Risk::parse(text).ok_or_else(|| "it is low or high".to_owned())
}

fn effect(text: &str) -> Result<Effect, String> {
    Effect::parse(text).ok_or_else(|| "it is read, write or destructive".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_said_is_sent() {
        let scope = Scope { keys: vec!["NOW".into()], ..Scope::default() };
        assert_eq!(Value::from(scope.fields().unwrap()).to_string(), r#"{"keys":["NOW"]}"#);
        let scope = Scope {
            prefixes: vec![String::new()],
            uses: Some(5),
            risk: Some(Risk::High),
            args: Some(r#" {"n":1.10}"#.into()),
            ..Scope::default()
        };
        let sent = r#"{"prefixes":[""],"uses":5,"risk":"high","body":{"n":1.10}}"#;
        assert_eq!(Value::from(scope.fields().unwrap()).to_string(), sent);
    }

    #[test]
    fn fixed_arguments_are_an_object_a_list_or_text() {
        for bad in ["1", "\"a\"", "{", ""] {
            let scope = Scope { args: Some(bad.into()), ..Scope::default() };
            assert!(scope.fields().is_err() && scope.fixed().is_err(), "{bad}");
        }
        assert!(Scope::default().fixed().unwrap().is_none());
    }
}
