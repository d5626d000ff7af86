//! Rows of type `http`: one request to the row's upstream, with the credential put in at the last moment.

use std::fmt::Write as _;
use std::time::Duration;

use callbook_domain::auth::{Applied, Auth};
use callbook_domain::compile::Compiled;
use callbook_domain::outcome::{Failure, Outcome, Output, is_json};
use callbook_domain::row::Effect;
use callbook_domain::secret::Verdict;
use callbook_domain::target::HttpRequest;
use http::{HeaderName, HeaderValue, Method};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;
use url::Url;

use crate::App;
use crate::call::{Call, Ran};
use crate::config::MAX_RESPONSE;
use crate::egress::breaker::{Gate, fingerprint};
use crate::egress::{self, Answered, Failed, Limits, Outbound, Phase, Redirects, Sent};
use crate::store::breaker::{self, Credential};

/// Sends the request and reads the answer.
pub async fn run(app: &App, call: &Call, request: &HttpRequest, limit: Duration) -> Ran {
    match prepare(app, call, request) {
        Err(failure) => Ran::local(Outcome::Failed(failure)),
        Ok((outbound, credential)) => send(app, call, outbound, credential, limit).await,
    }
}

async fn send(app: &App, call: &Call, outbound: Outbound, credential: Option<Credential>, limit: Duration) -> Ran {
    let (pool, now) = (app.directory.pool(), app.clock.now());
    let gate = match &credential {
        None => Gate::Pass,
        Some(credential) => breaker::enter(pool, credential, now).await.unwrap_or(Gate::Pass),
    };
    if let Gate::Open { .. } = gate {
        return Ran::local(Outcome::Failed(open_breaker(call.entry.key().as_str())));
    }
    let written = written(&outbound);
    let limits = limits(call, limit);
    let answered = egress::send(&app.egress, outbound, limits).await;
    if let Some(credential) = &credential {
        let status = answered.as_ref().ok().map(|answered| answered.status);
        if let Err(error) = breaker::leave(pool, credential, gate, status, app.clock.now()).await {
            tracing::warn!(%error, "the breaker could not be told");
        }
    }
    let response = answered.as_ref().ok().map(head);
    let outcome = match answered {
        Ok(answered) => outcome(answered, call.entry.row.effect),
        Err(failed) => Outcome::Failed(failure(&failed, call.entry.row.effect)),
    };
    Ran { outcome, request: Some(written), response }
}

/// What a call with a dead credential gives.
pub fn open_breaker(key: &str) -> Failure {
    Failure::new(
        format!("breaker_open:{key} — 8 consecutive auth failures; credential is dead until replaced."),
        "the upstream refused this credential eight times in a row",
    )
}

fn limits(call: &Call, limit: Duration) -> Limits {
    let bytes = call.entry.row.definition.max_response_bytes.and_then(|bytes| usize::try_from(bytes).ok());
    let defaults = Limits::default();
    Limits {
        total: limit,
        head: defaults.head.min(limit),
        idle: defaults.idle.min(limit),
        max_bytes: bytes.unwrap_or(MAX_RESPONSE).min(MAX_RESPONSE),
        ..defaults
    }
}

/// Builds the request with its credential. A secret without a value or a binding ends here, before anything is sent.
fn prepare(app: &App, call: &Call, request: &HttpRequest) -> Result<(Outbound, Option<Credential>), Failure> {
    let compiled = call.entry.compiled.as_ref().map_err(|fault| Failure::new("internal", fault.message()))?;
    let (applied, credential) = credential(app, call, compiled, &request.url)?;
    let mut url = request.url.clone();
    for (name, value) in &applied.query {
        url.query_pairs_mut().append_pair(name, value);
    }
    let mut headers = Vec::new();
    if let Some(media_type) = &request.media_type {
        headers.push(header("content-type", media_type)?);
    }
    for (name, value) in &applied.headers {
        let (name, mut value) = header(name, value)?;
        value.set_sensitive(true);
        headers.retain(|(other, _)| *other != name);
        headers.push((name, value));
    }
    let method = Method::from_bytes(request.method.as_str().as_bytes())
        .map_err(|_| Failure::new("http:fetch", "the method is not one"))?;
    let body = request.body.clone().map(Into::into);
    let secret = credential.as_ref().map(|credential| credential.secret.clone());
    Ok((Outbound { method, url, headers, body, secret, redirects: Redirects::None }, credential))
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        (Ok(name), Ok(value)) => Ok((name, value)),
        (Err(_), _) | (_, Err(_)) => Err(Failure::new("auth:bad_header", format!("the value of header `{name}` cannot be sent"))),
    }
}

