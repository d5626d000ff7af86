//! Capability tokens through the front door: minted as an issuer asks for them, shown as a holder shows them.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use crate::door::{Answer, Door, send};
use crate::issuer::{Aim, Holder, payload};

/// What the last link of a token says.
pub fn claims(token: &str) -> Value {
    payload(token.rsplit('~').next().unwrap())
}

/// The id of its last link.
pub fn jti(token: &str) -> String {
    claims(token)["jti"].as_str().unwrap().to_owned()
}

/// A proof for a call with a text as its arguments.
pub fn proof(by: &Holder, token: &str, key: &str, body: &str) -> String {
    by.proof(&Aim { token, key, sent: &Value::from(body).to_string() })
}

/// A proof for reading the receipt of a call of this row.
pub fn proof_for_receipt(by: &Holder, token: &str, key: &str, id: &str) -> String {
    by.proof(&Aim { token, key, sent: &json!({"receipt": id}).to_string() })
}

impl Door {
    /// Mints a token as the owner; it must be taken.
    pub async fn mint(&self, wanted: &Value) -> String {
        let answer = self.post("/api/tokens", wanted).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["token"].as_str().unwrap().to_owned()
    }

    /// A request with a token and, where there is one, a proof.
    pub fn cap(&self, token: &str, proof: Option<&str>, method: Method, path: &str) -> RequestBuilder {
        let request = self.anyone(method, path).header("authorization", format!("Cap {token}"));
        match proof {
            Some(proof) => request.header("cap-proof", proof),
            None => request,
        }
    }

    /// A call of a row with a token and, where there is one, a proof.
    pub async fn spend(&self, token: &str, proof: Option<&str>, key: &str, body: &str) -> Answer {
        let call = self.cap(token, proof, Method::POST, "/api/dispatch");
        send(call.json(&json!({"key": key, "body": body}))).await
    }
}
