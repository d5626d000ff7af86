//! What a call would do: the whole outbound request, and nothing runs. The values of secrets are never read.

use std::time::Duration;

use callbook_domain::arguments::Sent;
use callbook_domain::caller::Caller;
use callbook_domain::compile::Plan;
use callbook_domain::fault::{Reason, Result};
use callbook_domain::row::{Effect, Risk};
use callbook_domain::secret::Verdict;
use serde_json::{Value, json};

use crate::App;
use crate::admit::look;
use crate::approval::{self, verdict};
use crate::call::{Call, Deadline, Request, Work};
use crate::config::DEFAULT_DEADLINE;
use crate::credential::Credential;
use crate::egress::check_url;
use crate::runner;

/// A request that was built and not sent.
#[derive(Clone, Debug)]
pub struct Shaped {
    /// The method; empty where nothing goes over a wire.
    pub method: String,
    /// The URL without its credential.
    pub url: String,
    /// The headers; a credential's value stands as its name.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Option<Vec<u8>>,
    /// The names of the secrets that would be used, joined by `+`.
    pub secret_name: String,
    /// Whether their bindings allow this origin and key.
    pub secret_allowed: bool,
    /// `allowed`, or why it would not run.
    pub verdict: String,
    /// What it may change.
    pub effect: Effect,
    /// The row's risk.
    pub risk: Risk,
    /// For rows without a request: what would run.
    pub plan: Option<Value>,
    /// The contract that it would run under.
    pub contract_hash: String,
    /// What is odd about the arguments.
    pub warnings: Vec<String>,
}

/// Builds the call as if it were to run, and says what its token, the watcher or a secret would have against it.
///
/// # Errors
/// What refuses a call before anybody asks what its token says to the row: a scope that does not cover it, no such row,
/// arguments that do not fit.
pub async fn shape(app: &App, credential: Credential<'_>, key: &str, sent: Sent) -> Result<Shaped> {
    let request = Request {
        key: key.to_owned(),
        sent,
        idempotency_key: None,
        repairs: None,
        replay_of: None,
        deadline: Deadline::after(DEFAULT_DEADLINE),
        wait: Duration::ZERO,
        place: None,
    };
    let caller = credential.caller().await?;
    let (call, token) = look(app, &caller, &request).await?;
    let shaped = render(app, &call)?;
    let verdict = match token {
        Err(refused) => Some(refused.error_text()),
        Ok(()) => gate(app, &caller, &request, &call).await,
    };
    let verdict = match verdict {
        None => credential.proven(key, &request.sent).await.err().map(|refused| refused.error_text()),
        some => some,
    };
    Ok(match verdict {
        Some(verdict) => Shaped { verdict, ..shaped },
        None => shaped,
    })
}

/// What the watcher would say, and whether a person would be asked.
async fn gate(app: &App, caller: &Caller, request: &Request, call: &Call) -> Option<String> {
    match verdict(app, caller, request, call).await {
        Ok(approval::Verdict::Allow) => None,
        Ok(approval::Verdict::Hold(_)) => Some(Reason::OwnerGateRequired.as_str().to_owned()),
        Ok(approval::Verdict::Deny(reason)) => Some(format!("{}:{reason}", Reason::Denied.as_str())),
        Err(refused) => Some(refused.error_text()),
    }
}

/// What an admitted call would do.
///
/// # Errors
/// What is wrong with the row.
pub fn render(app: &App, call: &Call) -> Result<Shaped> {
    let (row, compiled) = (&call.entry.row, call.entry.compiled.as_ref().map_err(Clone::clone)?);
    let mut shaped = Shaped {
        method: String::new(),
        url: String::new(),
        headers: Vec::new(),
        body: None,
        secret_name: compiled.auth.secret_names().join("+"),
        secret_allowed: true,
        verdict: "allowed".to_owned(),
        effect: row.effect,
        risk: row.risk,
        plan: None,
        contract_hash: row.contract_hash.clone(),
        warnings: call.bound.warnings.clone(),
    };
    match &call.work {
        Work::Fn(arguments) => {
            let target = match &compiled.plan {
                Plan::Fn(plan) => plan.target.clone(),
                Plan::Http(_) | Plan::Flow(_) | Plan::Agent(_) | Plan::Block => String::new(),
            };
            let texts: Vec<&str> = arguments.iter().map(|argument| argument.as_text()).collect();
            shaped.plan = Some(json!({"function": target, "arguments": texts}));
        }
        Work::Flow => shaped.plan = runner::flow::plan::plan(app, call),
        Work::Agent | Work::Turn(_) => {}
        Work::Http(http) => {
            shaped.method = http.method.as_str().to_owned();
            shaped.body = http.body.clone();
            let mut url = http.url.clone();
            let applied = compiled.auth.apply(|name| Ok::<_, callbook_domain::fault::Fault>(format!("${name}")))?;
            for (name, value) in applied.query {
                url.query_pairs_mut().append_pair(&name, &value);
            }
            shaped.url = url.to_string();
            let media_type = http.media_type.iter().map(|media_type| ("content-type".to_owned(), media_type.clone()));
            shaped.headers = media_type.chain(applied.headers).collect();
            let origin = http.url.origin().ascii_serialization();
            for name in compiled.auth.secret_names() {
                let why = match app.directory.rules().secrets.verdict(&name, &origin, call.entry.key()) {
                    Verdict::Allowed => continue,
                    Verdict::NotConfigured => format!("auth:missing_secret:{name}"),
                    Verdict::WrongOrigin | Verdict::WrongKey => format!("auth:secret_origin_refused:{name}"),
                };
                (shaped.secret_allowed, shaped.verdict) = (false, why);
            }
            if let Err(refusal) = check_url(app.egress.policy(), http.url.as_str()) {
                shaped.verdict = format!("http:refused:{}", refusal.as_str());
            }
        }
    }
    Ok(shaped)
}
