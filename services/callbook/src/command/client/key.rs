//! `callbook key`: who is let in.

use std::str::FromStr;

use callbook_domain::caller::{Grant, May};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;

use super::gateway::Gateway;
use super::page::{Listing, Page, Paging, given};
use super::screen::{Form, Screen};
use super::text::{BAD, BOLD, Cell, DIM, PLAIN, table, visible};
use super::{Ended, Verdict};

#[derive(Debug, Args)]
pub struct Key {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Let somebody in; the API key is written once, on standard output
    New(New),
    /// List who was let in
    List(List),
    /// Shut somebody out; after the answer none of its calls fires any more
    Revoke(Revoke),
}

#[derive(Debug, Args)]
#[command(
    after_help = "A grant is what its holder may do, over the keys that begin with a prefix; without one over all:
  invoke, edit, mint, approve, read_receipts

Examples:
  callbook key new ci --grant invoke
  CALLBOOK_KEY=$(callbook key new github-team --grant invoke:GITHUB_ --grant edit:GITHUB_)"
)]
struct New {
    /// Name, 1 to 64 of letters, digits, _ . -
    name: String,
    /// What it may do; may be given several times
    #[arg(long = "grant", value_name = "MAY[:PREFIX]")]
    grants: Vec<Granted>,
}

#[derive(Debug, Args)]
struct List {
    /// Those who were shut out too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
struct Revoke {
    /// Its name
    name: String,
}

/// A grant as it is typed: `may` or `may:prefix`.
#[derive(Clone, Debug)]
struct Granted(Grant);

impl FromStr for Granted {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (may, prefix) = text.split_once(':').unwrap_or((text, ""));
        let words = || May::ALL.iter().map(|may| may.as_str()).collect::<Vec<_>>().join(", ");
        let may = May::parse(may).ok_or_else(|| format!("what it may do is one of {}", words()))?;
        Ok(Granted(Grant { may, prefix: prefix.to_owned() }))
    }
}

#[derive(Debug, Deserialize)]
struct Created {
    name: String,
    grants: Vec<Grant>,
    api_key: String,
}

#[derive(Debug, Deserialize)]
struct Principals {
    principals: Vec<Principal>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Principal {
    name: String,
    grants: Vec<Grant>,
    created_at: Option<String>,
    revoked_at: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Revoked {
    name: String,
    revoked: u32,
}

impl Key {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        match self.action {
            Action::New(new) => new.run(gateway, screen).await,
            Action::List(list) => list.run(gateway, screen).await,
            Action::Revoke(revoke) => revoke.run(gateway, screen).await,
        }
    }
}

impl New {
    async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let grants: Vec<&Grant> = self.grants.iter().map(|granted| &granted.0).collect();
        let body = json!({"name": self.name, "grants": grants}).to_string();
        let answer = gateway.send(gateway.json(Method::POST, &["api", "principals"], body)?).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let created: Created = answer.read()?;
        screen.text(&format!("{}\n", visible(&created.api_key)))?;
        let name = visible(&created.name);
        screen.note(&format!(
            "{name} may {}; this is its API key, which is not shown again",
            grants_text(&created.grants)
        ));
        Ok(Verdict::Done)
    }
}

impl List {
    async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let query = given([("include_revoked", self.all.then(|| "true".to_owned()))]);
        let read = |body: &[u8]| {
            let found: Principals = serde_json::from_slice(body)?;
            let rows: Vec<Vec<Cell>> = found.principals.iter().map(Principal::cells).collect();
            Ok(Page { text: table(&rows, screen), count: rows.len(), next_cursor: found.next_cursor })
        };
        let path = ["api", "principals"];
        let nothing = "nobody was let in; `callbook key new` does";
        self.paging.walk(gateway, screen, Listing { path: &path, query, most: 500, nothing, read }).await
    }
}

impl Revoke {
    async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let request = gateway.request(Method::DELETE, &["api", "principals", &self.name])?;
        let answer = gateway.send(request).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let Revoked { name, revoked } = answer.read()?;
        let said = if revoked > 0 { "revoked" } else { "was revoked before:" };
        screen.text(&visible(&format!("{said} {name}\n"))).map(|()| Verdict::Done)
    }
}

impl Principal {
    fn cells(&self) -> Vec<Cell> {
        let since = self.created_at.as_deref().unwrap_or("?").split('T').next().unwrap_or_default();
        let state = match &self.revoked_at {
            Some(at) => Cell::new(format!("revoked {}", at.split('T').next().unwrap_or_default()), BAD),
            None => Cell::new(format!("since {since}"), DIM),
        };
        vec![Cell::new(&self.name, BOLD), state, Cell::new(grants_text(&self.grants), PLAIN)]
    }
}

fn grants_text(grants: &[Grant]) -> String {
    if grants.is_empty() {
        return "only what anonymous callers may".to_owned();
    }
    let text = |grant: &Grant| match grant.prefix.as_str() {
        "" => grant.may.to_string(),
        prefix => format!("{}:{prefix}", grant.may),
    };
    grants.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_read_as_it_is_shown() {
        for text in ["invoke", "edit:GITHUB_", "read_receipts:a.b"] {
            let granted: Granted = text.parse().unwrap();
            assert_eq!(grants_text(&[granted.0]), text);
        }
        assert_eq!(grants_text(&[]), "only what anonymous callers may");
        let why = "admin:X".parse::<Granted>().unwrap_err();
        assert_eq!(why, "what it may do is one of invoke, edit, mint, approve, read_receipts");
    }
}
