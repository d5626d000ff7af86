//! `callbook eval`: how well questions find their rows, on any catalogue, without a server.

mod figures;
mod set;
mod table;

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;

use figures::Figures;
use set::Set;

#[derive(Debug, Args)]
#[command(after_help = "A folder holds two files of JSON, one object a line:
  tools.jsonl    {\"id\", \"description\", \"category\"?, \"params\"?: [{\"name\", \"description\"?}]}
  queries.jsonl  {\"query\", \"gold\": [\"id\", …]}; an empty gold is a question that nothing answers

Ids that are no keys are made so. Columns: hit@1, the first answer is right; R@n, share of the right rows among the first
n; nDCG@10; MRR, 1 / place of the first right row among 12; sibling, the first answer is wrong and named much like a right
one; then, as `ask` answers, abstaining: nDCG@10, lost, right rows exist but the answer was empty, and refused, nothing fits
and the answer was empty; latency of one question on one thread.

Examples:
  callbook eval questions/
  callbook eval mine/ theirs/ --json
  callbook eval questions/ --tools rows/tools.jsonl")]
pub struct Eval {
    /// Folders with tools.jsonl and queries.jsonl
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
    /// File with the tools, instead of the folder's
    #[arg(long, value_name = "FILE")]
    tools: Option<PathBuf>,
    /// Write the figures as JSON
    #[arg(long)]
    json: bool,
}

impl Eval {
    /// Asks every question and writes the figures.
    ///
    /// # Errors
    /// A file that cannot be read, or a line of it, by its number, that is not what it should be.
    pub fn run(self) -> Result<ExitCode> {
        let mut measured = Vec::new();
        for folder in &self.folders {
            let set = Set::read(folder, self.tools.as_deref())?;
            if set.dangling > 0 {
                eprintln!("{}: {} right answers name no tool; they count as not found", set.name, set.dangling);
            }
            measured.push(Figures::of(&set));
        }
        let text = if self.json { table::json(&measured) } else { table::text(&measured) };
        match io::stdout().lock().write_all(text.as_bytes()) {
            // whoever reads has seen enough
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
            written => Ok(written.map(|()| ExitCode::SUCCESS)?),
        }
    }
}
