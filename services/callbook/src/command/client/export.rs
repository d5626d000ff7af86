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
        let mut waiting = Vec::new();
        loop {
            match pieces.chunk().await {
                Ok(Some(piece)) => waiting.extend_from_slice(&piece),
                Ok(None) if waiting.is_empty() => return Ok(Verdict::Done),
                Ok(None) => return screen.json(&waiting).map(|()| Verdict::Done),
                // a part must never be taken for all
                Err(_) => return Err(Trouble::Broken("the export broke off; what was written is not all".to_owned())),
            }
            // whole rows, so that no character is cut in two
            let end = waiting.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            if end > 0 {
                screen.json(&waiting[..end])?;
                waiting.drain(..end);
            }
        }
    }
}
