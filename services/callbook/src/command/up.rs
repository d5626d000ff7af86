//! `callbook up`: everything in one process, ready in a second or two.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::{Context, Result};
use callbook::cluster::{Cluster, DATABASE, ensure_database};
use callbook::node::{Node, Role};
use callbook::sample::{self, Loaded};
use callbook_runtime::settings::Settings;
use clap::Args;
use secrecy::SecretString;

use super::flags::Flags;
use super::serve::{keys, until_signal};

#[derive(Debug, Args)]
#[command(after_help = "Ctrl-C or SIGTERM ends it in order.

Examples:
  callbook up
  callbook up --sample
  DATABASE_URL=postgres://callbook@db/callbook callbook up --http 0.0.0.0:7700")]
pub struct Up {
    /// Put the starter rows into the book; what it holds, or held and lost, is left as it is
    #[arg(long)]
    sample: bool,
    /// Put the rows into the book that the official MCP suite calls by their names
    #[arg(long)]
    with_conformance_rows: bool,
    #[command(flatten)]
    flags: Flags,
}

impl Up {
    pub fn run(self) -> Result<ExitCode> {
        let mut settings = self.flags.settings(false)?;
        let roles = Role::ALL.into();
        let cluster = private_cluster(&mut settings)?;
        let (keys, just_made) = keys(&settings, &roles)?;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(async {
            if let Some(cluster) = &cluster {
                ensure_database(&cluster.url(DATABASE)).await?;
            }
            let banner = settings.clone();
            until_signal(settings, roles, keys, async move |node| {
                let mut loaded = Vec::new();
                if self.sample {
                    loaded.push(("sample", put(node, sample::ROWS).await?));
                }
                if self.with_conformance_rows {
                    loaded.push(("conform", put(node, sample::CONFORMANCE).await?));
                }
                welcome(node, &banner, just_made)?;
                loaded.iter().for_each(|(what, loaded)| tell(what, loaded));
                Ok(())
            })
            .await
        })?;
        drop(cluster);
        Ok(ExitCode::SUCCESS)
    }
}

/// A Postgres of our own, where no other is named.
fn private_cluster(settings: &mut Settings) -> Result<Option<Cluster>> {
    if settings.database_url.is_some() {
        return Ok(None);
    }
    let data_dir = settings.data_dir.as_deref().context("setting `data_dir`: there is no home directory, name one")?;
    let cluster = Cluster::start(data_dir, settings.pg_bin.as_deref())?;
    settings.database_url = Some(SecretString::from(cluster.url(DATABASE)));
    Ok(Some(cluster))
}

async fn put(node: &Node, rows: &str) -> Result<Loaded> {
    let directory = node.directory().context("up holds the book")?;
    let loaded = sample::load(directory, node.clock(), rows).await;
    loaded.map_err(|fault| anyhow::anyhow!("the rows cannot be written: {fault}"))
}

/// Says on stderr what became of the rows.
#[expect(clippy::print_stderr, reason = "this is what a person waits for")]
fn tell(what: &str, loaded: &Loaded) {
    eprintln!("  {what} {} rows added, {} left as they are", loaded.added, loaded.left);
    loaded.refused.iter().for_each(|refused| eprintln!("         refused {refused}"));
}

/// Says on stderr where everything is. The key itself is printed once, when it is made.
#[expect(clippy::print_stderr, reason = "this is what a person waits for")]
fn welcome(node: &Node, settings: &Settings, just_made: bool) -> Result<()> {
    let http = node.http.context("up has a gateway")?;
    eprintln!("callbook {} is up", callbook::node::VERSION);
    eprintln!("  http   http://{http}/api/dispatch");
    eprintln!("  grpc   {}", node.grpc.context("up has services")?);
    eprintln!("  admin  http://{}/metrics", settings.admin);
    let file = settings.data_dir.as_deref().map(|dir| dir.join("owner.key"));
    match (just_made, file, &settings.owner_key) {
        (_, _, Some(_)) => eprintln!("  key    CALLBOOK_OWNER_KEY"),
        (false, Some(file), None) => eprintln!("  key    {}", file.display()),
        // a log is no place for a key
        (true, Some(file), None) if !std::io::stderr().is_terminal() => {
            eprintln!("  key    made now, in {}", file.display());
        }
        (true, Some(file), None) => {
            let key = std::fs::read_to_string(&file)?;
            eprintln!("  key    {}   (made now, kept in {})", key.trim(), file.display());
        }
        (_, None, None) => {}
    }
    Ok(())
}
