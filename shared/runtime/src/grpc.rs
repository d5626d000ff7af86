//! A fault as `tonic::Status`, and back. The one maker of both.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use callbook_domain::fault::{Fault, Reason};
use tonic::{Code, ConnectError, Status};
use tonic_types::{ErrorDetails, StatusExt};

use crate::status::statuses;

mod name;

/// The `domain` of our `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "callbook";
/// What a metadata value is cut to, in bytes.
const VALUE_BYTES: usize = 2 * 1024;
/// What the message is cut to, in bytes: it travels twice, once with every byte above ASCII tripled.
const MESSAGE_BYTES: usize = 1024;
/// What all metadata together is cut to, in bytes. With the message this stays below the 16 KiB of headers that a
/// client takes by default; past them the answer would be a broken stream instead of a reason.
const METADATA_BYTES: usize = 6 * 1024;

/// The status of a fault: code and message, `google.rpc.ErrorInfo` with reason, detail, fix and variables, and
/// `google.rpc.RetryInfo` where another try makes sense.
pub fn to_status(fault: &Fault) -> Status {
    let mut details = ErrorDetails::with_error_info(fault.reason().wire_name(), DOMAIN, metadata(fault));
    if let Some(ms) = fault.retry_after() {
        details.set_retry_info(Some(Duration::from_millis(ms)));
    }
    Status::with_error_details(statuses(fault.reason()).grpc, cut(fault.message(), MESSAGE_BYTES), details)
}

/// The fault that a status tells of. Exact for our own statuses, except that variables come in the order of their
/// names. For a status of another origin (transport, proxy, another version) the nearest reason; where the request
/// may have reached somebody who acts, it carries `fired: unknown`, so that nobody is told that nothing ran.
pub fn from_status(status: &Status) -> Fault {
    let details = status.get_error_details();
    let ours = details.error_info().filter(|info| info.domain == DOMAIN);
    let Some((reason, info)) = ours.and_then(|info| Some((of_wire_name(&info.reason)?, info))) else {
        return foreign(status);
    };
    let mut fault = Fault::new(reason, status.message());
    let mut variables: Vec<_> = info.metadata.iter().collect();
    variables.sort();
    for (name, value) in variables {
        fault = match name.as_str() {
            "detail" => fault.detail(value),
            "fix" => fault.fix(value),
            name => match name::lasting(name) {
                Some(name) => fault.with(name, value),
                None => fault,
            },
        };
    }
    match details.retry_info().and_then(|retry| retry.retry_delay) {
        Some(delay) => fault.retry_after_ms(u64::try_from(delay.as_millis()).unwrap_or(u64::MAX)),
        None => fault,
    }
}

/// Detail and fix first, because they say most; what does not fit any more is left out.
fn metadata(fault: &Fault) -> HashMap<String, String> {
    let own = [("detail", fault.detail_text()), ("fix", fault.how_to_fix())];
    let own = own.into_iter().filter_map(|(name, value)| Some((name, value?)));
    let variables = fault.metadata().iter().map(|(name, value)| (*name, value.as_str()));
    let mut left = METADATA_BYTES;
    let mut metadata = HashMap::new();
    for (name, value) in own.chain(variables) {
        let value = cut(value, VALUE_BYTES);
        let Some(rest) = left.checked_sub(name.len() + value.len()) else { continue };
        left = rest;
        metadata.insert(name.to_owned(), value.to_owned());
    }
    metadata
}

/// The beginning of a text, whole characters only.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

fn of_wire_name(name: &str) -> Option<Reason> {
    Reason::ALL.iter().copied().find(|reason| reason.wire_name() == name)
}

fn foreign(status: &Status) -> Fault {
    let (reason, message) = nearest(status.code());
    let fault = Fault::new(reason, message);
    match may_have_run(status) {
        true => fault.with("fired", "unknown"),
        false => fault,
    }
}

/// The status's own message is not repeated: it may be internal.
fn nearest(code: Code) -> (Reason, &'static str) {
    match code {
        Code::Unavailable | Code::Cancelled => {
            (Reason::ServiceUnavailable, "a service that this call needs does not answer")
        }
        Code::DeadlineExceeded => (Reason::DeadlineTooShort, "the deadline passed before there was an answer"),
        Code::ResourceExhausted => (Reason::Overloaded, "a service that this call needs is at its limit"),
        Code::InvalidArgument | Code::OutOfRange => (Reason::InvalidRequest, "the request was not understood"),
        Code::Unauthenticated => (Reason::Unauthorized, "the credential was not accepted"),
        Code::PermissionDenied => (Reason::Forbidden, "the call was not allowed"),
        Code::NotFound => (Reason::NotFound, "nothing at this address"),
        Code::AlreadyExists => (Reason::AlreadyExists, "it exists already"),
        Code::Aborted => (Reason::RowMoved, "the call clashed with another one"),
        Code::FailedPrecondition => (Reason::VersionMismatch, "the state is not the one that the call assumed"),
        Code::Ok | Code::Unknown | Code::Unimplemented | Code::Internal | Code::DataLoss => {
            (Reason::Internal, "something went wrong inside")
        }
    }
}

/// Whether somebody may have acted on the request. Certain that nobody did: no connection came about, or the code is
/// one that is given before anything happens.
fn may_have_run(status: &Status) -> bool {
    match status.code() {
        Code::Unavailable => !never_connected(status),
        Code::Cancelled | Code::DeadlineExceeded | Code::Aborted => true,
        Code::Ok | Code::Unknown | Code::Internal | Code::DataLoss => true,
        Code::ResourceExhausted | Code::InvalidArgument | Code::OutOfRange => false,
        Code::Unauthenticated | Code::PermissionDenied | Code::NotFound | Code::AlreadyExists => false,
        Code::FailedPrecondition | Code::Unimplemented => false,
    }
}

fn never_connected(status: &Status) -> bool {
    let mut cause = status.source();
    while let Some(error) = cause {
        if error.is::<ConnectError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

#[cfg(test)]
mod tests;
