//! `callbook dev-db -- command`: a Postgres for one command, gone afterwards.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};
use callbook::cluster::Cluster;
use clap::Args;

#[derive(Debug, Args)]
pub struct DevDb {
    /// Where initdb and postgres are
    #[arg(long, env = "CALLBOOK_PG_BIN")]
    pg_bin: Option<PathBuf>,
    /// The command and its arguments
    #[arg(required = true, last = true)]
    command: Vec<String>,
}

impl DevDb {
    pub fn run(self) -> Result<ExitCode> {
        let cluster = Cluster::throwaway(self.pg_bin.as_deref())?;
        let (program, arguments) = self.command.split_first().context("name a command after --")?;
        let status = Command::new(program)
            .args(arguments)
            .env("DATABASE_URL", cluster.url("postgres"))
            .status()
            .with_context(|| format!("{program} cannot be started"))?;
        drop(cluster);
        let code = status.code().and_then(|code| u8::try_from(code).ok());
        Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
    }
}
