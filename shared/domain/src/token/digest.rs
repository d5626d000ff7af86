//! A SHA-256, in the two spellings that tokens use.

use std::fmt;

use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of something. Shown as `sha256:<hex>`, as contract hashes are; in a signed text as base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// The digest of these bytes.
    pub fn of(bytes: impl AsRef<[u8]>) -> Digest {
        Digest(Sha256::digest(bytes.as_ref()).into())
    }

    /// Reads `sha256:` and 64 lower-case hexadecimal digits, and nothing else.
    pub fn parse(text: &str) -> Option<Digest> {
        Digest::decode(HEXLOWER.decode(text.strip_prefix("sha256:")?.as_bytes()))
    }

    /// Reads 43 characters of base64url, and nothing else.
    pub fn from_base64url(text: &str) -> Option<Digest> {
        Digest::decode(BASE64URL_NOPAD.decode(text.as_bytes()))
    }

    /// The spelling of `par`, `ath`, `arg` and of thumbprints.
    pub fn base64url(&self) -> String {
        BASE64URL_NOPAD.encode(&self.0)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    fn decode(bytes: Result<Vec<u8>, data_encoding::DecodeError>) -> Option<Digest> {
        bytes.ok()?.try_into().ok().map(Digest)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", HEXLOWER.encode(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
