//! A credential that is dead: after enough refusals in a row nothing is sent with it for a while. Pure; whoever stores
//! it (table `credential_failure`, one for each origin and secret) reads, asks and writes under one lock.

use data_encoding::HEXLOWER;
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use time::{Duration, OffsetDateTime};

/// How many refusals in a row open it.
pub const THRESHOLD: u32 = 8;
/// For how long it stays open before a probe.
pub const OPEN_FOR: Duration = Duration::hours(1);

/// What is remembered of one credential at one origin. The default is an unused one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Breaker {
    /// Answers 401 or 403 in a row.
    pub streak: u32,
    /// Since when nothing is sent; `None` while calls pass.
    pub opened_at: Option<OffsetDateTime>,
    /// Which value of the secret this is about, by [`fingerprint`]; empty before the first call.
    pub secret_fingerprint: String,
}

/// What a call may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Go ahead.
    Pass,
    /// Go ahead as the one probe; the others wait another hour or for its answer.
    Probe,
    /// Refused before the commit point, until then.
    Open {
        /// When the next probe may go.
        until: OffsetDateTime,
    },
}

impl Breaker {
    /// Asks before a call with the secret's present value. Store the breaker afterwards: a new value clears it, and a
    /// probe is taken by one call only.
    pub fn enter(&mut self, fingerprint: &str, now: OffsetDateTime) -> Gate {
        if self.secret_fingerprint != fingerprint {
            *self = Breaker { secret_fingerprint: fingerprint.to_owned(), ..Breaker::default() };
        }
        match self.opened_at.map(|since| since + OPEN_FOR) {
            None => Gate::Pass,
            Some(until) if now < until => Gate::Open { until },
            Some(_) => {
                self.opened_at = Some(now);
                Gate::Probe
            }
        }
    }

    /// Tells how a call ended: `answered` is its HTTP status, or `None` when there was no answer. Only 401 and 403 count,
    /// so a caller cannot open it with arguments that the upstream finds invalid or missing.
    pub fn leave(&mut self, gate: Gate, fingerprint: &str, answered: Option<u16>, now: OffsetDateTime) {
        // An answer about an old value says nothing about the new one.
        if self.secret_fingerprint != fingerprint {
            return;
        }
        match answered {
            Some(..=399) => self.reset(),
            Some(401 | 403) => {
                self.streak = self.streak.saturating_add(1);
                if self.streak >= THRESHOLD {
                    self.opened_at = Some(now);
                }
            }
            // The probe proved nothing; the next call may be one.
            Some(_) | None if gate == Gate::Probe => self.opened_at = Some(now - OPEN_FOR),
            Some(_) | None => {}
        }
    }

    /// Forgets all refusals: what `callbook breaker reset` does.
    pub fn reset(&mut self) {
        (self.streak, self.opened_at) = (0, None);
    }
}

/// Tells two values of a secret apart without telling the value: 32 bits of a hash, too few to confirm a guess.
pub fn fingerprint(value: &SecretString) -> String {
    let mut hash = Sha256::new();
    hash.update(b"callbook credential fingerprint v1\0");
    hash.update(value.expose_secret().as_bytes());
    HEXLOWER.encode(&hash.finalize()[..4])
}

#[cfg(test)]
mod tests {
    use super::*;

    const T0: OffsetDateTime = OffsetDateTime::UNIX_EPOCH;

    fn refuse(breaker: &mut Breaker, times: u32, now: OffsetDateTime) {
        for _ in 0..times {
            let gate = breaker.enter("a", now);
            breaker.leave(gate, "a", Some(401), now);
        }
    }

    #[test]
    fn eight_refusals_in_a_row_open_it_for_an_hour() {
        let mut breaker = Breaker::default();
        refuse(&mut breaker, 7, T0);
        assert_eq!(breaker.enter("a", T0), Gate::Pass);
        breaker.leave(Gate::Pass, "a", Some(403), T0);
        let until = T0 + OPEN_FOR;
        assert_eq!(breaker.enter("a", T0), Gate::Open { until });
        assert_eq!(breaker.enter("a", until - Duration::SECOND), Gate::Open { until });
        assert_eq!(breaker.enter("a", until), Gate::Probe);
        assert_eq!(breaker.enter("a", until), Gate::Open { until: until + OPEN_FOR });
    }

    #[test]
    fn a_probe_that_is_refused_closes_for_another_hour_and_one_that_passes_opens_the_way() {
        let mut breaker = Breaker::default();
        refuse(&mut breaker, 8, T0);
        let later = T0 + OPEN_FOR;
        refuse(&mut breaker, 1, later);
        assert_eq!(breaker.enter("a", later), Gate::Open { until: later + OPEN_FOR });
        let gate = breaker.enter("a", later + OPEN_FOR);
        breaker.leave(gate, "a", Some(204), later + OPEN_FOR);
        assert_eq!(breaker.enter("a", later + OPEN_FOR), Gate::Pass);
        assert_eq!(breaker.streak, 0);
    }

    #[test]
    fn a_probe_without_a_verdict_leaves_the_next_call_a_probe() {
        for answered in [None, Some(500), Some(429)] {
            let mut breaker = Breaker::default();
            refuse(&mut breaker, 8, T0);
            let later = T0 + OPEN_FOR;
            let gate = breaker.enter("a", later);
            breaker.leave(gate, "a", answered, later);
            assert_eq!(breaker.enter("a", later), Gate::Probe);
        }
    }

    #[test]
    fn bad_arguments_neither_open_it_nor_end_a_streak() {
        let mut breaker = Breaker::default();
        refuse(&mut breaker, 7, T0);
        for status in [400, 404, 409, 422, 429, 500] {
            breaker.leave(Gate::Pass, "a", Some(status), T0);
        }
        assert_eq!((breaker.streak, breaker.opened_at), (7, None));
        breaker.leave(Gate::Pass, "a", Some(302), T0);
        assert_eq!(breaker.streak, 0);
    }

    #[test]
    fn a_new_value_clears_it_and_late_answers_about_the_old_one_do_not_count() {
        let mut breaker = Breaker::default();
        refuse(&mut breaker, 8, T0);
        assert_eq!(breaker.enter("b", T0), Gate::Pass);
        breaker.leave(Gate::Pass, "a", Some(401), T0);
        assert_eq!(breaker.streak, 0);
        refuse(&mut breaker, 8, T0);
        breaker.reset();
        assert_eq!(breaker.enter("a", T0), Gate::Pass);
    }

    #[test]
    fn a_fingerprint_is_short_and_tells_values_apart() {
        let (one, two) = (fingerprint(&"one".into()), fingerprint(&"two".into()));
        assert_eq!(one.len(), 8);
        assert_ne!(one, two);
    }
}
