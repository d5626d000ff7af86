//! The answer to a call that ran, or that waits.

use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::executor::v1 as wire;
use callbook_wire::receipt::v1::{self as receipt, CommitMode};
use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Answer, Typed, address, json_with, moment, some};

/// The answer to a call that ran, also where the row failed, and to one that waits for a person.
#[derive(Serialize, ToSchema)]
pub(super) struct Invocation {
    /// True: it ran and succeeded.
    ok: bool,
    /// True: it ran, now or, where it is replayed, before.
    ran: bool,
    /// True: the stored answer of the same idempotency key; nothing was fired now. Absent: it ran now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    replayed: bool,
    /// What the call waits for; nothing was fired. Absent: it does not wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    held: Option<Held>,
    /// True: the call was accepted and runs on without a listener. Absent: it ended, or waits.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    accepted: bool,
    /// The output as text in the seed's form: `HTTP 200:` and the body, or `ERR:` and a code.
    result: String,
    /// The output: JSON as it is, else `{media_type, text}` or `{media_type, base64}`. Null: none.
    #[schema(value_type = Value)]
    output: Option<Typed>,
    /// Why it did not succeed. Absent: it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    error: Option<Failure>,
    /// Where the proof is.
    proof: Proof,
    /// Cost in US dollars.
    cost: f64,
    /// What is doubtful.
    warnings: Vec<String>,
    /// Trace id.
    trace: String,
    /// `read`: intent and result were written after the call. Absent: the intent was committed before.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    mode: Option<&'static str>,
}

/// A call that waits for a person. The same call again, byte for byte, gives the same answer until it is decided; then it
/// is fired once, or refused.
#[derive(Serialize, ToSchema)]
#[schema(as = HeldCall)]
struct Held {
    /// `apr_` and 26 characters.
    approval: String,
    /// Address of what a person sees before it decides.
    url: String,
    /// Why it waits: the reason of a rule, `sensitive` where no rule spoke, or `owner_gate`.
    reason: String,
    /// Until when it may be decided, and fired once it is approved.
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// Why a call that ran did not succeed.
#[derive(Serialize, ToSchema)]
pub(crate) struct Failure {
    /// Stable code, such as `http:401`.
    code: String,
    /// What happened.
    message: String,
    /// HTTP status of the upstream. Absent: none was received.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    upstream_status: Option<u32>,
    /// True: the same call may succeed later.
    retryable: bool,
    /// Step or slot where it happened. Absent: the row itself.
    #[serde(rename = "where", skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    at: Option<String>,
}

/// What ties an answer to its receipt.
#[derive(Serialize, ToSchema)]
struct Proof {
    /// `inv_` and 26 characters.
    invocation_id: String,
    /// Address of the public confirmation.
    confirm: String,
    /// Address of the full receipt, for whoever may see it.
    receipt: String,
    /// Address of the receipt as a page for people.
    public_receipt: String,
    /// Contract hash of the row that was run.
    contract_hash: String,
    /// True: it succeeded and gave output that counts.
    ok: bool,
    /// In words.
    did: String,
}

impl Invocation {
    /// The executor's answer with addresses of this surface.
    pub(super) fn read(answer: Option<wire::Answer>, base: &str) -> Result<Self> {
        let answer = answer.ok_or_else(|| empty("answer"))?;
        let proof = answer.proof.ok_or_else(|| empty("proof"))?;
        Ok(Invocation {
            ok: answer.ok,
            ran: answer.ran,
            replayed: answer.replayed,
            held: answer.held.map(|approval| Held::read(approval, base)),
            accepted: answer.accepted,
            result: answer.result,
            output: Typed::read(answer.output, answer.media_type, answer.truncated),
            error: answer.error.map(Failure::read),
            trace: proof.trace.clone(),
            proof: Proof::read(proof, base),
            cost: answer.cost_usd,
            warnings: answer.warnings,
            mode: (answer.mode == CommitMode::Read as i32).then_some("read"),
        })
    }

