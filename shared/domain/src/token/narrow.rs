//! Whether a child allows no more than its parent. Every field is compared by itself: a child is narrower when it is
//! narrower in each.

use super::{Cap, Claims, Digest};
use crate::fault::{Fault, Reason, Result};

/// Refuses a child that is wider than its parent in any claim. Depth and linkage are the chain's.
///
/// # Errors
/// `widened:<field>` with the first field that is wider.
pub fn check(parent: &Claims, child: &Claims) -> Result<()> {
    first_widened([
        ("iss", child.iss == parent.iss),
        ("sub", child.sub == parent.sub),
        ("aud", child.aud.iter().all(|name| parent.aud.contains(name))),
        ("exp", child.exp <= parent.exp),
        ("cnf", child.cnf.is_some() || parent.cnf.is_none()),
        ("del", child.del.max <= parent.del.max),
    ])?;
    check_cap(&parent.cap, &child.cap)
}

/// Refuses a scope that is wider than another.
///
/// # Errors
/// As [`check`].
pub fn check_cap(parent: &Cap, child: &Cap) -> Result<()> {
    first_widened([
        ("keys", child.keys.keys().all(|key| parent.covers(key))),
        ("prefixes", prefixes_are_longer(parent, child)),
        ("pin", pins_are_kept(parent, child)),
        ("risk", child.risk <= parent.risk),
        ("effect", child.effect <= parent.effect),
        ("body", is_kept(parent.body, child.body)),
        ("max_bytes", is_within(parent.max_bytes, child.max_bytes)),
        ("uses", is_within(parent.uses, child.uses)),
        ("owner_gate", child.owner_gate || !parent.owner_gate),
        ("url", parent.url || !child.url),
    ])
}

/// A prefix reaches keys without end, so only a prefix covers it, never a list of keys.
fn prefixes_are_longer(parent: &Cap, child: &Cap) -> bool {
    let covered = |text: &str| parent.prefixes.iter().any(|prefix| text.starts_with(prefix.as_str()));
    child.prefixes.iter().all(|prefix| covered(prefix.as_str()))
}

/// A child that still reaches a pinned key, be it by a prefix, must name the key with its pin.
fn pins_are_kept(parent: &Cap, child: &Cap) -> bool {
    parent.keys.iter().all(|(key, pin)| pin.is_none() || !child.covers(key) || child.pin(key) == *pin)
}

fn is_kept(parent: Option<Digest>, child: Option<Digest>) -> bool {
    parent.is_none() || parent == child
}

fn is_within(parent: Option<u64>, child: Option<u64>) -> bool {
    parent.is_none_or(|parent| child.is_some_and(|child| child <= parent))
}

fn first_widened<const N: usize>(fields: [(&str, bool); N]) -> Result<()> {
    match fields.into_iter().find(|(_, is_narrow)| !is_narrow) {
        None => Ok(()),
        Some((field, _)) => {
            Err(Fault::new(Reason::Widened, format!("a derived token may not widen `{field}`")).detail(field))
        }
    }
}
