//! From the wire to our words.

use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::json;
use callbook_domain::row::{Provenance, RowType};
use callbook_store::write::{Import, ImportMode, OnConflict};
use callbook_wire::directory::v1 as wire;
use callbook_wire::directory::v1::import_rows_request::Part;
use serde_json::{Map, Value};
use tokio_stream::{Stream, StreamExt};
use tonic::Status;

use crate::list::Filter;

/// The largest import, in bytes.
const MAX_IMPORT: usize = 64 * 1024 * 1024;

/// The members of a JSON object that a field of the request holds.
pub(super) fn object(field: &'static str, bytes: &Bytes) -> Result<Map<String, Value>> {
    let refuse =
        |why: String| Fault::new(Reason::InvalidRequest, format!("`{field}` is not taken: {why}")).with("field", field);
    let text = std::str::from_utf8(bytes).map_err(|_| refuse("it is not UTF-8".into()))?;
    match json::value(text).map_err(|problem| refuse(problem.to_string()))? {
        Value::Object(map) => Ok(map),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Err(refuse("it is no object".into()))
        }
    }
}

/// A filter of rows.
pub(super) fn filter(row_type: i32, category: String) -> Result<Filter> {
    let row_type = match wire::RowType::try_from(row_type).map_err(|_| unknown("type"))? {
        wire::RowType::Unspecified => None,
        wire::RowType::Fn => Some(RowType::Fn),
        wire::RowType::Http => Some(RowType::Http),
        wire::RowType::Agent => Some(RowType::Agent),
        wire::RowType::Flow => Some(RowType::Flow),
    };
    Ok(Filter { row_type, category: some(category) })
}

/// Empty text as nothing.
pub(super) fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The refusal of an enum's number that this build does not know.
pub(super) fn unknown(field: &'static str) -> Fault {
    Fault::new(Reason::InvalidRequest, format!("`{field}` has a value that does not exist")).with("field", field)
}

/// Reads an import to its end: the options, then the text.
///
/// # Errors
/// `request_too_large` as soon as it is, `invalid_request` for parts out of order, and what broke the stream.
pub(super) async fn import(
    parts: impl Stream<Item = Result<wire::ImportRowsRequest, Status>> + Unpin,
) -> Result<(Import, Vec<u8>), Broken> {
    let mut parts = parts;
    let Some(Part::Options(options)) =
        parts.next().await.transpose().map_err(Broken::Stream)?.and_then(|first| first.part)
    else {
        return Err(out_of_order("the first part of an import carries its options").into());
    };
    let options = import_options(options)?;
    let mut text = Vec::new();
    while let Some(part) = parts.next().await {
        match part.map_err(Broken::Stream)?.part {
            Some(Part::Chunk(chunk)) if text.len() + chunk.len() <= MAX_IMPORT => text.extend_from_slice(&chunk),
            Some(Part::Chunk(_)) => {
                return Err(Fault::new(Reason::RequestTooLarge, "an import is at most 64 MiB").into());
            }
            Some(Part::Options(_)) => return Err(out_of_order("an import has its options once").into()),
            None => {}
        }
    }
    Ok((options, text))
}

/// Why an import could not be read.
pub(super) enum Broken {
    /// We refuse it.
    Fault(Fault),
    /// It ended before its end.
    Stream(Status),
}

impl From<Fault> for Broken {
    fn from(fault: Fault) -> Self {
        Broken::Fault(fault)
    }
}

fn out_of_order(message: &str) -> Fault {
    Fault::new(Reason::InvalidRequest, message).with("field", "part")
}

fn import_options(options: wire::ImportOptions) -> Result<Import> {
    let mode = match wire::ImportMode::try_from(options.mode).map_err(|_| unknown("mode"))? {
        wire::ImportMode::Unspecified | wire::ImportMode::Atomic => ImportMode::Atomic,
        wire::ImportMode::Each => ImportMode::Each,
    };
    let on_conflict = match wire::OnConflict::try_from(options.on_conflict).map_err(|_| unknown("on_conflict"))? {
        wire::OnConflict::Unspecified | wire::OnConflict::Refuse => OnConflict::Refuse,
        wire::OnConflict::Replace => OnConflict::Replace,
        wire::OnConflict::Skip => OnConflict::Skip,
    };
    let provenance = match wire::Provenance::try_from(options.provenance).map_err(|_| unknown("provenance"))? {
        wire::Provenance::Unspecified => None,
        wire::Provenance::Owner => Some(Provenance::Owner),
        wire::Provenance::ThirdParty => Some(Provenance::ThirdParty),
        wire::Provenance::Generated => Some(Provenance::Generated),
    };
    Ok(Import { mode, on_conflict, allow_lookalike: options.allow_lookalike, provenance })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(part: Part) -> Result<wire::ImportRowsRequest, Status> {
        Ok(wire::ImportRowsRequest { part: Some(part) })
    }

    fn options() -> Result<wire::ImportRowsRequest, Status> {
        part(Part::Options(wire::ImportOptions { mode: 2, ..wire::ImportOptions::default() }))
    }

    fn chunk(size: usize) -> Result<wire::ImportRowsRequest, Status> {
        part(Part::Chunk(vec![b'\n'; size].into()))
    }

    async fn reason(parts: Vec<Result<wire::ImportRowsRequest, Status>>) -> Result<usize, Option<Reason>> {
        match import(tokio_stream::iter(parts)).await {
            Ok((_, text)) => Ok(text.len()),
            Err(Broken::Fault(fault)) => Err(Some(fault.reason())),
            Err(Broken::Stream(_)) => Err(None),
        }
    }

    #[tokio::test]
    async fn an_import_is_its_options_and_then_its_text() {
        assert_eq!(reason(vec![options(), chunk(3), chunk(4)]).await, Ok(7));
        assert_eq!(reason(vec![chunk(3)]).await, Err(Some(Reason::InvalidRequest)));
        assert_eq!(reason(vec![]).await, Err(Some(Reason::InvalidRequest)));
        assert_eq!(reason(vec![options(), options()]).await, Err(Some(Reason::InvalidRequest)));
        assert_eq!(reason(vec![options(), Err(Status::cancelled("gone"))]).await, Err(None));
        let parts = vec![options(), chunk(MAX_IMPORT), chunk(1)];
        assert_eq!(reason(parts).await, Err(Some(Reason::RequestTooLarge)));
    }
}
