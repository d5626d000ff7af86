//! Refusals in the log. They are written beside the calls and never in their way: what comes too fast, or while the
//! database does not answer, is dropped and counted.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use callbook_domain::caller::Caller;
use callbook_domain::event::{Body, EventKind};
use callbook_domain::fault::{Fault, Kind, Reason};
use callbook_domain::key::Key;
use callbook_domain::row::timestamp;
use sqlx::PgPool;

use crate::App;
use crate::group::{Grouped, Work};
use crate::store::commit::lineage_ids;
use crate::store::denied::{self, Denied};

/// At most this many refusals of one caller are written in each [`WINDOW`].
const MOST: u32 = 20;
/// The time over which they are counted.
const WINDOW: Duration = Duration::from_secs(1);
/// Of this many callers at a time.
const CALLERS: usize = 4_096;
/// The name of a caller whose token is signed by us and of whom nothing else is known.
pub const SOMEBODY: &str = "cap:unknown";

/// The way of refusals into the log.
pub struct Denials {
    queue: Grouped<Refusals>,
    recent: Mutex<HashMap<String, (Instant, u32)>>,
}

#[derive(Clone)]
struct Refusals(PgPool);

impl Work for Refusals {
    type Member = Denied;
    type Answer = ();
    type Lane = ();
    const KIND: &'static str = "denied";

    fn weigh(denied: &Denied) -> usize {
        denied.event.len()
    }

    fn lane(&self) {}

    async fn settle(&self, (): &mut (), group: &[Denied]) -> sqlx::Result<Vec<()>> {
        let written = denied::write(&self.0, group).await;
        if let Err(error) = &written {
            tracing::warn!(%error, refusals = group.len(), "refusals cannot be written");
        }
        written.map(|()| vec![(); group.len()])
    }
}

impl Denials {
    /// Starts the writers on a pool.
    pub fn start(pool: &PgPool) -> Self {
        Denials { queue: Grouped::start(&Refusals(pool.clone())), recent: Mutex::default() }
    }

    fn offer(&self, caller: &str, denied: Denied) {
        if !self.is_within(caller) || self.queue.offer(denied).is_err() {
            metrics::counter!("denied_events_dropped_total").increment(1);
        }
    }

    fn is_within(&self, caller: &str) -> bool {
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= CALLERS && !recent.contains_key(caller) {
            recent.retain(|_, (since, _)| since.elapsed() < WINDOW);
            if recent.len() >= CALLERS {
                return false;
            }
        }
        let (since, count) = recent.entry(caller.to_owned()).or_insert((Instant::now(), 0));
        if since.elapsed() >= WINDOW {
            (*since, *count) = (Instant::now(), 0);
        }
        *count += 1;
        *count <= MOST
    }
}

/// Writes down that a known caller was refused.
pub fn record(app: &App, caller: &Caller, key: &str, fault: &Fault) {
    match caller {
        // the owner may everything, and a stranger shows nothing that could be named
        Caller::Owner | Caller::Anonymous => {}
        Caller::Principal(_) | Caller::Holder(_) if !is_denial(fault) => {}
        Caller::Principal(_) => write(app, &caller.identity(), &caller.actor(), Vec::new(), key, fault),
        Caller::Holder(holder) => {
            write(app, &caller.identity(), &caller.actor(), lineage_ids(holder), key, fault);
        }
    }
}

/// Writes down that a token was refused before its holder was a caller.
pub fn record_token(app: &App, actor: &str, key: &str, fault: &Fault) {
    if is_of_a_signed_token(fault.reason()) {
        write(app, actor, actor, Vec::new(), key, fault);
    }
}

fn write(app: &App, identity: &str, actor: &str, lineage: Vec<String>, key: &str, fault: &Fault) {
    let now = app.clock.now();
    // what is no key could be anything, a credential in the wrong place too
    let key = Key::parse(key).map(|key| key.to_string()).unwrap_or_default();
    let event = Body::new(EventKind::Denied)
        .set("key", key.as_str())
        .set("actor", actor)
        .set("lineage", (!lineage.is_empty()).then_some(lineage))
        .set("reason", reason(fault))
        .set("ts", timestamp(now));
    app.denials.offer(identity, Denied { at: now, key, actor: actor.to_owned(), event: event.canonical() });
}

/// The reason in words; with its detail only where the caller did not word that.
fn reason(fault: &Fault) -> String {
    match fault.kind() {
        Kind::Invalid => fault.reason().as_str().to_owned(),
        Kind::Unauthenticated
        | Kind::Forbidden
        | Kind::NotFound
        | Kind::Conflict
        | Kind::Precondition
        | Kind::Exhausted
        | Kind::Unavailable
        | Kind::Internal => fault.error_text().chars().take(300).collect(),
    }
}

/// Whether the caller was refused, rather than that something was missing on our side or busy.
fn is_denial(fault: &Fault) -> bool {
    let is_ours = matches!(fault.kind(), Kind::Unavailable | Kind::Internal);
    let passes = matches!(
        fault.reason(),
        Reason::Overloaded | Reason::RateLimited | Reason::InProgress | Reason::RowMoved | Reason::BudgetExhausted
    );
    !is_ours && !passes
}

/// The steps 4 to 10: a key of ours signed the root.
fn is_of_a_signed_token(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::ClaimsInvalid
            | Reason::ClaimsUnknown
            | Reason::ChainBroken
            | Reason::Widened
            | Reason::IatInFuture
            | Reason::TtlTooLong
            | Reason::Expired
            | Reason::AudienceBound
            | Reason::PopRequired
            | Reason::PopInvalid
            | Reason::ArgsNotCanonical
            | Reason::Revoked
    )
}
