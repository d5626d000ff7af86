//! What a client carries from one round of a request to the next: readable by nobody's trust, bound to everything that
//! it was made for.

use std::time::Duration;

use bytes::Bytes;
use data_encoding::{BASE64URL_NOPAD, HEXLOWER};
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use uuid::Uuid;

use super::message::RpcError;

/// How long a person may take. A held call is not open longer than that either.
pub(super) const LIFE: Duration = Duration::from_secs(15 * 60);
/// The longest state that is looked at, in bytes.
const LONGEST: usize = 64 * 1024;

/// What a state is bound to: another caller, row, version of it or argument set is refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Bound {
    /// Digest of the caller's credential.
    caller: String,
    /// The method and the row.
    about: String,
    /// What the row was.
    contract_hash: String,
    /// Digest of the arguments as the client sent them.
    arguments: String,
}

impl Bound {
    /// Binds to a request of a row.
    pub(super) fn new(credential: &[u8], method: &str, key: &str, contract_hash: &str, arguments: &str) -> Self {
        Bound {
            caller: digest(credential),
            about: format!("{method} {key}"),
            contract_hash: contract_hash.to_owned(),
            arguments: digest(arguments.as_bytes()),
        }
    }
}

/// What a person has answered so far, and the name of the conversation in which it did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Told {
    /// The same in every round.
    id: Uuid,
    /// The answers, by argument.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) answers: Map<String, Value>,
}

impl Told {
    /// Nothing yet.
    pub(super) fn nothing() -> Self {
        Told { id: Uuid::new_v4(), answers: Map::new() }
    }

    /// The idempotency key of the call that the answers are for, so that they are good for one: whoever brings the same
    /// state again gets the same answer, and nothing runs. Nothing where nobody was asked.
    pub(super) fn once(&self) -> Option<String> {
        (!self.answers.is_empty()).then(|| format!("mcp:{}", self.id.simple()))
    }
}

/// What is carried.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct State {
    bound: Bound,
    /// Seconds since the Unix epoch after which it is nothing any more.
    until: i64,
    /// What a person has answered in earlier rounds.
    pub(super) told: Told,
    /// The approval that the call waits for. It is fired once at most, whatever is carried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) approval: Option<String>,
}

impl State {
    /// A state that holds from now on.
    pub(super) fn new(bound: Bound, told: Told, approval: Option<String>, now: OffsetDateTime) -> Self {
        let until = now.unix_timestamp() + i64::try_from(LIFE.as_secs()).unwrap_or_default();
        State { bound, until, told, approval }
    }

    /// The text that the client carries.
    pub(super) fn sealed(&self, key: &[u8]) -> String {
        let text = serde_json::to_vec(self).expect("a state is plain data");
        let mac = mac(key, &text).finalize().into_bytes();
        format!("{}.{}", BASE64URL_NOPAD.encode(&text), BASE64URL_NOPAD.encode(&mac))
    }

    /// Reads what a client brings back.
    ///
    /// # Errors
    /// A text that was not made here, for this request, or not lately.
    pub(super) fn opened(key: &[u8], sealed: &str, bound: &Bound, now: OffsetDateTime) -> Result<State, RpcError> {
        let state = open(key, sealed).ok_or_else(|| refused("is not one of this server's"))?;
        if state.bound != *bound {
            return Err(refused("was made for another caller, row or argument set"));
        }
        if state.until <= now.unix_timestamp() {
            return Err(refused("is too old"));
        }
        Ok(state)
    }
}

fn open(key: &[u8], sealed: &str) -> Option<State> {
    if sealed.len() > LONGEST {
        return None;
    }
    let (text, mac_text) = sealed.split_once('.')?;
    let text = Bytes::from(BASE64URL_NOPAD.decode(text.as_bytes()).ok()?);
    let sent = BASE64URL_NOPAD.decode(mac_text.as_bytes()).ok()?;
    mac(key, &text).verify_slice(&sent).ok()?;
    serde_json::from_slice(&text).ok()
}

fn mac(key: &[u8], text: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes a key of any length");
    mac.update(b"callbook request state\0");
    mac.update(text);
    mac
}

fn digest(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

fn refused(why: &str) -> RpcError {
    RpcError::params(format!("`requestState` {why}: begin the request again"))
}

#[cfg(test)]
mod tests {
    use time::macros::datetime;

    use super::*;

    const KEY: &[u8] = b"internal key of a test";
    const NOW: OffsetDateTime = datetime!(2026-08-01 12:00 UTC);

    fn bound(credential: &str, arguments: &str) -> Bound {
        Bound::new(credential.as_bytes(), "tools/call", "PAY", "sha256:a", arguments)
    }

    #[test]
    fn a_state_comes_back_as_it_went_and_only_for_what_it_was_made_for() {
        let state = State::new(bound("key", "{}"), Told::nothing(), Some("apr_1".to_owned()), NOW);
        let sealed = state.sealed(KEY);
        let opened = State::opened(KEY, &sealed, &bound("key", "{}"), NOW).unwrap();
        assert_eq!(opened.approval.as_deref(), Some("apr_1"));
        assert!(State::opened(KEY, &sealed, &bound("other", "{}"), NOW).is_err());
        assert!(State::opened(KEY, &sealed, &bound("key", "{\"a\":1}"), NOW).is_err());
        assert!(State::opened(b"another key", &sealed, &bound("key", "{}"), NOW).is_err());
        let moved = Bound::new(b"key", "tools/call", "PAY", "sha256:b", "{}");
        assert!(State::opened(KEY, &sealed, &moved, NOW).is_err(), "the row has changed");
    }

    #[test]
    fn answers_are_good_for_one_call_however_often_they_are_carried() {
        let mut told = Told::nothing();
        assert_eq!(told.once(), None);
        told.answers.insert("name".to_owned(), Value::from("Ada"));
        let sealed = State::new(bound("key", "{}"), told.clone(), None, NOW).sealed(KEY);
        let opened = State::opened(KEY, &sealed, &bound("key", "{}"), NOW).unwrap();
        assert_eq!((opened.told.once(), &opened.told.answers), (told.once(), &told.answers));
        assert!(told.once() != Told { id: Uuid::new_v4(), ..opened.told }.once(), "another conversation");
    }

    #[test]
    fn a_state_that_was_changed_or_is_old_is_refused() {
        let state = State::new(bound("key", "{}"), Told::nothing(), None, NOW);
        let sealed = state.sealed(KEY);
        for bad in [format!("{sealed}-TAMPERED"), sealed[1..].to_owned(), String::new(), "a.b".to_owned()] {
            assert!(State::opened(KEY, &bad, &bound("key", "{}"), NOW).is_err(), "{bad}");
        }
        assert!(State::opened(KEY, &sealed, &bound("key", "{}"), NOW + LIFE / 2).is_ok());
        assert!(State::opened(KEY, &sealed, &bound("key", "{}"), NOW + LIFE).is_err());
    }
}
