//! Tokens that a test signs itself, also such as no gate would sign: an issuer's key that the deployment believes, and
//! holders with keys of their own.

use callbook_domain::clock::Clock;
use callbook_domain::invocation::uuid_at;
use data_encoding::BASE64URL_NOPAD;
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use sqlx::PgPool;
use time::OffsetDateTime;
use uuid::Uuid;

use crate::database;
use crate::world::World;

/// An issuer whose public key stands among those of the deployment.
pub struct Issuer {
    /// The name of its key.
    pub kid: String,
    key: SigningKey,
    pool: PgPool,
    clock: Clock,
}

/// The holder of a key.
pub struct Holder {
    key: SigningKey,
    clock: Clock,
}

/// What a holder calls.
#[derive(Clone, Debug)]
pub struct Aim<'a> {
    /// The token.
    pub token: &'a str,
    /// The key of the row.
    pub key: &'a str,
    /// The canonical JSON of what is sent.
    pub sent: &'a str,
}

impl Issuer {
    /// A new key that the deployment believes from now on.
    pub async fn of(world: &World) -> Issuer {
        Issuer::on(&world.database_url, &world.clock).await
    }

    /// The same for the deployment on this database.
    pub async fn on(database_url: &str, clock: &Clock) -> Issuer {
        let key = SigningKey::from_bytes(&random());
        let kid = thumbprint(&key);
        let pool = database::services(database_url);
        let now = clock.now();
        sqlx::query(
            "insert into issuer_key (kid, public_key, state, created_at, since) values ($1, $2, 'active', $3, $3)",
        )
        .bind(&kid)
        .bind(&key.verifying_key().to_bytes()[..])
        .bind(now)
        .execute(&pool)
        .await
        .unwrap();
        Issuer { kid, key, pool, clock: clock.clone() }
    }

    /// The claims of a bearer root over these keys for 15 minutes: what reads and is of low risk.
    pub fn claims(&self, keys: &[&str]) -> Value {
        let now = self.clock.now();
        let keys: serde_json::Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), Value::Null)).collect();
        json!({
            "v": 1, "iss": "callbook", "sub": "tests", "aud": ["callbook"], "jti": uuid_at(now),
            "iat": now.unix_timestamp(), "exp": now.unix_timestamp() + 900, "del": {"d": 0, "max": 0},
            "cap": {"keys": keys, "risk": "low", "effect": "read"},
        })
    }

    /// The same in the hands of a holder, who may derive others.
    pub fn claims_of(&self, holder: &Holder, keys: &[&str]) -> Value {
        let mut claims = self.claims(keys);
        claims["cnf"] = json!({"jwk": holder.jwk()});
        claims["del"]["max"] = 3.into();
        claims
    }

    /// A bearer token over these keys.
    pub async fn bearer(&self, keys: &[&str]) -> String {
        self.root(&self.claims(keys)).await
    }

    /// Signs a root and records it as the gate would.
    pub async fn root(&self, claims: &Value) -> String {
        self.record(claims).await;
        self.sign(&json!({"alg": "EdDSA", "typ": "cap+jwt", "kid": self.kid}), &claims.to_string())
    }

    /// Records a root without its text.
    pub async fn record(&self, claims: &Value) {
        let seconds = |name: &str| OffsetDateTime::from_unix_timestamp(claims[name].as_i64().unwrap()).unwrap();
        sqlx::query(
            "insert into token (jti, kid, sub, claims, minted_by, link, names, issued_at, expires_at)
             values ($1, $2, 'tests', $3, 'tests', $1::text, '{}', $4, $5)",
        )
        .bind(Uuid::parse_str(claims["jti"].as_str().unwrap()).unwrap())
        .bind(&self.kid)
        .bind(claims.to_string())
        .bind(seconds("iat"))
        .bind(seconds("exp"))
        .execute(&self.pool)
        .await
        .unwrap();
    }

    /// Signs any two texts.
    pub fn sign(&self, header: &Value, payload: &str) -> String {
        sign(&self.key, &header.to_string(), payload)
    }

    /// Takes everything of this name back, as the gate does: past every call that commits.
    pub async fn revoke(&self, name: &str) {
        let mut transaction = self.pool.begin().await.unwrap();
        callbook_store::lock::exclusive(&mut transaction).await.unwrap();
        sqlx::query("insert into revocation (name, at, actor) values ($1, $2, 'tests')")
            .bind(name)
            .bind(self.clock.now())
            .execute(&mut *transaction)
            .await
            .unwrap();
        transaction.commit().await.unwrap();
    }
}

