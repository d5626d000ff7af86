//! `callbook token list`.

use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use super::super::Ended;
use super::super::gateway::Gateway;
use super::super::page::{Listing, Page, Paging, given};
use super::super::screen::Screen;
use super::super::text::{BAD, BOLD, Cell, DIM, PLAIN, table};
use super::explain::covers;

#[derive(Debug, Args)]
pub struct List {
    /// Those too that ended or were taken back
    #[arg(long)]
    all: bool,
    /// Only those for this subject
    #[arg(long, value_name = "NAME")]
    subject: Option<String>,
    #[command(flatten)]
    paging: Paging,
}

#[derive(Debug, Deserialize)]
struct Tokens {
    tokens: Vec<Token>,
    next_cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Token {
    jti: String,
    subject: String,
    expires_at: Option<String>,
    revoked: Option<String>,
    used: Option<u64>,
    claims: Value,
}

impl List {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let query = given([("include_ended", self.all.then(|| "true".to_owned())), ("subject", self.subject)]);
        let read = |body: &[u8]| {
            let found: Tokens = serde_json::from_slice(body)?;
            let rows: Vec<Vec<Cell>> = found.tokens.iter().map(Token::cells).collect();
            Ok(Page { text: table(&rows, screen), count: rows.len(), next_cursor: found.next_cursor })
        };
        let nothing = "no token is alive; `callbook token mint` makes one";
        self.paging.walk(gateway, screen, Listing { path: &["api", "tokens"], query, most: 500, nothing, read }).await
    }
}

impl Token {
    fn cells(&self) -> Vec<Cell> {
        let state = match (&self.revoked, &self.expires_at) {
            (Some(what), _) => Cell::new(format!("revoked {}", what.split(':').next().unwrap_or_default()), BAD),
            (None, Some(until)) => Cell::new(format!("until {}", until.split('.').next().unwrap_or_default()), DIM),
            (None, None) => Cell::new("", DIM),
        };
        let used = self.used.map_or_else(String::new, |used| format!("used {used}"));
        let covered = covers(&self.claims["cap"]);
        vec![
            Cell::new(&self.jti, BOLD),
            Cell::new(&self.subject, PLAIN),
            state,
            Cell::new(used, DIM),
            Cell::new(covered, PLAIN),
        ]
    }
}
