//! Rows of type `agent`.

use callbook_domain::outcome::{Failure, Outcome};

use crate::call::Ran;
use crate::child::Running;

/// Runs the row.
pub async fn run(_running: Running<'_>) -> Ran {
    Ran::local(Outcome::Failed(Failure::new("agent:not_available", "this build does not run such rows")))
}
