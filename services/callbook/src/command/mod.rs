//! What can be typed after `callbook`.

mod dev_db;
mod flags;
mod serve;
mod up;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// A book of everything that agents and platform teams can call.
#[derive(Debug, Parser)]
#[command(name = "callbook", version, propagate_version = true)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run every role in one process, on a private Postgres unless DATABASE_URL is set.
    Up(up::Up),
    /// Run the named roles in this process.
    Serve(serve::Serve),
    /// Run a command with DATABASE_URL set to a Postgres that is thrown away afterwards.
    DevDb(dev_db::DevDb),
}

/// Runs the command.
///
/// # Errors
/// What a person should read.
pub fn run(cli: Cli) -> Result<ExitCode> {
    match cli.command {
        Command::Up(up) => up.run(),
        Command::Serve(serve) => serve.run(),
        Command::DevDb(dev_db) => dev_db.run(),
    }
}
