//! The client commands: what a person types, sent over REST, and the answer written for people or programs.

mod credential;
mod gateway;
mod input;
mod page;
mod problem;
mod screen;
mod text;
mod trouble;
mod value;

pub mod approvals;
pub mod ask;
pub mod breaker;
pub mod contract;
pub mod describe;
pub mod export;
pub mod history;
pub mod import;
pub mod invocation;
pub mod invoke;
pub mod key;
pub mod list;
pub mod map;
pub mod mcp;
pub mod receipt;
pub mod recommend;
pub mod row;
pub mod shape;
pub mod stamp;
pub mod status;
pub mod token;
pub mod watch;

use std::convert::Infallible;
use std::process::ExitCode;

use anyhow::Result;
use clap::Args;
use secrecy::SecretString;

use gateway::Gateway;
use screen::{Form, Screen};
use trouble::Trouble;

/// Where the gateway is, who asks, and how the answer is written.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Connection")]
pub struct Connection {
    /// Address of the gateway
    #[arg(long, env = "CALLBOOK_URL", value_name = "URL", default_value = gateway::DEFAULT, global = true)]
    url: String,
    /// API key or owner key; better in the variable, because everybody who lists processes sees a flag
    #[arg(id = "api_key", long = "key", env = "CALLBOOK_KEY", value_name = "KEY", global = true)]
    #[arg(hide_env_values = true, value_parser = secret)]
    key: Option<SecretString>,
    /// text for people, json as the server sent it, raw for the bytes that a row gave
    #[arg(short, long, value_enum, value_name = "FORM", default_value_t = Form::Text, global = true)]
    #[arg(hide_possible_values = true)]
    output: Form,
}

/// How a command ended that was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It did what was asked.
    Done,
    /// It was answered, and the answer is that it failed.
    Failed,
}

impl Verdict {
    fn of(ok: bool) -> Self {
        if ok { Verdict::Done } else { Verdict::Failed }
    }
}

/// How a client command ends.
type Ended = Result<Verdict, Trouble>;

/// Runs a client command. 0: done, 1: refused or failed, 2: it cannot be asked so, 3: nobody answers.
///
/// # Errors
/// Where this process cannot even begin.
pub fn run(at: Connection, command: impl AsyncFnOnce(&Gateway, &Screen) -> Ended) -> Result<ExitCode> {
    let screen = Screen::new(at.output);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        let gateway = Gateway::new(&at.url, at.key)?;
        command(&gateway, &screen).await
    });
    // a reader of stdin that still waits must not keep the process
    runtime.shutdown_background();
    let trouble = match ended {
        Ok(Verdict::Done) => return Ok(ExitCode::SUCCESS),
        Ok(Verdict::Failed) => return Ok(ExitCode::from(1)),
        Err(trouble) => trouble,
    };
    if let (Form::Json, Trouble::Refused(refusal)) = (at.output, &trouble) {
        let _ = screen.json(&refusal.body);
    }
    trouble.lines().iter().for_each(|line| screen.note(line));
    Ok(ExitCode::from(trouble.code()))
}

#[expect(clippy::unnecessary_wraps, reason = "clap asks for a result")]
fn secret(text: &str) -> Result<SecretString, Infallible> {
    Ok(SecretString::from(text))
}
