//! An accepted request to run a row: its id, its state and what a receipt calls that state.

use std::fmt;

use serde::{Serialize, Serializer};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::fault::{Fault, Reason, Result};
use crate::row::word_enum;

/// How long an answer is kept under its idempotency key.
pub const IDEMPOTENCY_HOURS: i64 = 24;
/// The longest idempotency key, in bytes.
pub const MAX_IDEMPOTENCY_KEY: usize = 255;

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// `inv_` and 26 characters: a UUIDv7 in Crockford base32. Its random part cannot be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct InvocationId(pub Uuid);

impl InvocationId {
    /// A new id of this moment.
    pub fn new(at: OffsetDateTime) -> Self {
        InvocationId(uuid_at(at))
    }

    /// Reads an id; upper and lower case are the same.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("inv_").filter(|digits| digits.len() == 26)?;
        let mut value: u128 = 0;
        for (at, byte) in digits.bytes().enumerate() {
            let digit = CROCKFORD.iter().position(|c| *c == byte.to_ascii_uppercase())?;
            if at == 0 && digit > 7 {
                return None; // 26 × 5 bits hold two more than a UUID has
            }
            value = (value << 5) | digit as u128;
        }
        Some(InvocationId(Uuid::from_u128(value)))
    }

    /// Reads an id that a caller gave, or answers as for an unknown one.
    pub fn require(text: &str) -> Result<Self> {
        InvocationId::parse(text).ok_or_else(unknown)
    }
}

/// The answer for an id that does not exist or belongs to somebody else.
pub fn unknown() -> Fault {
    Fault::new(Reason::UnknownInvocation, "no invocation of this id")
}

/// A UUIDv7 of this moment, its other bits from the system's randomness.
pub fn uuid_at(at: OffsetDateTime) -> Uuid {
    let mut random = [0u8; 10];
    getrandom::fill(&mut random).expect("the system gives randomness");
    let millis = u64::try_from(at.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
}

impl fmt::Display for InvocationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.0.as_u128();
        f.write_str("inv_")?;
        for at in (0..26).rev() {
            let digit = (value >> (at * 5)) & 31;
            write!(f, "{}", CROCKFORD[digit as usize] as char)?;
        }
        Ok(())
    }
}

impl Serialize for InvocationId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

word_enum! {
    /// How far an invocation came.
    State {
        /// Its intent is committed and nothing else.
        Running = "running",
        /// Its result is committed.
        Done = "done",
        /// Its executor died in between: nobody knows.
        Unknown = "unknown",
    }
}

word_enum! {
    /// How durable the receipt is.
    Mode {
        /// Intent before the call, result before the answer.
        Durable = "durable",
        /// Both in one batch after the call; the operator's switch for rows that read.
        Read = "read",
    }
}

word_enum! {
    /// What a receipt says, decided from the typed outcome alone.
    Status {
        /// It ran, succeeded and gave output or changed something.
        Material = "PROVEN_MATERIAL_RESULT",
        /// It ran, and failed or gave nothing.
        NoMaterial = "PROVEN_ATTEMPT_NO_MATERIAL_RESULT",
        /// It runs.
        Pending = "PENDING",
        /// Its executor died before the result was written.
        Unknown = "UNKNOWN",
        /// It waits for a person.
        Held = "HELD",
        /// It was refused.
        Denied = "DENIED",
    }
}

impl Status {
    /// The status of an invocation in this state.
    pub fn of(state: State, material: bool) -> Status {
        match (state, material) {
            (State::Running, _) => Status::Pending,
            (State::Unknown, _) => Status::Unknown,
            (State::Done, true) => Status::Material,
            (State::Done, false) => Status::NoMaterial,
        }
    }
}

/// Checks an idempotency key: 1 to 255 printable ASCII characters.
pub fn check_idempotency_key(text: &str) -> Result<()> {
    let fits = !text.is_empty() && text.len() <= MAX_IDEMPOTENCY_KEY && text.bytes().all(|b| (0x20..0x7f).contains(&b));
    if fits {
        return Ok(());
    }
    Err(Fault::new(Reason::InvalidRequest, "an idempotency key is 1 to 255 printable ASCII characters")
        .with("field", "idempotency_key"))
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn an_id_reads_back(value: u128) {
            let id = InvocationId(Uuid::from_u128(value));
            let text = id.to_string();
            assert_eq!(text.len(), 30);
            assert_eq!(InvocationId::parse(&text), Some(id));
            assert_eq!(InvocationId::parse(&text.to_lowercase().replace("INV_", "inv_")), Some(id));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text: String) {
            let _ = InvocationId::parse(&text);
        }
    }

    #[test]
    fn ids_of_a_later_moment_sort_later() {
        let first = InvocationId::new(OffsetDateTime::UNIX_EPOCH + time::Duration::days(1));
        let second = InvocationId::new(OffsetDateTime::UNIX_EPOCH + time::Duration::days(2));
        assert!(first.to_string() < second.to_string());
    }
}
