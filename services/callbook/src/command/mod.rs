//! What can be typed after `callbook`.

mod client;
mod dev_db;
mod eval;
mod flags;
mod help;
mod launch;
mod serve;
mod up;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use client::Connection;
use client::{
    approvals, ask, breaker, contract, describe, export, history, import, invoke, key, list, map, mcp, receipt,
    recommend, row, stamp, status, token, watch,
};

/// A book of everything that agents and platform teams can call.
#[derive(Debug, Parser)]
#[command(name = "callbook", version, propagate_version = true)]
#[command(long_about = help::LONG, help_template = help::TEMPLATE, max_term_width = 120)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Find the row that answers a question
    Ask(Client<ask::Ask>),
    /// Read what a row takes, gives and may do
    Contract(Client<contract::Contract>),
    /// Run a row
    Invoke(Client<invoke::Invoke>),
    /// Show what happened in an invocation
    Receipt(Client<receipt::Receipt>),

    /// Show the book in numbers, or one shelf of it
    Map(Client<map::Map>),
    /// List the rows
    List(Client<list::List>),
    /// Show rows as TypeScript
    Describe(Client<describe::Describe>),
    /// Show the digest of all rows
    Stamp(Client<stamp::Stamp>),
    /// Show whether the gateway answers, and to whom
    Status(Client<status::Status>),

    /// Create or replace a row from JSON
    Put(Client<row::Put>),
    /// Change columns of a row
    Patch(Client<row::Patch>),
    /// Remove a row; its history and receipts stay
    Delete(Client<row::Delete>),
    /// Write an earlier version of a row again
    Restore(Client<row::Restore>),
    /// List the versions of a row
    History(Client<history::History>),
    /// Write many rows from NDJSON
    Import(Client<import::Import>),
    /// Write the rows to standard output as NDJSON
    Export(Client<export::Export>),

    /// Let callers in and shut them out
    Key(Client<key::Key>),
    /// Hand out, narrow and take back rights to run rows
    Token(Client<token::Token>),
    /// Decide on calls that wait for a person
    Approvals(Client<approvals::Approvals>),
    /// Say which calls of sensitive rows go on, wait or are refused
    Watch(Client<watch::Watch>),
    /// Set standing answers to kinds of questions
    Recommend(Client<recommend::Recommend>),
    /// Let calls out again whose credential was refused too often
    Breaker(Client<breaker::Breaker>),
    /// Measure how well questions find their rows
    Eval(eval::Eval),

    /// Speak MCP over standard input and output, for hosts that start local servers
    Mcp(Client<mcp::Mcp>),
    /// Run every role in one process, on a private Postgres unless DATABASE_URL is set
    Up(up::Up),
    /// Run the named roles in this process
    Serve(serve::Serve),
    /// Run a command with DATABASE_URL set to a Postgres that is thrown away afterwards
    DevDb(dev_db::DevDb),
    /// Become a program that the function `exec` starts
    #[command(hide = true)]
    Launch(launch::Launch),
}

/// A command that asks a gateway.
#[derive(Debug, Args)]
struct Client<C: Args> {
    #[command(flatten)]
    command: C,
    #[command(flatten)]
    at: Connection,
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
        Command::Launch(launch) => launch.run(),
        Command::Eval(eval) => eval.run(),
        Command::Ask(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Contract(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Invoke(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Receipt(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Map(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::List(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Describe(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Stamp(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Status(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Put(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Patch(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Delete(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Restore(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::History(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Import(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Export(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Key(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Token(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Approvals(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Watch(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Recommend(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Mcp(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
        Command::Breaker(Client { command, at }) => client::run(at, async |to, on| command.run(to, on).await),
    }
}
