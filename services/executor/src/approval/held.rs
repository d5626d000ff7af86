//! A held call, and how far it came.

use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::invocation::InvocationId;
use time::{Duration, OffsetDateTime};
use uuid::Uuid;

use crate::store::approval::Record;

/// How long a held call may be decided, and an approved one be fired, from the moment in which it was held.
pub const LIFE: Duration = Duration::minutes(15);

/// A call that waits for a person, or did.
#[derive(Clone, Debug)]
pub struct Approval {
    /// Its id, `apr_…` outside.
    pub id: Uuid,
    /// The id that the call will have, or has.
    pub invocation: InvocationId,
    /// How far it came.
    pub state: State,
    /// The identity of the caller.
    pub caller: String,
    /// The caller's name in receipts.
    pub actor: String,
    /// The principal that calls, or that minted the token of the call.
    pub principal: Option<Uuid>,
    /// The row.
    pub key: String,
    /// What the row was when the call was held.
    pub contract_hash: String,
    /// What a model read of it.
    pub text_hash: String,
    /// Why it waits: the rule's reason, `sensitive` where no rule spoke, or `owner_gate`.
    pub reason: String,
    /// When it was held.
    pub created_at: OffsetDateTime,
    /// Until when it may be decided and fired.
    pub expires_at: OffsetDateTime,
    /// Who decided, as receipts name it.
    pub decided_by: Option<String>,
    /// When.
    pub decided_at: Option<OffsetDateTime>,
    /// What the one who decided said; may be empty.
    pub decision_reason: String,
}

/// How far an approval came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has decided.
    Held,
    /// The call may be fired once.
    Approved,
    /// The call is refused.
    Refused,
    /// The approved call was fired.
    Used,
    /// Its time is over.
    Expired,
}

impl State {
    /// The word in SQL and answers.
    pub fn as_str(self) -> &'static str {
        match self {
            State::Held => "held",
            State::Approved => "approved",
            State::Refused => "refused",
            State::Used => "used",
            State::Expired => "expired",
        }
    }

    fn parse(word: &str) -> Option<State> {
        let all = [State::Held, State::Approved, State::Refused, State::Used, State::Expired];
        all.into_iter().find(|state| state.as_str() == word)
    }
}

impl Approval {
    /// What is stored, as it stands now: time ends what is open without a write.
    pub fn of(record: Record, now: OffsetDateTime) -> Approval {
        // a word that only a later build knows opens nothing
        let state = match State::parse(&record.state).unwrap_or(State::Expired) {
            State::Held | State::Approved if record.expires_at <= now => State::Expired,
            state => state,
        };
        Approval {
            id: record.id,
            invocation: InvocationId(record.invocation),
            state,
            caller: record.caller,
            actor: record.actor,
            principal: record.principal,
            key: record.key,
            contract_hash: record.contract_hash,
            text_hash: record.text_hash,
            reason: record.reason,
            created_at: record.created_at,
            expires_at: record.expires_at,
            decided_by: record.decided_by,
            decided_at: record.decided_at,
            decision_reason: record.decision_reason,
        }
    }
}

/// An approval's id as callers read it: `apr_` and the 26 characters that an invocation's id has too.
pub fn id_text(id: Uuid) -> String {
    InvocationId(id).to_string().replacen("inv_", "apr_", 1)
}

/// Reads an approval's id, or answers as for an unknown one.
///
/// # Errors
/// `not found`.
pub fn parse_id(text: &str) -> Result<Uuid> {
    let digits = text.strip_prefix("apr_").ok_or_else(unknown)?;
    InvocationId::parse(&format!("inv_{digits}")).map(|id| id.0).ok_or_else(unknown)
}

/// The answer for an approval that does not exist or is not the caller's to see.
pub fn unknown() -> Fault {
    Fault::new(Reason::NotFound, "no approval of this id")
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn an_id_reads_back(value: u128) {
            let id = Uuid::from_u128(value);
            proptest::prop_assert_eq!(parse_id(&id_text(id)), Ok(id));
        }

        #[test]
        fn no_text_makes_the_reader_panic(text: String) {
            let _ = parse_id(&text);
        }
    }

    #[test]
    fn the_id_of_an_invocation_is_none_of_an_approval() {
        let id = InvocationId(Uuid::from_u128(7)).to_string();
        assert!(parse_id(&id).is_err());
    }

    #[test]
    fn time_ends_what_is_open_and_nothing_else() {
        let start = OffsetDateTime::UNIX_EPOCH;
        let state = |word: &str, now: OffsetDateTime| {
            let record = Record {
                id: Uuid::nil(),
                invocation: Uuid::nil(),
                state: word.into(),
                caller: String::new(),
                actor: String::new(),
                principal: None,
                key: String::new(),
                contract_hash: String::new(),
                text_hash: String::new(),
                reason: String::new(),
                created_at: start,
                expires_at: start + LIFE,
                decided_by: None,
                decided_at: None,
                decision_reason: String::new(),
            };
            Approval::of(record, now).state
        };
        let last = start + LIFE - Duration::NANOSECOND;
        for (word, before, after) in [
            ("held", State::Held, State::Expired),
            ("approved", State::Approved, State::Expired),
            ("refused", State::Refused, State::Refused),
            ("used", State::Used, State::Used),
            ("expired", State::Expired, State::Expired),
            ("later", State::Expired, State::Expired),
        ] {
            assert_eq!((state(word, last), state(word, start + LIFE)), (before, after), "{word}");
        }
    }
}
