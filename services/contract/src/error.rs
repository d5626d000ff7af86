//! What can go wrong here and nowhere else.

use callbook_domain::fault::{Fault, Reason};

/// No row of this key, or none that the caller may see.
pub(crate) fn not_found() -> Fault {
    Fault::new(Reason::NotFound, "no row of this key")
}
