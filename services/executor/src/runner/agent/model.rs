//! One answer of a model: the request with its credential, tries before anything of an answer has come, and its cost.

use std::time::{Duration, Instant};

use callbook_domain::auth::{Auth, AuthPiece};
use callbook_domain::outcome::{Failure, Outcome};
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Value, json};

use super::provider::choose;
use super::wire;
use crate::call::Ran;
use crate::child::Running;
use crate::config::{MAX_RESPONSE, Provider, WireForm};
use crate::egress::Limits;
use crate::runner::http::{self as exchange, Wanted};

/// How often one answer is asked for at most.
const TRIES: u32 = 3;
/// The pause before the second try; each later one is twice as long. A provider's own word goes before it.
const PAUSE: Duration = Duration::from_millis(250);

/// What is asked.
#[derive(Clone, Debug)]
pub struct ModelCall {
    /// The model's id as the row has it.
    pub model: String,
    /// The conversation in the provider's form.
    pub body: Vec<u8>,
}

/// Asks for the answer. Gives the provider's own JSON once it is known to be an answer.
pub async fn run(running: Running<'_>, asked: &ModelCall) -> Ran {
    match attempts(running, asked).await {
        Ok(ran) => ran,
        Err(failure) => Ran::local(Outcome::Failed(failure)),
    }
}

async fn attempts(running: Running<'_>, asked: &ModelCall) -> Result<Ran, Failure> {
    let until = Instant::now() + running.limit;
    let chosen = choose(&asked.model, &running.app.config.providers)?;
    let (form, url) = (chosen.provider.form, wire::address(chosen.provider.form, &chosen.provider.base_url));
    let headers = wire::headers(form).iter();
    let wanted = Wanted {
        method: Method::POST,
        url,
        media_type: Some("application/json".to_owned()),
        headers: headers.map(|(n, v)| (HeaderName::from_static(n), HeaderValue::from_static(v))).collect(),
        body: Some(asked.body.clone()),
    };
    let auth = auth(running, chosen.provider)?;
    let (outbound, used) = exchange::prepare(running.app, running.call, &auth, wanted)?;
    let mut tried = 1;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let ran = exchange::send(running.app, running.call, outbound.clone(), used.clone(), limits(left), false).await;
        match pause(&ran, tried) {
            Some(pause) if tried < TRIES && pause < until.saturating_duration_since(Instant::now()) => {
                tokio::time::sleep(pause).await;
                tried += 1;
            }
            Some(_) | None => return Ok(read(ran, &chosen, tried)),
        }
    }
}

/// The row's own credential, else the provider's, in the header that the form wants a key in.
fn auth(running: Running<'_>, provider: &Provider) -> Result<Auth, Failure> {
    let compiled = running.call.entry.compiled.as_ref().map_err(|fault| Failure::new("internal", fault.message()))?;
    let named = match (&compiled.auth, &provider.secret) {
        (Auth::None, None) => return Ok(Auth::None),
        (Auth::None, Some(secret)) | (Auth::Bearer(secret), _) => secret.clone(),
        (other @ (Auth::Basic { .. } | Auth::Headers(_) | Auth::Query { .. } | Auth::Oauth(_)), _) => {
            return Ok(other.clone());
        }
    };
    Ok(match provider.form {
        WireForm::OpenaiChat => Auth::Bearer(named),
        WireForm::AnthropicMessages => Auth::Headers(vec![("x-api-key".to_owned(), vec![AuthPiece::Secret(named)])]),
    })
}

/// A model thinks before it says anything, so the head may take as long as the whole.
fn limits(left: Duration) -> Limits {
    Limits { total: left, head: left, idle: left, max_bytes: MAX_RESPONSE, ..Limits::default() }
}

/// How long to wait before another try, where one can do no harm: not a byte has left, or the provider says that it did
/// nothing and to come again. An answer that broke off may have been paid for and is not asked for again.
fn pause(ran: &Ran, tried: u32) -> Option<Duration> {
    let Outcome::Failed(failure) = &ran.outcome else { return None };
    let own = PAUSE * 2u32.pow(tried - 1);
    match failure.upstream_status {
        Some(429 | 503 | 529) => Some(retry_after(ran).unwrap_or(own)),
        Some(_) => None,
        None => failure.retryable.then_some(own),
    }
}

fn retry_after(ran: &Ran) -> Option<Duration> {
    let head: Value = serde_json::from_slice(ran.response.as_deref()?).ok()?;
    let seconds: f64 = head["headers"]["retry-after"].as_str()?.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// What an exchange gave, as an answer of a model.
fn read(ran: Ran, chosen: &super::provider::Chosen<'_>, tried: u32) -> Ran {
    let mut told = json!({"provider": chosen.name, "model": chosen.model, "tries": tried});
    let head = ran.response.as_deref().and_then(|head| serde_json::from_slice::<Value>(head).ok());
    if let Some(Value::Object(head)) = head {
        head.into_iter().for_each(|(name, value)| told[name] = value);
    }
    let (outcome, cost_usd) = match ran.outcome {
        Outcome::Ok(output, status) if output.truncated => {
            let failure = super::chat::malformed("it is longer than 4 MiB");
            (Outcome::Failed(Failure { upstream_status: status, output: Some(output), ..failure }), 0.0)
        }
        Outcome::Ok(output, status) => match wire::decode(chosen.provider.form, &output.bytes) {
            Ok(reply) => {
                told["usage"] = json!({"input": reply.usage.input, "output": reply.usage.output});
                (Outcome::Ok(output, status), chosen.cost(reply.usage))
            }
            Err(failure) => {
                (Outcome::Failed(Failure { upstream_status: status, output: Some(output), ..failure }), 0.0)
            }
        },
        Outcome::Failed(failure) => (Outcome::Failed(named(failure)), 0.0),
    };
    Ran { outcome, response: Some(told.to_string().into_bytes()), cost_usd, ..ran }
}

/// `http:429` of a model's provider is `agent:http:429`.
fn named(failure: Failure) -> Failure {
    match failure.code.starts_with("http:") {
        true => Failure { code: format!("agent:{}", failure.code), ..failure },
        false => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(failure: Failure, head: &str) -> Ran {
        Ran { response: Some(head.as_bytes().to_vec()), ..Ran::local(Outcome::Failed(failure)) }
    }

    #[test]
    fn another_try_is_made_only_where_it_can_do_no_harm() {
        let status = |status| Failure { upstream_status: Some(status), ..Failure::new("http:x", "x") };
        let empty = r#"{"headers":{}}"#;
        assert_eq!(pause(&ran(status(429), empty), 1), Some(PAUSE));
        assert_eq!(pause(&ran(status(503), empty), 2), Some(PAUSE * 2));
        let told = r#"{"headers":{"retry-after":"1.5"}}"#;
        assert_eq!(pause(&ran(status(529), told), 1), Some(Duration::from_millis(1_500)));
        let odd = r#"{"headers":{"retry-after":"-1"}}"#;
        assert_eq!(pause(&ran(status(429), odd), 1), Some(PAUSE));
        assert_eq!(pause(&ran(status(500), told), 1), None);
        assert_eq!(pause(&ran(Failure::new("http:fetch", "may have left"), empty), 1), None);
        assert_eq!(pause(&ran(Failure::new("http:fetch", "nobody there").retryable(), empty), 1), Some(PAUSE));
    }
}
