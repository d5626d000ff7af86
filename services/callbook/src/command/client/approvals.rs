//! `callbook approvals`: calls that wait for a person.

use clap::builder::styling::Style;
use clap::{Args, Subcommand, ValueEnum};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::gateway::Gateway;
use super::page::{Listing, Page, Paging, given};
use super::screen::{Form, Screen};
use super::shape::Shape;
use super::text::{BAD, BOLD, CARE, Cell, DIM, GOOD, PLAIN, Pairs, table, visible};
use super::{Ended, Verdict};

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  callbook approvals list --state held
  callbook approvals show apr_01JH0000000000000000000000
  callbook approvals approve apr_01JH0000000000000000000000
  callbook approvals refuse apr_01JH0000000000000000000000 --reason 'not on a Friday'")]
pub struct Approvals {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List calls that wait for a person, or did, newest first
    List(List),
    /// Show what a held call would do
    Show(Show),
    /// Let a held call be fired once
    Approve(Decide),
    /// Refuse a held call
    Refuse(Decide),
}

#[derive(Debug, Args)]
struct List {
    /// Only those in this state
    #[arg(long)]
    state: Option<State>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Args)]
struct Show {
    /// Its id
    id: String,
}

#[derive(Debug, Args)]
struct Decide {
    /// Its id
    id: String,
    /// Why, for people, at most 256 characters; the caller reads it where its call is refused
    #[arg(long)]
    reason: Option<String>,
}

/// How far an approval came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
enum State {
    /// Nobody has decided
    Held,
    /// The call may be fired once
    Approved,
    /// The call is refused
    Refused,
    /// The approved call was fired
    Used,
    /// Its time is over
    Expired,
}

#[derive(Debug, Deserialize)]
struct All {
    approvals: Vec<Approval>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Approval {
    id: String,
    invocation_id: String,
    state: State,
    key: String,
    actor: String,
    reason: String,
    contract_hash: String,
    created_at: Option<String>,
    expires_at: Option<String>,
    decided_by: Option<String>,
    decision_reason: Option<String>,
}

/// What stands beside an approval where it is looked at.
#[derive(Debug, Deserialize)]
struct Look {
    text_hash: String,
    is_current: bool,
    egress_host: Option<String>,
    input: Option<Box<RawValue>>,
    shape: Option<Shape>,
}

impl Approvals {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        match self.action {
            Action::List(list) => list.run(gateway, screen).await,
            Action::Show(show) => show.run(gateway, screen).await,
            Action::Approve(decide) => decide.run(gateway, screen, "approve").await,
            Action::Refuse(decide) => decide.run(gateway, screen, "refuse").await,
        }
    }
}

impl List {
    async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let query = given([("state", self.state.map(|state| state.as_str().to_owned()))]);
        let read = |body: &[u8]| {
            let found: All = serde_json::from_slice(body)?;
            let rows: Vec<Vec<Cell>> = found.approvals.iter().map(Approval::cells).collect();
            Ok(Page { text: table(&rows, screen), count: rows.len(), next_cursor: found.next_cursor })
        };
        let (path, nothing) = (["api", "approvals"], "no call waits for a person");
        self.paging.walk(gateway, screen, Listing { path: &path, query, most: 500, nothing, read }).await
    }
}

impl Show {
    async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let answer = gateway.send(gateway.get(&["api", "approvals", &self.id], &[])?).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let (approval, look): (Approval, Look) = (answer.read()?, answer.read()?);
        screen.text(&look.lines(&approval, screen)).map(|()| Verdict::Done)
    }
}

