//! Time is an argument. A process has one clock; a test holds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use time::OffsetDateTime;

/// Wall-clock time, either the system's or one that a test moves by hand.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// Microseconds since the Unix epoch; absent on the system clock.
    held: Option<Arc<AtomicI64>>,
}

impl Clock {
    /// The system's time.
    pub fn system() -> Self {
        Clock { held: None }
    }

    /// A clock that stands at `at` until [`Clock::advance`] moves it.
    pub fn held(at: OffsetDateTime) -> Self {
        Clock { held: Some(Arc::new(AtomicI64::new(micros(at)))) }
    }

    /// Now, in UTC, cut to microseconds: what Postgres stores.
    #[expect(clippy::disallowed_methods, reason = "this is the one place that asks the system")]
    pub fn now(&self) -> OffsetDateTime {
        let micros = match &self.held {
            Some(held) => held.load(Ordering::SeqCst),
            None => micros(OffsetDateTime::now_utc()),
        };
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(micros) * 1_000).expect("microseconds of i64 are in range")
    }

    /// Moves a held clock. A system clock does not move.
    pub fn advance(&self, by: std::time::Duration) {
        if let Some(held) = &self.held {
            held.fetch_add(i64::try_from(by.as_micros()).unwrap_or(i64::MAX), Ordering::SeqCst);
        }
    }
}

fn micros(at: OffsetDateTime) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1_000).expect("a year of at most four digits")
}
