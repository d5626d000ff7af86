//! Rows of type `http`: one request to the row's upstream, with the credential put in at the last moment.

use std::time::Duration;

use callbook_domain::auth::{Applied, Auth};
use callbook_domain::outcome::{Failure, Outcome};
use callbook_domain::row::Effect;
use callbook_domain::secret::Verdict;
use callbook_domain::target::HttpRequest;
use http::{HeaderName, HeaderValue, Method};
use secrecy::{ExposeSecret as _, SecretString};
use tracing::Instrument as _;
use url::Url;

use crate::App;
use crate::call::{Call, Ran};
use crate::config::MAX_RESPONSE;
use crate::egress::breaker::{Gate, fingerprint};
use crate::egress::{Limits, Outbound, Redirects};
use crate::runner::exchange;
use crate::store::breaker::{self, Credential};

/// Sends the request and reads the answer.
pub async fn run(app: &App, call: &Call, request: &HttpRequest, limit: Duration) -> Ran {
    let (method, host) = (request.method.as_str(), request.url.host_str().unwrap_or_default());
    let span = tracing::info_span!(
        "upstream", otel.name = %method, otel.kind = "client", http.request.method = %method, server.address = %host,
    );
    let exchange = async {
        match built(app, call, request) {
            Err(failure) => Ran::local(Outcome::Failed(failure)),
            Ok((outbound, used)) => {
                let is_safe = call.entry.row.effect == Effect::Read;
                send(app, call, outbound, used, limits(call, limit), is_safe).await
            }
        }
    };
    exchange.instrument(span).await
}

/// A request without its credential.
pub(super) struct Wanted {
    pub(super) method: Method,
    pub(super) url: Url,
    pub(super) media_type: Option<String>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) body: Option<Vec<u8>>,
}

/// A credential with the values that it has in this call.
#[derive(Clone)]
pub(super) struct Used {
    credential: Credential,
    values: Vec<(String, SecretString)>,
}

/// Sends a request through the breaker of its credential. `is_safe` says that a repetition changes nothing.
pub(super) async fn send(
    app: &App,
    call: &Call,
    outbound: Outbound,
    used: Option<Used>,
    limits: Limits,
    is_safe: bool,
) -> Ran {
    let (credential, values) = used.map(|used| (used.credential, used.values)).unzip();
    let (pool, now) = (app.directory.pool(), app.clock.now());
    let gate = match &credential {
        None => Gate::Pass,
        Some(credential) => breaker::enter(pool, credential, now).await.unwrap_or(Gate::Pass),
    };
    if let Gate::Open { .. } = gate {
        return Ran::local(Outcome::Failed(open_breaker(call.entry.key().as_str())));
    }
    let ran = exchange::exchange(&app.egress, outbound, limits, is_safe).await;
    if let Some(credential) = &credential {
        let status = ran.outcome.upstream_status();
        if let Err(error) = breaker::leave(pool, credential, gate, status, app.clock.now()).await {
            tracing::warn!(%error, "the breaker could not be told");
        }
    }
    Ran { used: values.unwrap_or_default(), ..ran }
}

/// What a call with a dead credential gives.
pub fn open_breaker(key: &str) -> Failure {
    Failure::new(
        format!("breaker_open:{key} — 8 consecutive auth failures; credential is dead until replaced."),
        "the upstream refused this credential eight times in a row",
    )
}

/// The bounds of a call: the row's own within the executor's.
pub fn limits(call: &Call, limit: Duration) -> Limits {
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

/// The row's request with the row's credential.
fn built(app: &App, call: &Call, request: &HttpRequest) -> Result<(Outbound, Option<Used>), Failure> {
    let compiled = call.entry.compiled.as_ref().map_err(|fault| Failure::new("internal", fault.message()))?;
    let method = Method::from_bytes(request.method.as_str().as_bytes())
        .map_err(|_| Failure::new("http:fetch", "the method is not one"))?;
    let wanted = Wanted {
        method,
        url: request.url.clone(),
        media_type: request.media_type.clone(),
        headers: Vec::new(),
        body: request.body.clone(),
    };
    prepare(app, call, &compiled.auth, wanted)
}

/// Puts the credential into a request. A secret without a value or a binding ends here, before anything is sent.
pub(super) fn prepare(
    app: &App,
    call: &Call,
    auth: &Auth,
    wanted: Wanted,
) -> Result<(Outbound, Option<Used>), Failure> {
    let Wanted { method, mut url, media_type, mut headers, body } = wanted;
    let (applied, used) = credential(app, call, auth, &url)?;
    for (name, value) in &applied.query {
        url.query_pairs_mut().append_pair(name, value);
    }
    if let Some(media_type) = &media_type {
        headers.push(header("content-type", media_type)?);
    }
    for (name, value) in &applied.headers {
        let (name, mut value) = header(name, value)?;
        value.set_sensitive(true);
        headers.retain(|(other, _)| *other != name);
        headers.push((name, value));
    }
    let body = body.map(Into::into);
    let secret = used.as_ref().map(|used| used.credential.secret.clone());
    Ok((Outbound { method, url, headers, body, secret, redirects: Redirects::None }, used))
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    match (HeaderName::try_from(name), HeaderValue::try_from(value)) {
        (Ok(name), Ok(value)) => Ok((name, value)),
        (Err(_), _) | (_, Err(_)) => {
            Err(Failure::new("auth:bad_header", format!("the value of header `{name}` cannot be sent")))
        }
    }
}

fn credential(app: &App, call: &Call, auth: &Auth, url: &Url) -> Result<(Applied, Option<Used>), Failure> {
    let names = auth.secret_names();
    if names.is_empty() {
        return Ok((apply(auth, &[])?, None));
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
    Ok((apply(auth, &values)?, Some(Used { credential, values })))
}

fn apply(auth: &Auth, values: &[(String, SecretString)]) -> Result<Applied, Failure> {
    auth.apply(|name| {
        let value = values.iter().find(|(known, _)| known == name);
        value
            .map(|(_, value)| value.expose_secret().to_owned())
            .ok_or_else(|| Failure::new("auth:missing_secret", name))
    })
}

/// The credential of a call, for the look at its breaker before the commit. None where the row has none, or where the
/// call will end before it sends anything.
pub fn credential_of(app: &App, call: &Call, url: &Url) -> Option<Credential> {
    let compiled = call.entry.compiled.as_ref().ok()?;
    Some(credential(app, call, &compiled.auth, url).ok()?.1?.credential)
}
