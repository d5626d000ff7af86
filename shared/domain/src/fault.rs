//! What can go wrong, said once: a reason that never changes its name, the kind that tells a caller what to do,
//! and a sentence for people. The two protocols render it from here (`callbook-runtime`).

use std::fmt;

/// What a caller can do about a fault. Nine kinds, the same in both protocols.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The request itself is wrong; the same request fails again.
    Invalid,
    /// No credential, or one that is not known.
    Unauthenticated,
    /// A known caller that may not do this.
    Forbidden,
    /// No such row, invocation or principal, or none that this caller may see.
    NotFound,
    /// The request clashes with what exists or runs.
    Conflict,
    /// The state that the caller assumed is not the state that is.
    Precondition,
    /// Too much at once; try again later.
    Exhausted,
    /// A part that is needed does not answer now.
    Unavailable,
    /// Our mistake.
    Internal,
}

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $text:literal, $kind:ident;)*) => {
        /// The dictionary of failures. Each name is interface: it is the `error` of an HTTP answer, the `reason` of a
        /// `google.rpc.ErrorInfo` and a value of `callbook.errors.v1.ErrorReason`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason { $($(#[$doc])* $name,)* }

        impl Reason {
            /// Every reason, in the order of the dictionary.
            pub const ALL: &'static [Reason] = &[$(Reason::$name,)*];

            /// The literal text of the HTTP field `error`.
            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$name => $text,)* }
            }

            /// What a caller can do about it.
            pub fn kind(self) -> Kind {
                match self { $(Reason::$name => Kind::$kind,)* }
            }

            /// The name in `callbook.errors.v1.ErrorReason`, without the enum's prefix.
            pub fn wire_name(self) -> String {
                self.as_str().to_ascii_uppercase().replace([' ', '-'], "_")
            }
        }
    };
}

