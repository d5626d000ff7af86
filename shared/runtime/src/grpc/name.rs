//! Names of variables that live as long as the process, because a fault holds them as `&'static str`.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// How many different names are kept; ours are a few dozen. A peer that invents names costs at most this many.
const MOST: usize = 256;
/// The longest name, in bytes.
const LONGEST: usize = 64;

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The lasting copy of a name; `None` when the name is not one that we would give.
pub(super) fn lasting(name: &str) -> Option<&'static str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty() || name.len() > LONGEST || !name.chars().all(fits) {
        return None;
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Some(known);
    }
    if names.len() >= MOST {
        return None;
    }
    let lasting: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(lasting);
    Some(lasting)
}
