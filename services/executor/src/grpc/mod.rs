//! The executor over gRPC: decode, one call, encode.

mod execute;
mod stream;
mod approvals;
mod receipts;

use std::sync::Arc;
use std::time::Duration;

use callbook_domain::arguments::Sent;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_domain::outcome::Failure;
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_wire::directory::v1 as directory;
use callbook_wire::executor::v1::Arguments;
use callbook_wire::executor::v1::arguments::Form;
use callbook_wire::executor::v1::executor_service_server::ExecutorServiceServer;
use callbook_wire::receipt::v1 as wire;
use callbook_wire::receipt::v1::receipt_service_server::ReceiptServiceServer;
use http::HeaderMap;
use serde_json::value::RawValue;
use time::OffsetDateTime;

use crate::App;
use crate::call::Deadline;
use crate::config::{DEFAULT_DEADLINE, MAX_DEADLINE};

/// The executor's services.
#[derive(Clone)]
pub struct Grpc(Arc<App>);

/// Both services of an executor.
pub fn services(app: Arc<App>) -> (ExecutorServiceServer<Grpc>, ReceiptServiceServer<Grpc>) {
    (ExecutorServiceServer::new(Grpc(app.clone())), ReceiptServiceServer::new(Grpc(app)))
}

fn sent(arguments: Option<Arguments>) -> Result<Sent> {
    match arguments.and_then(|arguments| arguments.form) {
        None => Ok(Sent::Nothing),
        Some(Form::Body(body)) => Sent::new(Some(body), None),
        Some(Form::ArgsJson(bytes)) => {
            let raw: Box<RawValue> = serde_json::from_slice(&bytes)
                .map_err(|_| Fault::new(Reason::InvalidRequest, "args_json is not JSON").with("field", "args"))?;
            Sent::new(None, Some(raw))
        }
    }
}

/// The caller's deadline from `grpc-timeout`: digits and one unit, as gRPC over HTTP/2 writes it.
fn deadline(headers: &HeaderMap) -> Deadline {
    let asked = headers.get("grpc-timeout").and_then(|value| value.to_str().ok()).and_then(grpc_timeout);
    Deadline::after(asked.unwrap_or(DEFAULT_DEADLINE).min(MAX_DEADLINE))
}

fn grpc_timeout(text: &str) -> Option<Duration> {
    let unit = text.chars().next_back()?;
    let digits = text.strip_suffix(unit).filter(|digits| digits.len() <= 8)?;
    let amount: u64 = digits.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(amount * 3_600)),
        'M' => Some(Duration::from_secs(amount * 60)),
        'S' => Some(Duration::from_secs(amount)),
        'm' => Some(Duration::from_millis(amount)),
        'u' => Some(Duration::from_micros(amount)),
        'n' => Some(Duration::from_nanos(amount)),
        _ => None,
    }
}

fn effect(effect: Effect) -> i32 {
    let wire = match effect {
        Effect::Read => directory::Effect::Read,
        Effect::Write => directory::Effect::Write,
        Effect::Destructive => directory::Effect::Destructive,
    };
    wire.into()
}

fn risk(risk: Risk) -> i32 {
    let wire = match risk {
        Risk::Low => directory::Risk::Low,
        Risk::High => directory::Risk::High,
    };
    wire.into()
}

fn row_type(row_type: RowType) -> i32 {
    let wire = match row_type {
        RowType::Fn => directory::RowType::Fn,
        RowType::Http => directory::RowType::Http,
        RowType::Agent => directory::RowType::Agent,
        RowType::Flow => directory::RowType::Flow,
    };
    wire.into()
}

fn failure(failure: Failure) -> wire::Failure {
    wire::Failure {
        code: failure.code,
        message: failure.message,
        upstream_status: failure.upstream_status.map(u32::from),
        retryable: failure.retryable,
        r#where: failure.at.unwrap_or_default(),
    }
}

fn at(time: OffsetDateTime) -> prost_types::Timestamp {
    prost_types::Timestamp { seconds: time.unix_timestamp(), nanos: i32::try_from(time.nanosecond()).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grpc_timeout_is_digits_and_a_unit() {
        assert_eq!(grpc_timeout("250m"), Some(Duration::from_millis(250)));
        assert_eq!(grpc_timeout("1S"), Some(Duration::from_secs(1)));
        for odd in ["", "S", "1", "-1S", "1s", "123456789S", "é"] {
            assert_eq!(grpc_timeout(odd), None, "{odd:?}");
        }
    }
}
