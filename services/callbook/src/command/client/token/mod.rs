//! `callbook token`: capability tokens. A holder narrows its token and proves to hold it without asking anybody; what
//! else there is, the gateway does.

mod explain;
mod holder;
mod list;
mod mint;
mod narrow;
mod prove;
mod revoke;
mod rotate;
mod scope;

use callbook_domain::clock::Clock;
use callbook_domain::fault::Fault;
use clap::{Args, Subcommand};
use secrecy::ExposeSecret as _;
use serde::Deserialize;
use time::OffsetDateTime;

use super::credential::Source;
use super::gateway::{Answer, Gateway};
use super::screen::{Form, Screen};
use super::text::visible;
use super::trouble::Trouble;
use super::{Ended, Verdict};

#[derive(Debug, Args)]
pub struct Token {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Mint a token; it is written once, on standard output
    Mint(mint::Mint),
    /// Make a narrower token of the one in CALLBOOK_KEY
    Narrow(narrow::Narrow),
    /// Show what the token in CALLBOOK_KEY can do, and what is left of it
    Explain(explain::Explain),
    /// Make the key of a holder; its public part is written on standard output
    Holder(holder::Make),
    /// Prove for one call to hold the token in CALLBOOK_KEY; the proof is written on standard output
    Prove(prove::Prove),
    /// List what was issued
    List(list::List),
    /// Take tokens back; after the answer none of their calls fires any more
    Revoke(revoke::Revoke),
    /// Sign with the next key from now on
    Rotate(rotate::Rotate),
}

impl Token {
    pub async fn run(self, gateway: &Gateway, screen: &Screen) -> Ended {
        match self.action {
            Action::Mint(mint) => mint.run(gateway, screen).await,
            Action::Narrow(narrow) => narrow.run(gateway, screen).await,
            Action::Explain(explain) => explain.run(gateway, screen).await,
            Action::Holder(make) => make.run(screen),
            Action::Prove(prove) => prove.run(gateway, screen),
            Action::List(list) => list.run(gateway, screen).await,
            Action::Revoke(revoke) => revoke.run(gateway, screen).await,
            Action::Rotate(rotate) => rotate.run(gateway, screen).await,
        }
    }
}

/// The answer that holds a token.
#[derive(Debug, Deserialize)]
struct Made {
    token: String,
    jti: String,
    expires_at: Option<String>,
}

/// Writes a token that the gateway made, and what is to be known about it beside.
fn show_made(answer: &Answer, screen: &Screen) -> Ended {
    if screen.form != Form::Text {
        return screen.json(&answer.body).map(|()| Verdict::Done);
    }
    let made: Made = answer.read()?;
    screen.text(&format!("{}\n", visible(&made.token)))?;
    let until = made.expires_at.as_deref().unwrap_or("?");
    let said = format!("token {}, good until {until}; its text is not shown again", made.jti);
    screen.note(&visible(&said));
    Ok(Verdict::Done)
}

/// The token that commands without a gateway work on.
fn own(gateway: &Gateway) -> Result<&str, Trouble> {
    let missing = || Trouble::usage("there is no token; set CALLBOOK_KEY to it");
    match &gateway.credential.source {
        Source::Given => gateway.credential.secret.as_ref().map(|secret| secret.expose_secret()).ok_or_else(missing),
        Source::None | Source::Setting | Source::File(_) | Source::Unusable(_) => Err(missing()),
    }
}

/// A rule that refused something on this machine.
fn refused(fault: &Fault) -> Trouble {
    let fix = fault.how_to_fix().map(|fix| format!("; {fix}")).unwrap_or_default();
    Trouble::usage(format!("{fault}{fix}"))
}

fn now() -> OffsetDateTime {
    Clock::system().now()
}
