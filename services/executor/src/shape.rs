//! What a call would do: the whole outbound request, and nothing runs. The values of secrets are never read.

use callbook_domain::arguments::Sent;
use callbook_domain::caller::Caller;
use callbook_domain::compile::Plan;
use callbook_domain::fault::Result;
use callbook_domain::row::{Effect, Risk};
use callbook_domain::secret::Verdict;
use serde_json::{Value, json};

use crate::App;
use crate::admit::admit;
use crate::call::{Deadline, Request, Work};
use crate::config::DEFAULT_DEADLINE;
use crate::egress::check_url;

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

/// Admits the call as if it were to run, and builds it.
///
/// # Errors
/// What would refuse the call before its commit.
pub async fn shape(app: &App, caller: &Caller, key: &str, sent: Sent) -> Result<Shaped> {
    let request = Request {
        key: key.to_owned(),
        sent,
        idempotency_key: None,
        repairs: None,
        replay_of: None,
        deadline: Deadline::after(DEFAULT_DEADLINE),
        place: None,
    };
    let call = admit(app, caller, &request).await?;
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
        Work::Flow | Work::Agent => {}
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
