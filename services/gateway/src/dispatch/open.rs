//! `?invoke=`: a call by an address that is opened, for models that can do no more.

use callbook_domain::fault::{Fault, Reason};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use serde_json::value::RawValue;

use super::Parameters;
use super::invoke::{Body, answered};
use crate::answer::{Answer, Refusal};
use crate::app::App;
use crate::request::Call;

/// How browsers mark what they fetch ahead, before anybody wants it.
const AHEAD: [HeaderName; 2] = [HeaderName::from_static("sec-purpose"), HeaderName::from_static("purpose")];

/// Refuses what is not meant as a call: another credential than one in the address, which a page of others could make a
/// browser send; a look at the head alone; an address that is fetched ahead.
pub(super) fn check(method: &Method, is_shared: bool, headers: &HeaderMap) -> Result<(), Refusal> {
    if *method != Method::GET {
        let fault = Fault::new(Reason::InvalidRequest, format!("{method} runs nothing")).fix("send GET or POST");
        return Err(Refusal::with_status(StatusCode::METHOD_NOT_ALLOWED, fault));
    }
    if !is_shared {
        return Err(Fault::new(Reason::InvalidRequest, "a GET runs a row only for a token in its address")
            .fix("POST to /api/dispatch, or add `share=` and a token that was minted with `url: true`")
            .with("field", "share")
            .into());
    }
    let is_ahead = |value: &http::HeaderValue| value.to_str().is_ok_and(|purpose| purpose.contains("prefetch"));
    if AHEAD.iter().any(|name| headers.get(name).is_some_and(is_ahead)) {
        return Err(Fault::new(Reason::InvalidRequest, "an address that is fetched ahead runs nothing")
            .fix("open the address when its answer is wanted")
            .into());
    }
    Ok(())
}

/// Runs the row as the POST does.
pub(super) async fn invoke(app: &App, call: Call, asked: Parameters) -> Answer {
    let body = Body::of_address(asked)?;
    answered(app, call, body, &HeaderMap::new()).await
}

impl Body {
    fn of_address(asked: Parameters) -> Result<Self, Fault> {
        let args = asked.args.map(RawValue::from_string).transpose();
        let args = args.map_err(|_| Fault::new(Reason::InvalidRequest, "`args` is no JSON").with("field", "args"))?;
        Ok(Body {
            key: asked.invoke,
            body: asked.body,
            args,
            idempotency_key: asked.idempotency_key,
            deadline_ms: asked.deadline_ms,
            ..Body::default()
        })
    }
}
