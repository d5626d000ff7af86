//! What a request shows of its caller. It is asked for its proof once the call is known, which for a call that mends or
//! repeats another one is after that one was read.

use callbook_caller::Presented;
use callbook_domain::arguments::Sent;
use callbook_domain::caller::Caller;
use callbook_domain::fault::{Fault, Reason, Result};
use http::HeaderMap;

use crate::App;
use crate::call::Request;
use crate::denied;

/// The headers, or the gRPC metadata, of a request.
#[derive(Clone, Copy)]
pub struct Credential<'a> {
    app: &'a App,
    headers: &'a HeaderMap,
}

impl<'a> Credential<'a> {
    /// What these headers show.
    pub fn of(app: &'a App, headers: &'a HeaderMap) -> Self {
        Credential { app, headers }
    }

    /// The caller, where no row is called.
    ///
    /// # Errors
    /// As [`identify`](callbook_caller::Callers::identify).
    pub async fn caller(&self) -> Result<Caller> {
        let presented = self.presented("").await?;
        let actor = presented.actor();
        presented.without_proof().await.inspect_err(|fault| denied::record_token(self.app, &actor, "", fault))
    }

    /// The caller of this request. The id of its proof is the call's idempotency key: a proof that somebody saw fires
    /// nothing a second time.
    ///
    /// # Errors
    /// Those of the steps 1 to 10; `idempotency_mismatch` where the request names another key.
    pub async fn prove(&self, mut request: Request) -> Result<(Caller, Request)> {
        let (caller, proof) = self.proven(&request.key, &request.sent).await?;
        let Some(proof) = proof else { return Ok((caller, request)) };
        if request.idempotency_key.as_ref().is_some_and(|key| *key != proof) {
            let fault = Fault::new(Reason::IdempotencyMismatch, "the id of the proof is the call's idempotency key")
                .fix("send no other idempotency key with a proof");
            denied::record(self.app, &caller, &request.key, &fault);
            return Err(fault);
        }
        request.idempotency_key = Some(proof);
        Ok((caller, request))
    }

    /// The caller of this key with what it sends, and the id of its proof.
    ///
    /// # Errors
    /// Those of the steps 1 to 10.
    pub async fn proven(&self, key: &str, sent: &Sent) -> Result<(Caller, Option<String>)> {
        let presented = self.presented(key).await?;
        let actor = presented.actor();
        presented.prove(key, sent).await.inspect_err(|fault| denied::record_token(self.app, &actor, key, fault))
    }

    /// Refuses a holder that has not proved that it reads what a call of this key gave or would send: a proof as for a call
    /// with the arguments `{<what>: <id>}`.
    ///
    /// # Errors
    /// Those of the steps 1 to 10.
    pub async fn proves_reading(&self, key: &str, what: &str, id: &str) -> Result<()> {
        let args = serde_json::value::to_raw_value(&serde_json::json!({ what: id }));
        self.proven(key, &Sent::Args(args.expect("a text is JSON"))).await.map(drop)
    }

    async fn presented(&self, key: &str) -> Result<Presented<'a>> {
        let presented = self.app.callers.identify_call(self.headers).await;
        presented.inspect_err(|fault| denied::record_token(self.app, denied::SOMEBODY, key, fault))
    }
}
