//! One exchange with an upstream: what went out, what came back, and the typed outcome of it.

use std::fmt::Write as _;

use callbook_domain::outcome::{Failure, Outcome, Output, is_json};
use callbook_runtime::telemetry::inject_context;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};

use crate::call::Ran;
use crate::egress::{self, Answered, Egress, Failed, Limits, Outbound, Phase, Sent};

/// What is read past the bound of an output, in bytes, and cut off once secrets were taken out: a secret that stands
/// across the cut is seen whole. To look for the beginnings of secrets at the cut instead would tell an upstream which of
/// its guesses is one.
const TAIL: usize = 16 * 1024;

/// Sends a request and reads its answer. `is_safe` says that a repetition changes nothing, so that a failure in doubt
/// may be called retryable.
pub async fn exchange(egress: &Egress, mut outbound: Outbound, limits: Limits, is_safe: bool) -> Ran {
    if let Some(trace) = trace().filter(|(name, _)| !outbound.headers.iter().any(|(other, _)| other == name)) {
        outbound.headers.push(trace);
    }
    let request = Some(written(&outbound));
    let mut most = limits.max_bytes;
    let limits = Limits { max_bytes: most.saturating_add(TAIL), ..limits };
    let (outcome, response) = match egress::send(egress, outbound, limits).await {
        Ok(mut answered) => {
            let length = answered.body.len();
            if answered.truncated && length <= most {
                most = length.saturating_sub(TAIL); // cut as a bomb, and nobody read on
            }
            answered.truncated |= length > most;
            (outcome(&answered, is_safe), Some(head(&answered)))
        }
        Err(failed) => (Outcome::Failed(unanswered(&failed, is_safe)), None),
    };
    Ran { outcome, request, response, used: Vec::new(), most: Some(most), cost_usd: 0.0 }
}

/// The call's place in its trace, so that the upstream's spans join it. What vendors of tracing put beside it stays in.
fn trace() -> Option<(HeaderName, HeaderValue)> {
    let mut headers = HeaderMap::new();
    inject_context(&mut headers);
    headers.remove("traceparent").map(|value| (HeaderName::from_static("traceparent"), value))
}

/// The request as it goes over the wire. Its secrets are taken out before it is kept.
fn written(outbound: &Outbound) -> Vec<u8> {
    let mut text = format!("{} {}\n", outbound.method, outbound.url);
    for (name, value) in &outbound.headers {
        let _ = writeln!(text, "{name}: {}", value.to_str().unwrap_or_default());
    }
    let mut bytes = text.into_bytes();
    if let Some(body) = &outbound.body {
        bytes.push(b'\n');
        bytes.extend_from_slice(body);
    }
    bytes
}

fn head(answered: &Answered) -> Vec<u8> {
    let headers: Map<String, Value> =
        answered.kept_headers.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    json!({"status": answered.status, "headers": headers, "truncated": answered.truncated}).to_string().into_bytes()
}

fn outcome(answered: &Answered, is_safe: bool) -> Outcome {
    let (status, output) = (answered.status, output(answered));
    // a redirect is not followed, so what was asked for was not done, or nobody can say that it was
    if !(300..400).contains(&status) && status < 400 {
        return Outcome::Ok(output, Some(status));
    }
    Outcome::Failed(Failure {
        code: format!("http:{status}"),
        message: format!("the upstream answered {status}"),
        upstream_status: Some(status),
        retryable: status == 429 || is_safe && status >= 500,
        at: None,
        output: Some(output),
    })
}

/// JSON without its byte order mark, text as UTF-8, anything else as it came.
fn output(answered: &Answered) -> Output {
    let media_type = answered.media_type.clone().unwrap_or_default();
    let bytes = match egress::text(answered) {
        _ if is_json(&media_type) => egress::json_bytes(answered).to_vec(),
        Some(text) if media_type.starts_with("text/") => text.into_owned().into_bytes(),
        Some(_) | None => answered.body.to_vec(),
    };
    Output { bytes, media_type, truncated: answered.truncated }
}

/// A request without a whole answer. One that may change something is not called safe to repeat once a byte may have
/// left.
fn unanswered(failed: &Failed, is_safe: bool) -> Failure {
    let code = match failed.phase {
        Phase::Refused(refusal) => return Failure::new(format!("http:refused:{}", refusal.as_str()), &failed.message),
        Phase::Timeout => "http:timeout",
        Phase::Decode => "http:decode",
        Phase::Dns | Phase::Connect | Phase::Tls | Phase::Send | Phase::Head | Phase::Body => "http:fetch",
    };
    let failure = Failure::new(code, &failed.message);
    if is_safe || failed.sent == Sent::No { failure.retryable() } else { failure }
}