impl Decide {
    async fn run(self, gateway: &Gateway, screen: &Screen, verb: &str) -> Ended {
        let body = json!({"reason": self.reason}).to_string();
        let request = gateway.json(Method::POST, &["api", "approvals", &self.id, verb], body)?;
        let answer = gateway.send(request).await?;
        if screen.form != Form::Text {
            return screen.json(&answer.body).map(|()| Verdict::Done);
        }
        let decided: Approval = answer.read()?;
        let until = decided.expires_at.as_deref().unwrap_or("?");
        let said = match decided.state {
            State::Approved => {
                format!("approved: {} may make this call of {} once, until {until}\n", decided.actor, decided.key)
            }
            State::Held | State::Refused | State::Used | State::Expired => {
                format!("{}: the call of {} by {}\n", decided.state.as_str(), decided.key, decided.actor)
            }
        };
        screen.text(&visible(&said)).map(|()| Verdict::Done)
    }
}

impl State {
    fn as_str(self) -> &'static str {
        match self {
            State::Held => "held",
            State::Approved => "approved",
            State::Refused => "refused",
            State::Used => "used",
            State::Expired => "expired",
        }
    }

    fn style(self) -> Style {
        match self {
            State::Held => CARE,
            State::Approved | State::Used => GOOD,
            State::Refused => BAD,
            State::Expired => DIM,
        }
    }
}

impl Approval {
    fn cells(&self) -> Vec<Cell> {
        vec![
            Cell::new(&self.id, BOLD),
            Cell::new(self.state.as_str(), self.state.style()),
            Cell::new(&self.key, PLAIN),
            Cell::new(&self.actor, DIM),
            Cell::new(&self.reason, PLAIN),
        ]
    }

    fn pairs(&self) -> Pairs {
        let mut pairs = Pairs::default();
        pairs.styled("state", self.state.as_str(), self.state.style());
        pairs.add("row", self.key.as_str()).add("caller", self.actor.as_str()).add("why held", self.reason.as_str());
        pairs.maybe("held", self.created_at.as_deref()).maybe("until", self.expires_at.as_deref());
        pairs.maybe("decided by", self.decided_by.as_deref()).maybe("because", self.decision_reason.as_deref());
        pairs.add("invocation", self.invocation_id.as_str()).add("contract", self.contract_hash.as_str());
        pairs
    }
}

impl Look {
    fn lines(&self, approval: &Approval, screen: &Screen) -> String {
        let mut pairs = approval.pairs();
        pairs.add("text", self.text_hash.as_str());
        pairs.maybe("input", self.input.as_ref().map(|input| input.get()));
        pairs.maybe("goes to", self.egress_host.as_deref());
        if !self.is_current {
            pairs.styled("moved on", "the row is another one by now: this call cannot be fired any more", BAD);
        }
        let shape = self.shape.as_ref().map(|shape| format!("\n{}", shape.lines(screen)));
        format!("{}{}", pairs.lines(screen), shape.unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::super::text::screen_of;
    use super::*;

    #[test]
    fn a_person_sees_the_call_and_the_request() {
        let answer = r#"{"id":"apr_1","invocation_id":"inv_1","state":"held","key":"PAY","actor":"principal:shop","reason":"sensitive",
            "contract_hash":"sha256:a","created_at":"2026-01-01T00:00:00.000Z","expires_at":"2026-01-01T00:15:00.000Z",
            "decided_by":null,"decided_at":null,"decision_reason":null,"url":"http://h/api/approvals/apr_1",
            "text_hash":"sha256:b","is_current":false,"egress_host":"pay.example","input":{"body":"7|1.10"},"shape":null}"#;
        let look: Look = serde_json::from_str(answer).unwrap();
        assert_eq!(
            look.lines(&serde_json::from_str(answer).unwrap(), &screen_of(80)),
            "  state       held\n  row         PAY\n  caller      principal:shop\n  why held    sensitive\n  \
             held        2026-01-01T00:00:00.000Z\n  until       2026-01-01T00:15:00.000Z\n  invocation  inv_1\n  \
             contract    sha256:a\n  text        sha256:b\n  input       {\"body\":\"7|1.10\"}\n  \
             goes to     pay.example\n  \
             moved on    the row is another one by now: this call cannot be fired any more\n"
        );
    }
}
