//! Signatures of what was never seen: few at the same time, a bounded number waiting.

use callbook_domain::fault::{Fault, Reason, Result};
use tokio::sync::{Semaphore, SemaphorePermit};

/// How many wait.
const WAITING: usize = 256;

/// Keeps half of the processors free of signatures that may be nobody's.
pub(crate) struct Lane {
    places: Semaphore,
    processors: Semaphore,
}

/// The right to look at one signature.
pub(crate) struct Turn<'a> {
    _place: SemaphorePermit<'a>,
    _processor: SemaphorePermit<'a>,
}

impl Lane {
    /// A lane of this machine.
    pub(crate) fn new() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, |count| count.get().div_ceil(2));
        Lane { places: Semaphore::new(WAITING), processors: Semaphore::new(processors) }
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// `overloaded` where too many wait.
    pub(crate) async fn turn(&self) -> Result<Turn<'_>> {
        let place = self.places.try_acquire().map_err(|_| crowded())?;
        let processor = self.processors.acquire().await.map_err(|_| crowded())?;
        Ok(Turn { _place: place, _processor: processor })
    }
}

fn crowded() -> Fault {
    Fault::new(Reason::Overloaded, "more new credentials come than can be verified").retry_after_ms(100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn those_who_find_no_place_are_told_to_come_again() {
        let lane = Lane { places: Semaphore::new(1), processors: Semaphore::new(1) };
        let turn = lane.turn().await.unwrap();
        let refused = lane.turn().await.err().unwrap();
        assert_eq!((refused.reason(), refused.retry_after()), (Reason::Overloaded, Some(100)));
        drop(turn);
        assert!(lane.turn().await.is_ok());
    }
}
