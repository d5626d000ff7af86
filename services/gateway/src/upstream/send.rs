//! One call to a service, and what is tried again at another process of it.

use std::error::Error;
use std::future::Future;

use callbook_domain::fault::{Fault, Reason, Result};
use callbook_runtime::grpc::from_status;
use tonic::{Code, ConnectError, Request, Response, Status, TimeoutExpired};

use super::{Lane, Pool, Wire};
use crate::request::Call;

impl Pool {
    /// Asks for something that changes nothing: where the connection fails, another process is asked.
    pub(crate) async fn read<Q, A, F>(&self, call: &Call, message: Q, rpc: impl Fn(Wire, Request<Q>) -> F) -> Result<A>
    where
        Q: Clone,
        F: Future<Output = std::result::Result<Response<A>, Status>>,
    {
        let answer = self.send(call, message, rpc, is_of_transport).await;
        answer.map_err(|status| fault_of_read(&status))
    }

    /// Asks for something that may change the world: another process is asked only where the request never arrived or
    /// the service says that it is stopping, so that nothing can have been done.
    pub(crate) async fn write<Q, A, F>(&self, call: &Call, message: Q, rpc: impl Fn(Wire, Request<Q>) -> F) -> Result<A>
    where
        Q: Clone,
        F: Future<Output = std::result::Result<Response<A>, Status>>,
    {
        let answer = self.send(call, message, rpc, nothing_was_done).await;
        answer.map_err(|status| fault_of_write(&status))
    }

    /// A connection for a call that can be made only once, such as a stream.
    pub(crate) fn lane(&self) -> Result<Lane> {
        self.pick(&[]).ok_or_else(nobody)
    }

    async fn send<Q, A, F>(
        &self,
        call: &Call,
        message: Q,
        rpc: impl Fn(Wire, Request<Q>) -> F,
        again: impl Fn(&Status) -> bool,
    ) -> std::result::Result<A, Status>
    where
        Q: Clone,
        F: Future<Output = std::result::Result<Response<A>, Status>>,
    {
        let mut tried = Vec::new();
        let mut last = None;
        while let Some(lane) = self.pick(&tried) {
            let request = call.request(message.clone())?;
            match rpc(lane.wire.clone(), request).await {
                Ok(answer) => return Ok(answer.into_inner()),
                Err(status) => {
                    if is_of_transport(&status) || again(&status) {
                        lane.avoid(self.avoid());
                        tracing::warn!(at = lane.at(), error = status.message(), "a service cannot be reached");
                    }
                    if !again(&status) {
                        return Err(status);
                    }
                    tried.push(lane.at().to_owned());
                    last = Some(status);
                }
            }
        }
        Err(last.unwrap_or_else(|| callbook_runtime::grpc::to_status(&nobody())))
    }
}

/// Whether the status was made on this side because the connection failed, and not by the service. A deadline that
/// passed is no failed connection.
fn is_of_transport(status: &Status) -> bool {
    status.source().is_some() && !has_cause::<TimeoutExpired>(status)
}

/// A service says `shutting_down` only before it has committed anything.
fn nothing_was_done(status: &Status) -> bool {
    let stopping = || !is_of_transport(status) && from_status(status).reason() == Reason::ShuttingDown;
    never_arrived(status) || stopping()
}

/// No connection came about; or the one that there was closed with the request still waiting to be written; or the
/// service closed it in order and has not looked at what came after the last request that it answers there (RFC 9113,
/// 6.8 and 8.7).
fn never_arrived(status: &Status) -> bool {
    let not_taken = |error: &h2::Error| {
        let closing = error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
        error.is_remote() && (closing || error.is_reset() && error.reason() == Some(h2::Reason::REFUSED_STREAM))
    };
    has_cause::<ConnectError>(status)
        || cause::<hyper::Error>(status).is_some_and(hyper::Error::is_canceled)
        || cause::<h2::Error>(status).is_some_and(not_taken)
}

fn has_cause<E: Error + 'static>(status: &Status) -> bool {
    cause::<E>(status).is_some()
}

fn cause<E: Error + 'static>(status: &Status) -> Option<&E> {
    let mut cause = status.source();
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

/// The fault of a call that changes nothing: whatever happened to it, nothing ran.
pub(crate) fn fault_of_read(status: &Status) -> Fault {
    if is_of_transport(status) {
        return unreachable();
    }
    if passed_deadline(status) {
        return Fault::new(Reason::DeadlineTooShort, "the deadline passed before there was an answer");
    }
    let fault = from_status(status);
    match fault.metadata() {
        [("fired", unknown)] if unknown == "unknown" => Fault::new(fault.reason(), fault.message()),
        _ => fault,
    }
}

/// The fault of a call that may change the world. Where it may have been taken, nobody is told that nothing ran.
pub(crate) fn fault_of_write(status: &Status) -> Fault {
    let fault = match (is_of_transport(status), passed_deadline(status)) {
        (true, _) if never_arrived(status) => return unreachable(),
        (true, _) => unreachable(),
        (false, true) => Fault::new(Reason::DeadlineTooShort, "the deadline passed before there was an answer"),
        (false, false) => return from_status(status),
    };
    fault
        .fix("see whether it was done (/api/invocations for a call), or send it again with the same idempotency key")
        .with("fired", "unknown")
}

fn unreachable() -> Fault {
    Fault::new(Reason::ServiceUnavailable, "a service that this call needs cannot be reached").retry_after_ms(1_000)
}

/// tonic's timers, ours and the service's, cancel with a text of their own; a service's own refusal has details.
fn passed_deadline(status: &Status) -> bool {
    let by_timer = status.code() == Code::Cancelled && status.message() == "Timeout expired";
    by_timer || status.code() == Code::DeadlineExceeded && status.details().is_empty()
}

fn nobody() -> Fault {
    Fault::new(Reason::ServiceUnavailable, "a service that this call needs is not set up")
}
