//! What can go wrong here and nowhere else.

use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason};
use callbook_domain::key::Key;
use callbook_store::snapshot::Snapshot;

/// No row of this key, or none that the caller may see.
pub(crate) fn not_found() -> Fault {
    Fault::new(Reason::NotFound, "no row of this key")
}

/// The same to somebody who was about to call it, with the keys that may have been meant.
pub(crate) fn unknown_key(snapshot: &Snapshot, caller: &Caller, attempted: &str) -> Fault {
    let near = snapshot.similar(attempted, |entry| entry.is_planner_visible() && caller.sees(entry.key()));
    let near: Vec<&str> = near.iter().map(Key::as_str).collect();
    let shown: String = attempted.chars().take(128).collect();
    Fault::new(Reason::UnknownKey, "no row of this key")
        .with("attempted", shown)
        .with("did_you_mean", serde_json::json!(near).to_string())
        .fix("use a key of did_you_mean, or ask for the capability in plain words")
}
