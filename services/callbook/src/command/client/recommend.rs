//! `callbook recommend`: the operator's standing answers to kinds of questions.

use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::gateway::Gateway;
use super::page::{Listing, Page, Paging, given};
use super::screen::{Form, Screen};
use super::text::{BOLD, CARE, Cell, DIM, GOOD, PLAIN, table, visible};
use super::trouble::Trouble;
use super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:
  callbook recommend 'what time' NOW --reason 'everybody means UTC'
  callbook recommend 'time' TIMESHEET_LIST --demote
  callbook recommend list"
)]
pub struct Recommend {
    #[command(subcommand)]
    action: Option<Action>,
    /// Words that a question must contain
    #[arg(required = true)]
    pattern: Option<String>,
    /// Key of the row that comes first for such questions
    #[arg(required = true)]
    key: Option<String>,
    /// It comes last instead
    #[arg(long)]
    demote: bool,
    /// Why, for people
    #[arg(long)]
    reason: Option<String>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the standing answers
    List(List),
    /// Take a standing answer back
    Delete(Delete),
}

#[derive(Debug, Args)]
struct List {
    /// Only those for this row
    #[arg(long, value_name = "KEY")]
    row: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
struct Delete {
    /// Its pattern, as it is listed
    pattern: String,
    /// Its row
    row: String,
}

#[derive(Debug, Deserialize)]
struct Recommended {
    pattern: String,
    key: String,
    #[serde(default)]
    demote: bool,
    reason: Option<String>,
    #[serde(default)]
    actor: String,
}

#[derive(Debug, Deserialize)]
struct All {
    recommended: Vec<Recommended>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Removed {
    deleted: u32,
}

impl Recommend {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        match self.action {
            Some(Action::List(list)) => list.run(gateway, screen).await,
            Some(Action::Delete(delete)) => delete.run(gateway, screen).await,
            None => self.set(gateway, screen).await,
        }
    }

    async fn set(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let (Some(pattern), Some(key)) = (self.pattern, self.key) else {
            return Err(Trouble::usage("name a pattern and a key"));
        };
        let body = json!({"pattern": pattern, "key": key, "demote": self.demote, "reason": self.reason}).to_string();
        let answer = gateway.send(gateway.json(Method::POST, &["api", "recommended"], body)?).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let set: Recommended = answer.read()?;
        let place = if set.demote { "last" } else { "first" };
        let said = format!("{} comes {place} for questions with “{}”\n", set.key, set.pattern);
        screen.text(&visible(&said)).map(|()| Verdict::Done)
    }
}

impl List {
    async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let read = |body: &[u8]| {
            let found: All = serde_json::from_slice(body)?;
            let rows: Vec<Vec<Cell>> = found.recommended.iter().map(Recommended::cells).collect();
            Ok(Page { text: table(&rows, screen), count: rows.len(), next_cursor: found.next_cursor })
        };
        let (path, query) = (["api", "recommended"], given([("key", self.row)]));
        let nothing = "there are no standing answers";
        self.paging.walk(gateway, screen, Listing { path: &path, query, most: 500, nothing, read }).await
    }
}

impl Delete {
    async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let query = [("pattern", &self.pattern), ("key", &self.row)];
        let request = gateway.request(Method::DELETE, &["api", "recommended"])?.query(&query);
        let answer = gateway.send(request).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let said = if answer.read::<Removed>()?.deleted > 0 { "deleted\n" } else { "there was none\n" };
        screen.text(said).map(|()| Verdict::Done)
    }
}

impl Recommended {
    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::new(&self.pattern, BOLD),
            if self.demote { Cell::new("last", CARE) } else { Cell::new("first", GOOD) },
            Cell::new(&self.key, PLAIN),
            Cell::new(&self.actor, DIM),
            Cell::new(self.reason.as_deref().unwrap_or_default(), PLAIN),
        ]
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;

    fn parsed(line: &[&str]) -> Result<Recommend, clap::Error> {
        let command = Recommend::augment_args(Command::new("recommend").no_binary_name(true));
        command.try_get_matches_from(line).and_then(|matches| Recommend::from_arg_matches(&matches))
    }

    #[test]
    fn a_pattern_and_a_key_or_a_subcommand() {
        let set = parsed(&["what time", "NOW", "--demote", "--reason", "r"]).unwrap();
        assert!(set.action.is_none() && set.demote && set.key.as_deref() == Some("NOW"));
        assert!(matches!(parsed(&["list", "--row", "NOW"]).unwrap().action, Some(Action::List(_))));
        assert!(matches!(parsed(&["delete", "what time", "NOW"]).unwrap().action, Some(Action::Delete(_))));
        for bad in [&[][..], &["what time"], &["delete", "what time"]] {
            assert!(parsed(bad).is_err(), "{bad:?}");
        }
    }
}
