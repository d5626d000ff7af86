//! The body of a log entry, and the commitments in it.
//!
//! A body is canonical JSON (RFC 8785) of at most 4 KiB. What went in and out is in it only as a salted commitment,
//! because the bare hash of a short text can be guessed; the bytes and the salts are elsewhere and can be erased.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::row::word_enum;

/// Bytes of the random salt of a commitment.
pub const NONCE: usize = 32;

word_enum! {
    /// What a log entry records.
    EventKind {
        /// A call was accepted and may fire.
        Intent = "intent",
        /// What it gave.
        Result = "result",
        /// Its executor died before it could say.
        Unknown = "unknown",
        /// A call was refused.
        Denied = "denied",
        /// A call waits for a person.
        Hold = "hold",
        /// A person decided.
        Approve = "approve",
        /// The book was written.
        Mutate = "mutate",
        /// A credential was given out.
        Mint = "mint",
        /// A credential was taken back.
        Revoke = "revoke",
    }
}

/// Bytes with the salt that commits to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sealed {
    /// Random, [`NONCE`] bytes.
    pub nonce: Vec<u8>,
    /// The committed bytes.
    pub bytes: Vec<u8>,
}

impl Sealed {
    /// Seals bytes under a fresh salt.
    pub fn new(bytes: Vec<u8>) -> Self {
        let mut nonce = vec![0u8; NONCE];
        getrandom::fill(&mut nonce).expect("the system gives randomness");
        Sealed { nonce, bytes }
    }

    /// `c1:` and the hex SHA-256 of salt and bytes.
    pub fn commitment(&self) -> String {
        commitment(&self.nonce, &self.bytes)
    }
}

/// `c1:` and the hex SHA-256 of `nonce ‖ bytes`.
pub fn commitment(nonce: &[u8], bytes: &[u8]) -> String {
    let digest = Sha256::new().chain_update(nonce).chain_update(bytes).finalize();
    format!("c1:{}", data_encoding::HEXLOWER.encode(&digest))
}

/// A log entry's body in the making. Absent values are left out.
#[derive(Clone, Debug)]
pub struct Body(Map<String, Value>);

impl Body {
    /// A body of version 1.
    pub fn new(kind: EventKind) -> Self {
        let mut map = Map::new();
        map.insert("v".into(), 1.into());
        map.insert("kind".into(), kind.as_str().into());
        Body(map)
    }

    /// Adds a value under its name in the log.
    pub fn set(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        if !value.is_null() {
            self.0.insert(name.into(), value);
        }
        self
    }

    /// The canonical text.
    pub fn canonical(self) -> String {
        crate::canonical::to_string(&Value::Object(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_seals_of_the_same_bytes_differ_and_both_open() {
        let (first, second) = (Sealed::new(b"7".to_vec()), Sealed::new(b"7".to_vec()));
        assert_ne!(first.commitment(), second.commitment());
        assert_eq!(first.commitment(), commitment(&first.nonce, b"7"));
    }
}