    /// 200, or 202 where it has not ended.
    pub(super) fn answer(&self) -> Answer {
        let open = self.held.is_some() || self.accepted;
        json_with(if open { StatusCode::ACCEPTED } else { StatusCode::OK }, self)
    }
}

impl Held {
    fn read(approval: wire::Approval, base: &str) -> Self {
        Held {
            url: address(base, format!("/api/approvals/{}", approval.id)),
            approval: approval.id,
            reason: approval.reason,
            expires_at: moment(approval.expires_at),
        }
    }
}

impl Failure {
    /// The wire's failure.
    pub(crate) fn read(failure: receipt::Failure) -> Self {
        Failure {
            code: failure.code,
            message: failure.message,
            upstream_status: failure.upstream_status,
            retryable: failure.retryable,
            at: some(failure.r#where),
        }
    }
}

impl Proof {
    fn read(proof: wire::Proof, base: &str) -> Self {
        let id = &proof.invocation_id;
        Proof {
            confirm: address(base, format!("/api/dispatch?confirm={id}")),
            receipt: address(base, format!("/api/dispatch?receipt={id}")),
            public_receipt: address(base, format!("/receipt/{id}")),
            invocation_id: proof.invocation_id,
            contract_hash: proof.contract_hash,
            ok: proof.ok,
            did: proof.did,
        }
    }
}

/// An executor that answers without saying what happened has run something all the same, as far as we know.
fn empty(part: &str) -> Fault {
    Fault::new(Reason::Internal, format!("the executor's answer has no {part}")).with("fired", "unknown")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_stand_in_the_order_of_the_interface() {
        let answer = wire::Answer {
            ok: true,
            ran: true,
            result: "HTTP 200:{\"t\":1.10}".into(),
            output: bytes::Bytes::from_static(b"{\"t\":1.10}"),
            media_type: "application/json".into(),
            proof: Some(wire::Proof {
                invocation_id: "inv_1".into(),
                contract_hash: "sha256:a".into(),
                did: "DONE — K".into(),
                ok: true,
                trace: "0123".into(),
            }),
            ..wire::Answer::default()
        };
        let text = serde_json::to_string(&Invocation::read(Some(answer), "http://h").unwrap()).unwrap();
        assert_eq!(
            text,
            "{\"ok\":true,\"ran\":true,\"result\":\"HTTP 200:{\\\"t\\\":1.10}\",\"output\":{\"t\":1.10},\"proof\":{\
             \"invocation_id\":\"inv_1\",\"confirm\":\"http://h/api/dispatch?confirm=inv_1\",\
             \"receipt\":\"http://h/api/dispatch?receipt=inv_1\",\"public_receipt\":\"http://h/receipt/inv_1\",\
             \"contract_hash\":\"sha256:a\",\"ok\":true,\"did\":\"DONE — K\"},\"cost\":0.0,\"warnings\":[],\"trace\":\"0123\"}"
        );
    }

    #[test]
    fn a_held_call_says_what_it_waits_for_and_that_it_did_not_run() {
        let held = wire::Approval { id: "apr_1".into(), reason: "owner_gate".into(), ..wire::Approval::default() };
        let answer = wire::Answer { held: Some(held), proof: Some(wire::Proof::default()), ..wire::Answer::default() };
        let invocation = Invocation::read(Some(answer), "http://h").unwrap();
        assert_eq!(invocation.answer().unwrap().status(), StatusCode::ACCEPTED);
        let text = serde_json::to_string(&invocation).unwrap();
        let expected = r#"{"ok":false,"ran":false,"held":{"approval":"apr_1","url":"http://h/api/approvals/apr_1","reason":"owner_gate","expires_at":null},"result""#;
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_failed_row_names_its_failure() {
        let failure = receipt::Failure {
            code: "http:401".into(),
            message: "the upstream answered 401".into(),
            upstream_status: Some(401),
            retryable: false,
            r#where: String::new(),
        };
        let text = serde_json::to_string(&Failure::read(failure)).unwrap();
        let expected =
            r#"{"code":"http:401","message":"the upstream answered 401","upstream_status":401,"retryable":false}"#;
        assert_eq!(text, expected);
    }
}
