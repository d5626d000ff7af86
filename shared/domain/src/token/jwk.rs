//! Ed25519 keys: of issuers, by `kid`, and of holders, by their JWK.

use std::collections::HashMap;
use std::fmt;

use data_encoding::BASE64URL_NOPAD;
use ed25519_dalek::pkcs8::DecodePrivateKey as _;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use serde_json::{Map, Value, json};

use super::Digest;

/// A public key that can be believed: a canonical encoding, and not of small order, where one signature would fit many
/// texts.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct PublicKey(VerifyingKey);

impl PublicKey {
    /// Reads 32 bytes; nothing where no signature under them could be trusted.
    pub fn from_bytes(bytes: &[u8; 32]) -> Option<PublicKey> {
        let key = VerifyingKey::from_bytes(bytes).ok()?;
        let is_canonical = key.to_edwards().compress().as_bytes() == bytes;
        (is_canonical && !key.is_weak()).then_some(PublicKey(key))
    }

    /// The 32 bytes.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// Reads a JWK of exactly `crv`, `kty` and `x`. Anything more, such as a private part, is refused.
    pub fn from_jwk(jwk: &Map<String, Value>) -> Option<PublicKey> {
        let member = |name| jwk.get(name).and_then(Value::as_str);
        if jwk.len() != 3 || member("crv") != Some("Ed25519") || member("kty") != Some("OKP") {
            return None;
        }
        let bytes = BASE64URL_NOPAD.decode(member("x")?.as_bytes()).ok()?;
        PublicKey::from_bytes(&bytes.try_into().ok()?)
    }

    /// The JWK with its members in canonical order.
    pub fn jwk(&self) -> Value {
        json!({"crv": "Ed25519", "kty": "OKP", "x": BASE64URL_NOPAD.encode(self.0.as_bytes())})
    }

    /// The RFC 7638 thumbprint: the `kid` of our issuers, and the name under which a holder is revoked.
    pub fn thumbprint(&self) -> String {
        Digest::of(self.jwk().to_string()).base64url()
    }

    /// Whether the signature is this key's over the text. Small-order points and values out of range are refused.
    pub(super) fn confirms(&self, text: &str, signature: &[u8]) -> bool {
        let signature = Signature::from_slice(signature);
        signature.is_ok_and(|signature| self.0.verify_strict(text.as_bytes(), &signature).is_ok())
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.thumbprint())
    }
}

/// A key that signs: the issuer's, or a holder's in a client. It is wiped from memory when it goes.
pub struct PrivateKey(SigningKey);

impl PrivateKey {
    /// The key of a 32-byte seed, which the caller took from a good source of randomness.
    pub fn from_seed(seed: &[u8; 32]) -> PrivateKey {
        PrivateKey(SigningKey::from_bytes(seed))
    }

    /// Reads a PKCS#8 PEM, as `openssl genpkey -algorithm ed25519` writes it, or the 32 bytes of a seed in base64url.
    pub fn parse(text: &str) -> Option<PrivateKey> {
        if text.contains("-----BEGIN") {
            return SigningKey::from_pkcs8_pem(text).ok().map(PrivateKey);
        }
        let seed = BASE64URL_NOPAD.decode(text.trim().as_bytes()).ok()?;
        Some(PrivateKey::from_seed(&seed.try_into().ok()?))
    }

    /// Its public part.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// A compact JWS of these two JSON texts.
    pub(super) fn sign(&self, header: &Value, payload: &str) -> String {
        let header = BASE64URL_NOPAD.encode(header.to_string().as_bytes());
        let input = format!("{header}.{}", BASE64URL_NOPAD.encode(payload.as_bytes()));
        let signature = self.0.sign(input.as_bytes()).to_bytes();
        format!("{input}.{}", BASE64URL_NOPAD.encode(&signature))
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PrivateKey(of {})", self.public().thumbprint())
    }
}

/// The issuer's public keys by `kid`. A `kid` is looked up here and nowhere else: it is no path, address or query.
#[derive(Clone, Debug, Default)]
pub struct Keys(HashMap<String, PublicKey>);

impl Keys {
    /// Adds a key under its thumbprint.
    pub fn add(&mut self, key: PublicKey) {
        self.insert(key.thumbprint(), key);
    }

    /// Adds a key under a name of the operator's.
    pub fn insert(&mut self, kid: impl Into<String>, key: PublicKey) {
        self.0.insert(kid.into(), key);
    }

    /// The key of this name.
    pub fn named(&self, kid: &str) -> Option<&PublicKey> {
        self.0.get(kid)
    }
}
