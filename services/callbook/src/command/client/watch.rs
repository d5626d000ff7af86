//! `callbook watch`: what becomes of calls of sensitive rows.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::{Deserialize, Serialize};

use super::gateway::Gateway;
use super::screen::{Form, Screen};
use super::text::{BAD, BOLD, CARE, Cell, GOOD, PLAIN, table, visible};
use super::trouble::Trouble;
use super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(
    after_help = "Rules are asked by position, then by name; the first whose patterns both match decides. A call \
that no rule
speaks of waits for a person.

Examples:
  callbook watch put no-drops --deny --body '(?i)drop table' --reason 'tables stay'
  callbook watch put small-orders --allow --row 'ORDER_.*' --body '^[0-9]{1,2}$' --position 10
  callbook watch list
  callbook watch delete small-orders"
)]
pub struct Watch {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the rules in the order in which they are asked
    List,
    /// Add a rule, or put it in the place of the one of its name
    Put(Put),
    /// Take a rule away
    Delete(Delete),
}

#[derive(Debug, Args)]
struct Put {
    /// Its name, 1 to 64 of letters, digits, _ . -
    name: String,
    #[command(flatten)]
    what: What,
    /// Regular expression that must match the whole key; absent: any key
    #[arg(long, value_name = "PATTERN")]
    row: Option<String>,
    /// Regular expression that must match somewhere in the arguments; absent: any arguments
    #[arg(long, value_name = "PATTERN")]
    body: Option<String>,
    /// Lower positions are asked first
    #[arg(long, value_name = "N", default_value_t = 0, allow_negative_numbers = true)]
    position: i32,
    /// Why, for the caller and for people, at most 256 characters
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Clone, Copy, Debug, Args)]
#[group(required = true, multiple = false)]
struct What {
    /// The call goes on
    #[arg(long)]
    allow: bool,
    /// The call is refused
    #[arg(long)]
    deny: bool,
    /// The call waits for a person
    #[arg(long)]
    hold: bool,
}

#[derive(Debug, Args)]
struct Delete {
    /// Its name
    name: String,
}

/// What a rule does with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Does {
    Allow,
    Deny,
    Hold,
}

#[derive(Debug, Serialize)]
struct Wanted {
    position: i32,
    pattern_key: Option<String>,
    pattern_body: Option<String>,
    action: Does,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Rules {
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
struct Rule {
    name: String,
    position: i32,
    pattern_key: Option<String>,
    pattern_body: Option<String>,
    action: Does,
    reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Stands {
    created: bool,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Removed {
    deleted: u32,
}

impl Watch {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        match self.action {
            Action::List => list(gateway, screen).await,
            Action::Put(put) => put.run(gateway, screen).await,
            Action::Delete(delete) => delete.run(gateway, screen).await,
        }
    }
}

async fn list(gateway: &Gateway, screen: &Screen) -> Ended {
    let answer = gateway.send(gateway.get(&["api", "watch-rules"], &[])?).await?;
    if screen.form != Form::Text {
        return screen.json(&answer.body).map(|()| Verdict::Done);
    }
    let found: Rules = answer.read()?;
    if found.rules.is_empty() {
        screen.note("there are no rules: every call of a sensitive row waits for a person, the owner's apart");
    }
    let rows: Vec<Vec<Cell>> = found.rules.iter().map(Rule::cells).collect();
    screen.text(&table(&rows, screen)).map(|()| Verdict::Done)
}

impl Put {
    async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let wanted = Wanted {
            position: self.position,
            pattern_key: self.row,
            pattern_body: self.body,
            action: self.what.does(),
            reason: self.reason,
        };
        let body = serde_json::to_vec(&wanted).map_err(|error| Trouble::usage(error.to_string()))?;
        let answer = gateway.send(gateway.json(Method::PUT, &["api", "watch-rules", &self.name], body)?).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let Stands { created, name } = answer.read()?;
        let said = if created { "added" } else { "replaced" };
        screen.text(&visible(&format!("{said} {name}\n"))).map(|()| Verdict::Done)
    }
}

impl Delete {
    async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let request = gateway.request(Method::DELETE, &["api", "watch-rules", &self.name])?;
        let answer = gateway.send(request).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let said = if answer.read::<Removed>()?.deleted > 0 { "deleted\n" } else { "there was none\n" };
        screen.text(said).map(|()| Verdict::Done)
    }
}

impl What {
    /// The one that was given; clap lets no other number of them through.
    fn does(self) -> Does {
        match (self.allow, self.deny) {
            (true, _) => Does::Allow,
            (false, true) => Does::Deny,
            (false, false) => Does::Hold,
        }
    }
}

impl Rule {
    fn cells(&self) -> Vec<Cell> {
        let does = match self.action {
            Does::Allow => Cell::new("allow", GOOD),
            Does::Deny => Cell::new("deny", BAD),
            Does::Hold => Cell::new("hold", CARE),
        };
        vec![
            Cell::new(self.position.to_string(), PLAIN),
            Cell::new(&self.name, BOLD),
            does,
            Cell::new(self.pattern_key.as_deref().unwrap_or("any row"), PLAIN),
            Cell::new(self.pattern_body.as_deref().unwrap_or("any arguments"), PLAIN),
            Cell::new(self.reason.as_deref().unwrap_or_default(), PLAIN),
        ]
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    fn does(line: &[&str]) -> Option<Does> {
        let command = Put::augment_args(Command::new("put").no_binary_name(true));
        let matches = command.try_get_matches_from(line).ok()?;
        Put::from_arg_matches(&matches).ok().map(|put| put.what.does())
    }

    #[test]
    fn a_rule_does_one_thing() {
        assert_eq!(does(&["r", "--allow"]), Some(Does::Allow));
        assert_eq!(does(&["r", "--deny", "--position", "-3"]), Some(Does::Deny));
        assert_eq!(does(&["r", "--hold", "--row", "PAY"]), Some(Does::Hold));
        for bad in [&["r"][..], &["r", "--allow", "--deny"], &["--hold"]] {
            assert_eq!(does(bad), None, "{bad:?}");
        }
    }
}