reasons! {
    /// The request cannot be read: not JSON, not UTF-8, a field of the wrong type, a value out of range.
    InvalidRequest = "invalid_request", Invalid;
    /// A query parameter or verb that this surface does not have.
    UnrecognizedRequest = "unrecognized_request", Invalid;
    /// Two verbs in one query.
    AmbiguousRequest = "ambiguous_request", Invalid;
    /// A write whose body names no column.
    NoRecognizedFields = "no recognized fields", Invalid;
    /// A write that the hygiene of the book refuses; the detail is the code.
    RegistryHygieneRefused = "registry_hygiene_refused", Invalid;
    /// An argument set that the row's schema refuses; the detail is `<json-pointer>:<keyword>`.
    ArgsInvalid = "args_invalid", Invalid;
    /// A positional argument that the row needs and the call lacks; the detail is `$N` or the name.
    MissingArgument = "missing_argument", Invalid;
    /// More positional arguments than the row takes; the detail is `expected N, got M`.
    ExtraArguments = "extra_arguments", Invalid;
    /// An argument that cannot stand where the template puts it; the detail is `<slot>:<rule>`.
    ArgumentRefused = "argument_refused", Invalid;
    /// A body, URL, header or file over its bound.
    RequestTooLarge = "request_too_large", Invalid;
    /// A cursor that is not one of ours.
    CursorInvalid = "cursor_invalid", Invalid;
    /// No credential, or one that is not known.
    Unauthorized = "unauthorized", Unauthenticated;
    /// The caller's grants do not cover this; metadata `needs` names the grant.
    Forbidden = "forbidden", Forbidden;
    /// A sensitive row, called by somebody who is not the owner.
    OwnerGateRequired = "owner_gate_required", Forbidden;
    /// No row of this key that the caller may see.
    UnknownKey = "unknown_key", NotFound;
    /// Nothing at this address.
    NotFound = "not found", NotFound;
    /// No invocation of this id that the caller may see.
    UnknownInvocation = "unknown_invocation", NotFound;
    /// A row of this key exists.
    AlreadyExists = "already_exists", Conflict;
    /// A key that reads like another key; the detail is that key.
    LookalikeKey = "lookalike_key", Conflict;
    /// A key that is another key's namespace; the detail is that key.
    NamespaceConflict = "namespace_conflict", Conflict;
    /// A call with this idempotency key is running; metadata `invocation_id` names it.
    InProgress = "in_progress", Conflict;
    /// The idempotency key was used with other arguments.
    IdempotencyMismatch = "idempotency_mismatch", Conflict;
    /// The stored answer of this idempotency key was erased.
    Erased = "erased", Conflict;
    /// The row changed between the look and the call.
    RowMoved = "row_moved", Conflict;
    /// The catalogue or the filter changed since the cursor was given.
    CursorStale = "cursor_stale", Precondition;
    /// `If-Match` names another version than the stored one.
    VersionMismatch = "version_mismatch", Precondition;
    /// More calls than this caller or process takes.
    RateLimited = "rate_limited", Exhausted;
    /// The process is at its limit.
    Overloaded = "overloaded", Exhausted;
    /// Postgres does not answer.
    DatabaseUnavailable = "database_unavailable", Unavailable;
    /// A service that this call needs does not answer.
    ServiceUnavailable = "service_unavailable", Unavailable;
    /// The row's credential was refused too often; the detail is the key.
    BreakerOpen = "breaker_open", Unavailable;
    /// No runner for this type of row in this build; the detail is the type.
    RunnerNotAvailable = "runner_not_available", Unavailable;
    /// No live executor serves the row's pool; the detail is the pool.
    NoExecutorForPool = "no_executor_for_pool", Unavailable;
    /// The deadline leaves no time to run.
    DeadlineTooShort = "deadline_too_short", Unavailable;
    /// The call was fired and its result could not be stored yet; metadata `invocation_id` and `fired`.
    ResultNotStored = "result_not_stored", Unavailable;
    /// The process is stopping.
    ShuttingDown = "shutting_down", Unavailable;
    /// Our mistake; the log has the cause under the trace id.
    Internal = "internal", Internal;
    /// A link of the token over 8 KiB.
    TokenTooLarge = "token_too_large", Unauthenticated;
    /// A token of more than four links.
    ChainTooLong = "chain_too_long", Unauthenticated;
    /// A link that is not three parts of strict base64url with a JSON object as header.
    TokenMalformed = "token_malformed", Unauthenticated;
    /// A link whose header names another algorithm than `EdDSA`.
    AlgNotAllowed = "alg_not_allowed", Unauthenticated;
    /// A link of another type than `cap+jwt`.
    TypWrong = "typ_wrong", Unauthenticated;
    /// A header with a member that it must not have.
    HeaderParamRefused = "header_param_refused", Unauthenticated;
    /// A `kid` that names no key of the issuer.
    KidUnknown = "kid_unknown", Unauthenticated;
    /// A signature that its key does not confirm, or a link that no key can confirm.
    BadSignature = "bad_signature", Unauthenticated;
    /// A claim that is missing, of the wrong form or against the rules; metadata `claim` names it.
    ClaimsInvalid = "claims_invalid", Unauthenticated;
    /// A claim or constraint that this build does not know; metadata `claim` names it.
    ClaimsUnknown = "claims_unknown", Unauthenticated;
    /// A link that is not the child of the one before it.
    ChainBroken = "chain_broken", Unauthenticated;
    /// A child that may more than its parent; the detail is the field.
    Widened = "widened", Forbidden;
    /// A token that is issued later than now.
    IatInFuture = "iat_in_future", Unauthenticated;
    /// A token that lives longer than the operator allows.
    TtlTooLong = "ttl_too_long", Unauthenticated;
    /// A token whose time is over.
    Expired = "expired", Unauthenticated;
    /// A token for other executors; the detail is whom it is for.
    AudienceBound = "audience_bound", Forbidden;
    /// A token that its holder must prove to hold, without a proof.
    PopRequired = "pop_required", Unauthenticated;
    /// A proof of possession that is not for this token, call and moment.
    PopInvalid = "pop_invalid", Unauthenticated;
    /// The token, or something that it comes from, is revoked; the detail is what.
    Revoked = "revoked", Forbidden;
    /// The token does not cover this key, whether or not such a row exists.
    ScopeMismatch = "scope_mismatch", Forbidden;
    /// The row is not the one that the token is pinned to; the detail is `<pinned>!=<current>`.
    ContractChanged = "contract_changed", Precondition;
    /// A row of higher risk than the token allows; the detail is `low<row:high`.
    RiskCeiling = "risk_ceiling", Forbidden;
    /// A row of graver effect than the token allows; the detail is such as `read<row:write`.
    EffectCeiling = "effect_ceiling", Forbidden;
    /// Other arguments than the ones that the token is fixed to; the detail is `fixed_body_only`.
    BodyNotAllowed = "body_not_allowed", Forbidden;
    /// More bytes than the token allows; the detail is `<bytes>><most>`.
    PayloadCeiling = "payload_ceiling", Invalid;
    /// The token, or one that it comes from, was used as often as it may be.
    TokenExhausted = "token_exhausted", Exhausted;
    /// A rule of the watcher or a person refused the call; the detail is the reason.
    Denied = "denied", Forbidden;
    /// An argument that has no canonical form, such as a number that a double does not hold.
    ArgsNotCanonical = "args_not_canonical", Invalid;
    /// A held call that was decided before, or whose time is over; the detail is how it stands.
    AlreadyDecided = "already_decided", Conflict;
    /// One call of a caller grew to more calls, or deeper, than it may; the detail is which.
    BudgetExhausted = "budget_exhausted", Exhausted;
}

