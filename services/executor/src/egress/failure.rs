//! How a call can fail, and whether the upstream may have seen it.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};

use super::address::{Origin, Refusal};
use super::dns::LookupFailed;

/// Where a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Our rules refuse it.
    Refused(Refusal),
    /// The name could not be looked up.
    Dns,
    /// No connection.
    Connect,
    /// A connection, but no trust.
    Tls,
    /// While the request was written.
    Send,
    /// Before the head of the answer was complete.
    Head,
    /// Before the body of the answer was complete.
    Body,
    /// A limit of time was reached after the connection was asked for.
    Timeout,
    /// The body is not in the coding that the head says, or in one that we do not read.
    Decode,
}

/// Whether a byte of the request may have left. `MayHave` is the answer in doubt: it forbids another try of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Not a byte.
    No,
    /// Perhaps, and perhaps all of it.
    MayHave,
}

/// A call without a usable answer. The message holds the origin at most: never a path, a query or a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Where it ended.
    pub phase: Phase,
    /// A sentence for people, safe to store.
    pub message: String,
    /// Whether the upstream may have seen it.
    pub sent: Sent,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failed {}

impl Failed {
    /// A refusal by our own rules: nothing was sent.
    pub(super) fn refused(refusal: Refusal) -> Self {
        Failed { phase: Phase::Refused(refusal), message: refusal.to_string(), sent: Sent::No }
    }

    /// A failure after the request was handed to a connection.
    pub(super) fn after(phase: Phase, message: String) -> Self {
        Failed { phase, message, sent: Sent::MayHave }
    }

    /// A failure before the request was handed to a connection.
    pub(super) fn before(phase: Phase, message: String) -> Self {
        Failed { phase, message, sent: Sent::No }
    }

    /// Reads what the client says about a request that got no head. Texts of the client are not used: they hold the
    /// URL, and with HTTP/2 also bytes that the upstream chose.
    pub(super) fn of_request(error: &reqwest::Error, origin: &Origin) -> Self {
        if let Some(refusal) = cause::<Refusal>(error) {
            return Failed::refused(*refusal);
        }
        if cause::<LookupFailed>(error).is_some() {
            return Failed::before(Phase::Dns, format!("the name of {origin} cannot be looked up"));
        }
        if error.is_builder() {
            return Failed::before(Phase::Send, format!("the request to {origin} cannot be written"));
        }
        if error.is_connect() {
            return Failed::of_connection(error, origin);
        }
        let kind = io_kind(error);
        let phase = match kind {
            Some(ErrorKind::BrokenPipe | ErrorKind::WriteZero) => Phase::Send,
            _ => Phase::Head,
        };
        Failed::after(phase, format!("{origin} gave no answer: {}", reason(kind)))
    }

    fn of_connection(error: &reqwest::Error, origin: &Origin) -> Self {
        if error.is_timeout() {
            return Failed::before(Phase::Connect, format!("no connection to {origin} in time"));
        }
        if let Some(tls) = cause::<rustls::Error>(error) {
            return Failed::before(Phase::Tls, format!("no trusted connection to {origin}: {tls}"));
        }
        let kind = io_kind(error);
        if origin.is_https() && kind == Some(ErrorKind::UnexpectedEof) {
            return Failed::before(Phase::Tls, format!("{origin} broke off the tls handshake"));
        }
        Failed::before(Phase::Connect, format!("no connection to {origin}: {}", reason(kind)))
    }

    /// Reads what the client says about a body that ended early.
    pub(super) fn of_body(error: &reqwest::Error, origin: &Origin) -> Self {
        Failed::after(Phase::Body, format!("the answer of {origin} broke off: {}", reason(io_kind(error))))
    }
}

fn reason(kind: Option<ErrorKind>) -> String {
    kind.map_or_else(|| "the connection ended or broke the protocol".to_owned(), |kind| kind.to_string())
}

/// The innermost kind says most: a TLS failure, for one, comes as an `Other` around the real one.
fn io_kind(error: &reqwest::Error) -> Option<ErrorKind> {
    let errors = chain(error).filter_map(|error| error.downcast_ref::<io::Error>());
    errors.map(io::Error::kind).filter(|kind| *kind != ErrorKind::Other).last()
}

/// The first cause of a type.
fn cause<T: Error + 'static>(error: &reqwest::Error) -> Option<&T> {
    chain(error).find_map(|error| error.downcast_ref())
}

/// An error and its causes. An `io::Error` hides the one that it was made from, so that is looked at too.
fn chain(error: &reqwest::Error) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(Some(error as &(dyn Error + 'static)), |current| {
        let current: &(dyn Error + 'static) = *current;
        match current.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(inner) => Some(inner as &(dyn Error + 'static)),
            None => current.source(),
        }
    })
}
