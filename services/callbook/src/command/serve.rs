//! `callbook serve`: the named roles, until a signal.

use std::collections::BTreeSet;
use std::process::ExitCode;

use anyhow::{Context, Result};
use callbook::node::{Keys, Node, Role};
use callbook_domain::clock::Clock;
use callbook_runtime::settings::Settings;
use callbook_runtime::{admin, key_file, listen, metrics, shutdown, telemetry};
use clap::Args;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use super::flags::Flags;

#[derive(Debug, Args)]
pub struct Serve {
    /// Roles, comma-separated: gateway, resolver, contract, gate, executor
    #[arg(required = true, value_delimiter = ',')]
    roles: Vec<Role>,
    #[command(flatten)]
    flags: Flags,
}

impl Serve {
    pub fn run(self) -> Result<ExitCode> {
        let roles: BTreeSet<Role> = self.roles.into_iter().collect();
        let settings = self.flags.settings(!roles.contains(&Role::Gateway))?;
        let keys = keys(&settings, &roles)?.0;
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        runtime.block_on(until_signal(settings, roles, keys, async |_| Ok(())))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// The keys that the roles need, and whether the owner's was just made. A gateway by itself needs none: it passes
/// credentials on. Without the internal one, what an MCP client carries between two rounds is good at this process alone.
pub fn keys(settings: &Settings, roles: &BTreeSet<Role>) -> Result<(Keys, bool)> {
    if roles.iter().all(|role| *role == Role::Gateway) {
        let none = || SecretString::from(String::new());
        let internal = key_file::internal_key_here(settings)?.unwrap_or_else(none);
        return Ok((Keys { owner: none(), internal }, false));
    }
    let owner = key_file::owner_key(settings)?;
    let internal = key_file::internal_key(settings)?;
    Ok((Keys { owner: owner.secret, internal: internal.secret }, owner.just_made))
}

/// Runs the roles until SIGTERM or SIGINT, then ends in order. `ready` is called once everything answers, and before
/// the admin port says so.
pub async fn until_signal(
    settings: Settings,
    roles: BTreeSet<Role>,
    keys: Keys,
    ready: impl AsyncFnOnce(&Node) -> Result<()>,
) -> Result<()> {
    let guard = telemetry::init("callbook")?;
    let figures = metrics::install()?;
    let told = shutdown::on_signal()?;
    let admin_listener = listen::bind("admin", &settings.admin).await?;
    let mut node = Node::start(&settings, &roles, &keys, clock()?).await?;
    ready(&node).await?;
    let end = CancellationToken::new();
    let admin = tokio::spawn(admin::serve(admin_listener, figures, node.readiness.clone(), end.clone()));
    let outcome = tokio::select! {
        () = told.cancelled() => Ok(()),
        failed = node.failed() => failed.context("a part of the process ended"),
    };
    node.readiness.not_ready("stopping");
    let stopped = node.stop().await;
    end.cancel();
    let _ = admin.await;
    drop(guard);
    outcome.and(stopped)
}

#[cfg(not(feature = "test-clock"))]
#[expect(clippy::unnecessary_wraps, reason = "the build with the feature can fail")]
fn clock() -> Result<Clock> {
    Ok(Clock::system())
}

/// Time held for a test of the whole process.
#[cfg(feature = "test-clock")]
fn clock() -> Result<Clock> {
    use time::format_description::well_known::Rfc3339;
    match std::env::var("CALLBOOK_TEST_CLOCK") {
        Err(_) => Ok(Clock::system()),
        Ok(text) => Ok(Clock::held(time::OffsetDateTime::parse(&text, &Rfc3339).context("CALLBOOK_TEST_CLOCK")?)),
    }
}