fn credential(
    app: &App,
    call: &Call,
    compiled: &Compiled,
    url: &Url,
) -> Result<(Applied, Option<Credential>), Failure> {
    let names = compiled.auth.secret_names();
    if names.is_empty() {
        return Ok((apply(&compiled.auth, &[])?, None));
    }
    let origin = url.origin().ascii_serialization();
    let mut values: Vec<(String, SecretString)> = Vec::new();
    for name in names {
        match app.directory.rules().secrets.verdict(&name, &origin, call.entry.key()) {
            Verdict::Allowed => {}
            Verdict::NotConfigured => return Err(Failure::new("auth:missing_secret", name)),
            Verdict::WrongOrigin | Verdict::WrongKey => return Err(Failure::new("auth:secret_origin_refused", name)),
        }
        let value = app.secrets.value(&name).map_err(|_| Failure::new("auth:missing_secret", name.clone()))?;
        values.push((name, value));
    }
    let credential = Credential {
        origin,
        secret: values.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join("+"),
        fingerprint: values.iter().map(|(_, value)| fingerprint(value)).collect::<Vec<_>>().join("+"),
    };
    Ok((apply(&compiled.auth, &values)?, Some(credential)))
}

fn apply(auth: &Auth, values: &[(String, SecretString)]) -> Result<Applied, Failure> {
    auth.apply(|name| {
        let value = values.iter().find(|(known, _)| known == name);
        value.map(|(_, value)| value.expose_secret().to_owned()).ok_or_else(|| Failure::new("auth:missing_secret", name))
    })
}

/// The credential of a call, for the look at its breaker before the commit. None where the row has none, or where the
/// call will end before it sends anything.
pub fn credential_of(app: &App, call: &Call, url: &Url) -> Option<Credential> {
    let compiled = call.entry.compiled.as_ref().ok()?;
    credential(app, call, compiled, url).ok()?.1
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
    let headers: serde_json::Map<String, serde_json::Value> =
        answered.kept_headers.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
    json!({"status": answered.status, "headers": headers, "truncated": answered.truncated}).to_string().into_bytes()
}

fn outcome(answered: Answered, effect: Effect) -> Outcome {
    let status = answered.status;
    let output = output(&answered);
    if status < 400 {
        return Outcome::Ok(output, Some(status));
    }
    let retryable = effect == Effect::Read && (status == 429 || status >= 500) || status == 429;
    Outcome::Failed(Failure {
        code: format!("http:{status}"),
        message: format!("the upstream answered {status}"),
        upstream_status: Some(status),
        retryable,
        at: None,
        output: Some(output),
    })
}

/// JSON without its byte order mark, text as UTF-8, anything else as it came.
fn output(answered: &Answered) -> Output {
    let media_type = answered.media_type.clone().unwrap_or_default();
    let bytes = if is_json(&media_type) {
        egress::json_bytes(answered).to_vec()
    } else {
        match egress::text(answered) {
            Some(text) if media_type.starts_with("text/") => text.into_owned().into_bytes(),
            Some(_) | None => answered.body.to_vec(),
        }
    };
    Output { bytes, media_type, truncated: answered.truncated }
}

/// A call without a whole answer. A write whose first byte may have left is never called retryable.
fn failure(failed: &Failed, effect: Effect) -> Failure {
    let code = match failed.phase {
        Phase::Refused(refusal) => format!("http:refused:{}", refusal.as_str()),
        Phase::Timeout => "http:timeout".to_owned(),
        Phase::Decode => "http:decode".to_owned(),
        Phase::Dns | Phase::Connect | Phase::Tls | Phase::Send | Phase::Head | Phase::Body => "http:fetch".to_owned(),
    };
    let refused = matches!(failed.phase, Phase::Refused(_));
    let safe = failed.sent == Sent::No || effect == Effect::Read;
    let failure = Failure::new(code, failed.message.clone());
    if safe && !refused { failure.retryable() } else { failure }
}
