//! `callbook export`: rows as NDJSON.

use std::time::Duration;

use clap::Args;

use super::gateway::Gateway;
use super::page::given;
use super::screen::Screen;
use super::trouble::Trouble;
use super::{Ended, Verdict};

/// How long a whole export may take.
const PATIENCE: Duration = Duration::from_secs(3_600);

#[derive(Debug, Args)]
#[command(after_help = "Examples:
  callbook export > rows.ndjson
  callbook export --type flow | jq .key")]
pub struct Export {
    /// Only rows of this type
    #[arg(long = "type", value_name = "TYPE", value_parser = ["fn", "http", "agent", "flow"])]
    row_type: Option<String>,
    /// Only rows of this category
    #[arg(long)]
    category: Option<String>,
}

impl Export {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        let query = given([("type", self.row_type), ("category", self.category)]);
        let request = gateway.get(&["api", "directory:export"], &query)?.timeout(PATIENCE);
        let mut pieces = gateway.open(request).await?;
        loop {
            match pieces.chunk().await {
                Ok(Some(piece)) => screen.bytes(&piece)?,
                Ok(None) => return Ok(Verdict::Done),
                // a part must never be taken for all
                Err(_) => return Err(Trouble::Broken("the export broke off; what was written is not all".to_owned())),
            }
        }
    }
}
