//! One table: what each reason is in gRPC and in HTTP.

use callbook_domain::fault::Reason;
use tonic::Code;

/// The two statuses of a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statuses {
    /// The gRPC status.
    pub grpc: Code,
    /// The HTTP status.
    pub http: u16,
}

/// The statuses of a reason. A client of either protocol that knows only these can still do the right thing: `409`
/// with `ABORTED` is worth another look, `409` with `ALREADY_EXISTS` is not; `429` and `503` are worth waiting.
pub fn statuses(reason: Reason) -> Statuses {
    let (grpc, http) = match reason {
        Reason::InvalidRequest => (Code::InvalidArgument, 400),
        Reason::UnrecognizedRequest => (Code::InvalidArgument, 400),
        Reason::AmbiguousRequest => (Code::InvalidArgument, 400),
        Reason::NoRecognizedFields => (Code::InvalidArgument, 400),
        Reason::RegistryHygieneRefused => (Code::InvalidArgument, 422),
        Reason::ArgsInvalid => (Code::InvalidArgument, 400),
        Reason::MissingArgument => (Code::InvalidArgument, 400),
        Reason::ExtraArguments => (Code::InvalidArgument, 400),
        Reason::ArgumentRefused => (Code::InvalidArgument, 400),
        Reason::RequestTooLarge => (Code::InvalidArgument, 413),
        Reason::CursorInvalid => (Code::InvalidArgument, 400),
        Reason::Unauthorized => (Code::Unauthenticated, 401),
        Reason::Forbidden => (Code::PermissionDenied, 403),
        Reason::OwnerGateRequired => (Code::PermissionDenied, 403),
        Reason::UnknownKey => (Code::NotFound, 404),
        Reason::NotFound => (Code::NotFound, 404),
        Reason::UnknownInvocation => (Code::NotFound, 404),
        Reason::AlreadyExists => (Code::AlreadyExists, 409),
        Reason::LookalikeKey => (Code::AlreadyExists, 409),
        Reason::NamespaceConflict => (Code::AlreadyExists, 409),
        Reason::InProgress => (Code::Aborted, 409),
        Reason::IdempotencyMismatch => (Code::AlreadyExists, 409),
        Reason::Erased => (Code::AlreadyExists, 409),
        Reason::RowMoved => (Code::Aborted, 409),
        Reason::CursorStale => (Code::FailedPrecondition, 409),
        Reason::VersionMismatch => (Code::FailedPrecondition, 412),
        Reason::RateLimited => (Code::ResourceExhausted, 429),
        Reason::Overloaded => (Code::ResourceExhausted, 429),
        Reason::DatabaseUnavailable => (Code::Unavailable, 503),
        Reason::ServiceUnavailable => (Code::Unavailable, 503),
        Reason::BreakerOpen => (Code::Unavailable, 503),
        Reason::RunnerNotAvailable => (Code::Unavailable, 503),
        Reason::NoExecutorForPool => (Code::Unavailable, 503),
        Reason::DeadlineTooShort => (Code::DeadlineExceeded, 503),
        Reason::ResultNotStored => (Code::Unavailable, 503),
        Reason::ShuttingDown => (Code::Unavailable, 503),
        Reason::Internal => (Code::Internal, 500),
        Reason::TokenTooLarge | Reason::ChainTooLong | Reason::TokenMalformed => (Code::Unauthenticated, 401),
        Reason::AlgNotAllowed | Reason::TypWrong | Reason::HeaderParamRefused => (Code::Unauthenticated, 401),
        Reason::KidUnknown => (Code::Unauthenticated, 401),
        Reason::BadSignature => (Code::Unauthenticated, 401),
        Reason::ClaimsInvalid => (Code::Unauthenticated, 401),
        Reason::ClaimsUnknown => (Code::Unauthenticated, 401),
        Reason::ChainBroken => (Code::Unauthenticated, 401),
        Reason::Widened => (Code::PermissionDenied, 403),
        Reason::IatInFuture => (Code::Unauthenticated, 401),
        Reason::TtlTooLong => (Code::Unauthenticated, 401),
        Reason::Expired => (Code::Unauthenticated, 401),
        Reason::AudienceBound => (Code::PermissionDenied, 403),
        Reason::PopRequired => (Code::Unauthenticated, 401),
        Reason::PopInvalid => (Code::Unauthenticated, 401),
        Reason::Revoked => (Code::PermissionDenied, 403),
        Reason::ScopeMismatch => (Code::PermissionDenied, 403),
        Reason::ContractChanged => (Code::FailedPrecondition, 409),
        Reason::RiskCeiling => (Code::PermissionDenied, 403),
        Reason::EffectCeiling => (Code::PermissionDenied, 403),
        Reason::BodyNotAllowed => (Code::PermissionDenied, 403),
        Reason::PayloadCeiling => (Code::InvalidArgument, 413),
        Reason::TokenExhausted => (Code::ResourceExhausted, 429),
        Reason::Denied => (Code::PermissionDenied, 403),
        Reason::ArgsNotCanonical => (Code::InvalidArgument, 400),
        Reason::AlreadyDecided => (Code::Aborted, 409),
        Reason::BudgetExhausted => (Code::ResourceExhausted, 429),
    };
    Statuses { grpc, http }
}

#[cfg(test)]
mod tests {
    use callbook_domain::fault::Kind;

    use super::*;

    /// The HTTP statuses that a kind may have; a reason may be more exact than its kind.
    fn allowed(kind: Kind) -> &'static [u16] {
        match kind {
            Kind::Invalid => &[400, 413, 422],
            Kind::Unauthenticated => &[401],
            Kind::Forbidden => &[403],
            Kind::NotFound => &[404],
            Kind::Conflict => &[409],
            Kind::Precondition => &[409, 412],
            Kind::Exhausted => &[429],
            Kind::Unavailable => &[503],
            Kind::Internal => &[500],
        }
    }

    #[test]
    fn every_reason_has_a_status_of_its_kind() {
        for &reason in Reason::ALL {
            let http = statuses(reason).http;
            assert!(allowed(reason.kind()).contains(&http), "{reason:?} is {:?} and answers {http}", reason.kind());
        }
    }
}
