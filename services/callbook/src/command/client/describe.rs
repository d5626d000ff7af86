//! `callbook describe`: rows as TypeScript, for a model that writes code.

use clap::Args;
use serde::Deserialize;

use super::gateway::Gateway;
use super::page::given;
use super::screen::{Form, Screen};
use super::text::visible;
use super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  callbook describe NOW WEATHER_NOW
  callbook describe --namespace github.issues > env.d.ts")]
pub struct Describe {
    /// Keys of rows, at most 20
    #[arg(required_unless_present = "namespace", conflicts_with = "namespace")]
    keys: Vec<String>,
    /// All rows under this namespace
    #[arg(long)]
    namespace: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Described {
    Description { typescript: String },
    TooLarge { too_large: TooLarge },
}

#[derive(Debug, Deserialize)]
struct TooLarge {
    hint: String,
}

impl Describe {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let mut query = given([("namespace", self.namespace)]);
        query.extend(self.keys.into_iter().map(|key| ("key", key)));
        let answer = gateway.send(gateway.get(&["api", "directory:describe"], &query)?).await?;
        let described: Described = answer.read()?;
        match (described, screen.form) {
            (Described::Description { typescript }, Form::Text | Form::Raw) => {
                screen.rows_text(&typescript, "callbook describe … > env.d.ts")?;
                Ok(Verdict::Done)
            }
            (Described::Description { .. }, Form::Json) => screen.json(&answer.body).map(|()| Verdict::Done),
            (Described::TooLarge { too_large }, form) => {
                if form == Form::Json {
                    screen.json(&answer.body)?;
                }
                screen.note(&visible(&too_large.hint));
                Ok(Verdict::Failed)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command};

    use super::*;

    #[test]
    fn keys_or_a_namespace_are_named() {
        let parse = |line: &[&str]| {
            let command = Describe::augment_args(Command::new("describe").no_binary_name(true));
            command.try_get_matches_from(line).is_ok()
        };
        assert!(parse(&["NOW", "LATER"]) && parse(&["--namespace", "a.b"]));
        assert!(!parse(&[]) && !parse(&["NOW", "--namespace", "a"]));
    }

    #[test]
    fn both_answers_are_read() {
        let read = |text| serde_json::from_str::<Described>(text).unwrap();
        assert!(matches!(read(r#"{"typescript":"x","keys":["A"]}"#), Described::Description { .. }));
        assert!(matches!(read(r#"{"too_large":{"hint":"h","rows":2}}"#), Described::TooLarge { .. }));
    }
}
