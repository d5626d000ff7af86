//! Proof of possession: a text that only the holder can sign, good for one token, one call and one minute.

use serde_json::json;

use super::chain::Sealed;
use super::fields::Fields;
use super::{Digest, Expect, Link, MAX_LINK, PrivateKey, PublicKey};
use crate::arguments::Sent;
use crate::canonical;
use crate::fault::{Fault, Reason, Result};
use crate::invocation::check_idempotency_key;
use crate::json;
use crate::key::Key;

/// How far a proof's time may be from ours, either way, in seconds.
pub const POP_WINDOW_SECONDS: i64 = 30;
/// The type of a proof.
const TYP: &str = "cap-pop+jwt";

/// What a caller sent as a proof, and the call that it must be for.
#[derive(Clone, Copy, Debug)]
pub struct ProofInput<'a> {
    /// The text of the header `Cap-Proof`.
    pub text: &'a str,
    /// The key that is called.
    pub key: &'a str,
    /// The hash of what the caller sent ([`argument_hash`]).
    pub arg: Digest,
}

/// What a proof says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proof {
    /// The hash of the leaf ([`Proof::ath`]).
    pub ath: Digest,
    /// The executor.
    pub aud: String,
    /// When it was made, in seconds since the Unix epoch.
    pub iat: i64,
    /// Its id, which is the call's idempotency key: 1 to 255 printable ASCII characters.
    pub jti: String,
    /// The key that is called.
    pub key: Key,
    /// The hash of what is sent ([`argument_hash`]).
    pub arg: Digest,
}

impl Proof {
    /// The hash of a token's leaf, given the token's text.
    pub fn ath(token: &str) -> Digest {
        Digest::of(token.rsplit('~').next().unwrap_or_default())
    }

    /// The text that the holder of the leaf sends.
    pub fn sign(&self, holder: &PrivateKey) -> String {
        let payload = json!({
            "ath": self.ath.base64url(), "aud": self.aud, "iat": self.iat, "jti": self.jti, "key": self.key,
            "arg": self.arg.base64url(),
        });
        holder.sign(&json!({"alg": "EdDSA", "typ": TYP}), &canonical::to_string(&payload))
    }

    /// Reads a proof that this holder signed.
    fn open(text: &str, holder: &PublicKey) -> Result<Proof> {
        let sealed = Some(text).filter(|text| text.len() <= MAX_LINK).and_then(Sealed::parse);
        let sealed = sealed.ok_or_else(|| refused("it is no compact JWS"))?;
        if sealed.header(TYP)?.kid.is_some() {
            return Err(refused("its header has a `kid`"));
        }
        if !sealed.is_signed_by(holder) {
            return Err(refused("the holder's key did not sign it"));
        }
        let text = std::str::from_utf8(sealed.payload()).map_err(|_| refused("it is not UTF-8"))?;
        let mut fields = Fields::new("", json::value(text).map_err(|_| refused("it is not strict JSON"))?)?;
        let proof = Proof {
            ath: fields.text("ath", Digest::from_base64url)?,
            aud: fields.name("aud")?,
            iat: i64::try_from(fields.whole("iat")?).expect("a number below 2^53"),
            jti: fields.name("jti")?,
            key: fields.text("key", |key| Key::parse(key).ok())?,
            arg: fields.text("arg", Digest::from_base64url)?,
        };
        fields.finish()?;
        check_idempotency_key(&proof.jti)?;
        Ok(proof)
    }
}

/// The hash of what a caller sends: of the canonical text of `args`, or of `body` as one JSON string. Nothing, an empty
/// `body` and `args: null` are all `null`.
///
/// # Errors
/// `args_not_canonical` where a double does not hold a number, or where two readers could understand the text
/// differently.
pub fn argument_hash(sent: &Sent) -> Result<Digest> {
    let text = match sent {
        Sent::Nothing => "null".to_owned(),
        Sent::Body(body) => canonical::to_string(&body.as_str().into()),
        Sent::Args(args) => canonical_args(args.get())?,
        Sent::List(arguments) => canonical_args(&Sent::list_text(arguments))?,
    };
    Ok(Digest::of(text))
}

fn canonical_args(text: &str) -> Result<String> {
    let value = json::value(text).ok().filter(canonical::is_exact);
    let value = value.ok_or_else(|| {
        Fault::new(Reason::ArgsNotCanonical, "`args` has no canonical form: it holds a number that a double does not")
            .fix("send such numbers as strings")
    })?;
    Ok(canonical::to_string(&value))
}

/// Step 9: the proof's id, where the leaf has a holder and the proof is good.
///
/// # Errors
/// `pop_required`, `pop_invalid`.
pub(super) fn check(leaf: &Link, expect: &Expect<'_>, input: Option<&ProofInput<'_>>) -> Result<Option<String>> {
    let (holder, input) = match (&leaf.claims.cnf, input) {
        (None, None) => return Ok(None),
        (None, Some(_)) => return Err(refused("the token has no holder who could prove anything")),
        (Some(_), None) => {
            return Err(Fault::new(Reason::PopRequired, "this token needs its holder's proof with every call")
                .fix("send `Cap-Proof`, signed with the key of the token's `cnf`"));
        }
        (Some(holder), Some(input)) => (holder, input),
    };
    let opened = Proof::open(input.text, holder);
    let proof =
        opened.map_err(|fault| if fault.reason() == Reason::PopInvalid { fault } else { refused(fault.message()) })?;
    let age = expect.now.unix_timestamp().saturating_sub(proof.iat);
    let rules = [
        (proof.ath == leaf.hash, "it is for another token"),
        (proof.aud == expect.audience, "it is for another executor"),
        (age.abs() <= POP_WINDOW_SECONDS, "it is not of this moment"),
        (proof.key.as_str() == input.key, "it is for another key"),
        (proof.arg == input.arg, "it is for other arguments"),
    ];
    match rules.into_iter().find(|(holds, _)| !holds) {
        None => Ok(Some(proof.jti)),
        Some((_, why)) => Err(refused(why)),
    }
}

fn refused(why: &str) -> Fault {
    Fault::new(Reason::PopInvalid, format!("the proof is refused: {why}"))
}