impl Holder {
    /// Somebody with a new key.
    pub fn new(clock: &Clock) -> Holder {
        Holder { key: SigningKey::from_bytes(&random()), clock: clock.clone() }
    }

    /// The public key.
    pub fn jwk(&self) -> Value {
        jwk(&self.key)
    }

    /// The name of the key.
    pub fn thumbprint(&self) -> String {
        thumbprint(&self.key)
    }

    /// The claims of a child of the token's last link, for a holder; as wide as its parent.
    pub fn child(&self, token: &str, next: &Holder) -> Value {
        let parent = token.rsplit('~').next().unwrap();
        let (input, _) = parent.rsplit_once('.').unwrap();
        let mut claims = payload(parent);
        claims["jti"] = uuid_at(self.clock.now()).to_string().into();
        claims["par"] = BASE64URL_NOPAD.encode(&Sha256::digest(input)).into();
        claims["cnf"] = json!({"jwk": next.jwk()});
        claims["del"]["d"] = (claims["del"]["d"].as_u64().unwrap() + 1).into();
        claims
    }

    /// The token with one link more.
    pub fn append(&self, token: &str, claims: &Value) -> String {
        format!("{token}~{}", self.sign(&json!({"alg": "EdDSA", "typ": "cap+jwt"}), &claims.to_string()))
    }

    /// A narrower token for somebody else.
    pub fn derive(&self, token: &str, next: &Holder, narrow: impl FnOnce(&mut Value)) -> String {
        let mut claims = self.child(token, next);
        narrow(&mut claims);
        self.append(token, &claims)
    }

    /// The claims of a proof for one call.
    pub fn proof_claims(&self, aim: &Aim<'_>) -> Value {
        let leaf = aim.token.rsplit('~').next().unwrap();
        json!({
            "ath": BASE64URL_NOPAD.encode(&Sha256::digest(leaf)), "aud": "callbook",
            "iat": self.clock.now().unix_timestamp(), "jti": Uuid::new_v4().to_string(), "key": aim.key,
            "arg": BASE64URL_NOPAD.encode(&Sha256::digest(aim.sent)),
        })
    }

    /// A proof for one call.
    pub fn proof(&self, aim: &Aim<'_>) -> String {
        self.sign_proof(&self.proof_claims(aim))
    }

    /// Signs the claims of a proof.
    pub fn sign_proof(&self, claims: &Value) -> String {
        self.sign(&json!({"alg": "EdDSA", "typ": "cap-pop+jwt"}), &claims.to_string())
    }

    /// Signs any two texts.
    pub fn sign(&self, header: &Value, payload: &str) -> String {
        sign(&self.key, &header.to_string(), payload)
    }
}

/// A compact JWS of two texts as they are.
pub fn sign(key: &SigningKey, header: &str, payload: &str) -> String {
    let input = format!("{}.{}", BASE64URL_NOPAD.encode(header.as_bytes()), BASE64URL_NOPAD.encode(payload.as_bytes()));
    let signature = key.sign(input.as_bytes()).to_bytes();
    format!("{input}.{}", BASE64URL_NOPAD.encode(&signature))
}

/// What a link says.
pub fn payload(link: &str) -> Value {
    let payload = link.split('.').nth(1).unwrap();
    serde_json::from_slice(&BASE64URL_NOPAD.decode(payload.as_bytes()).unwrap()).unwrap()
}

/// `jti:…` of the token's last link.
pub fn name_of(token: &str) -> String {
    format!("jti:{}", payload(token.rsplit('~').next().unwrap())["jti"].as_str().unwrap())
}

fn jwk(key: &SigningKey) -> Value {
    json!({"crv": "Ed25519", "kty": "OKP", "x": BASE64URL_NOPAD.encode(&key.verifying_key().to_bytes())})
}

fn thumbprint(key: &SigningKey) -> String {
    BASE64URL_NOPAD.encode(&Sha256::digest(jwk(key).to_string()))
}

fn random() -> [u8; 32] {
    let mut bytes = [0u8; 32];
    bytes[..16].copy_from_slice(Uuid::new_v4().as_bytes());
    bytes[16..].copy_from_slice(Uuid::new_v4().as_bytes());
    bytes
}