/// One failure. Cheap to move: the parts live in a box.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault(Box<Parts>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Parts {
    reason: Reason,
    detail: Option<String>,
    message: String,
    fix: Option<String>,
    metadata: Vec<(&'static str, String)>,
    retry_after_ms: Option<u64>,
}

/// The result of everything that can be refused.
pub type Result<T, E = Fault> = std::result::Result<T, E>;

impl Fault {
    /// A fault with the sentence that a person reads: lowercase, no full stop, nothing internal.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Fault(Box::new(Parts {
            reason,
            detail: None,
            message: message.into(),
            fix: None,
            metadata: Vec::new(),
            retry_after_ms: None,
        }))
    }

    /// Adds what stands after the reason's colon, such as `/age:type`.
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds what the caller can do about it.
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.0.fix = Some(fix.into());
        self
    }

    /// Adds a variable, such as `needs` or `invocation_id`.
    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.0.metadata.push((name, value.into()));
        self
    }

    /// Adds after how many milliseconds another try makes sense.
    pub fn retry_after_ms(mut self, ms: u64) -> Self {
        self.0.retry_after_ms = Some(ms);
        self
    }

    /// The reason.
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// The reason's kind.
    pub fn kind(&self) -> Kind {
        self.0.reason.kind()
    }

    /// The sentence for people.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the caller can do about it.
    pub fn how_to_fix(&self) -> Option<&str> {
        self.0.fix.as_deref()
    }

    /// The variables, in the order in which they were added.
    pub fn metadata(&self) -> &[(&'static str, String)] {
        &self.0.metadata
    }

    /// What stands after the reason's colon.
    pub fn detail_text(&self) -> Option<&str> {
        self.0.detail.as_deref()
    }

    /// After how many milliseconds another try makes sense.
    pub fn retry_after(&self) -> Option<u64> {
        self.0.retry_after_ms
    }

    /// The literal `error`: the reason, and the detail after a colon. Hygiene has a space after it, as in the seed.
    pub fn error_text(&self) -> String {
        match (&self.0.detail, self.0.reason) {
            (None, reason) => reason.as_str().to_owned(),
            (Some(detail), Reason::RegistryHygieneRefused) => format!("{}: {detail}", self.0.reason.as_str()),
            (Some(detail), reason) => format!("{}:{detail}", reason.as_str()),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.error_text(), self.0.message)
    }
}

impl std::error::Error for Fault {}
