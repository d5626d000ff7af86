//! An outside issuer: it publishes its keys over HTTP and signs JWTs.

use data_encoding::BASE64URL_NOPAD;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};

use crate::upstream::{Upstream, json as answered};

/// The `iss` of its tokens.
pub const ISS: &str = "https://id.example";

/// A running issuer.
pub struct OutsideIssuer {
    /// Where its keys are asked for.
    pub upstream: Upstream,
    key: SigningKey,
}

impl OutsideIssuer {
    /// One with one key.
    pub async fn start() -> OutsideIssuer {
        let key = SigningKey::from_bytes(&[42; 32]);
        let x = BASE64URL_NOPAD.encode(key.verifying_key().as_bytes());
        let keys =
            json!({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": x, "kid": "one", "use": "sig", "alg": "EdDSA"}]});
        let upstream = Upstream::start(move |_| answered(200, &keys.to_string())).await;
        OutsideIssuer { upstream, key }
    }

    /// The settings under which it is believed, as `corp`: its scope `book` lets call and mint what begins with `TEAM_`.
    /// Its origin must be allowed.
    pub fn toml(&self) -> String {
        let grants = r#"[{ may = "invoke", prefix = "TEAM_" }, { may = "mint", prefix = "TEAM_" }]"#;
        let url = self.upstream.origin();
        format!("[issuers.corp]\nissuer = \"{ISS}\"\njwks_url = \"{url}/keys\"\nscopes = {{ book = {grants} }}\n")
    }

    /// A JWT of these claims.
    pub fn token(&self, claims: &Value) -> String {
        let encode = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
        let header = json!({"alg": "EdDSA", "typ": "JWT", "kid": "one"});
        let input = format!("{}.{}", encode(&header), encode(claims));
        let signature = self.key.sign(input.as_bytes()).to_bytes();
        format!("{input}.{}", BASE64URL_NOPAD.encode(&signature))
    }
}
