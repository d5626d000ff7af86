//! Filters from the wire.

use callbook_domain::fault::{Fault, Reason};
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_runtime::grpc::to_status;
use callbook_wire::directory::v1 as wire;
use tonic::Status;

/// The text, if it says anything.
pub(super) fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The type that is filtered by.
pub(super) fn row_type(number: i32) -> Result<Option<RowType>, Status> {
    match wire::RowType::try_from(number).map_err(|_| unknown("type"))? {
        wire::RowType::Unspecified => Ok(None),
        wire::RowType::Fn => Ok(Some(RowType::Fn)),
        wire::RowType::Http => Ok(Some(RowType::Http)),
        wire::RowType::Agent => Ok(Some(RowType::Agent)),
        wire::RowType::Flow => Ok(Some(RowType::Flow)),
    }
}

/// The effect that is filtered by.
pub(super) fn effect(number: i32) -> Result<Option<Effect>, Status> {
    match wire::Effect::try_from(number).map_err(|_| unknown("effect"))? {
        wire::Effect::Unspecified => Ok(None),
        wire::Effect::Read => Ok(Some(Effect::Read)),
        wire::Effect::Write => Ok(Some(Effect::Write)),
        wire::Effect::Destructive => Ok(Some(Effect::Destructive)),
    }
}

/// The risk that is filtered by.
pub(super) fn risk(number: i32) -> Result<Option<Risk>, Status> {
    match wire::Risk::try_from(number).map_err(|_| unknown("risk"))? {
        wire::Risk::Unspecified => Ok(None),
        wire::Risk::Low => Ok(Some(Risk::Low)),
        wire::Risk::High => Ok(Some(Risk::High)),
    }
}

fn unknown(field: &'static str) -> Status {
    to_status(&Fault::new(Reason::InvalidRequest, format!("`{field}` has no such value")).with("field", field))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_word_is_refused_and_none_lets_everything_pass() {
        assert_eq!(row_type(0).unwrap(), None);
        assert_eq!(effect(3).unwrap(), Some(Effect::Destructive));
        assert_eq!(risk(2).unwrap(), Some(Risk::High));
        for refused in [row_type(9).unwrap_err(), effect(-1).unwrap_err(), risk(3).unwrap_err()] {
            assert_eq!(refused.code(), tonic::Code::InvalidArgument);
        }
    }
}
