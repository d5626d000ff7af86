//! `shape:true`: what a call would do.

use callbook_wire::executor::v1 as wire;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use crate::answer::{Bytes, Effect, Raw, Risk, Word, raw, some};

/// What a call would do. Nothing ran.
#[derive(Serialize, ToSchema)]
pub(crate) struct Shape {
    /// Always false: it did not run.
    ok: bool,
    /// Always false.
    ran: bool,
    /// HTTP method. Null: the row is not of type http.
    method: Option<String>,
    /// The whole URL, without what a secret would add. Null: the row is not of type http.
    url: Option<String>,
    /// Headers that would be sent; a secret stands as `$NAME`.
    #[schema(value_type = std::collections::BTreeMap<String, String>)]
    headers: Headers,
    /// Body of the request: text, or `{base64}` where it is none. Null: none.
    #[schema(value_type = Value)]
    body: Option<Body>,
    /// The secret that would be used. Null: none.
    secret: Option<Secret>,
    /// `allowed`, or the reason why the caller would be refused.
    verdict: String,
    /// What the call could do to the world.
    effect: Option<Effect>,
    /// How much care the call needs.
    risk: Option<Risk>,
    /// The plan: filled function arguments, steps of a flow, prompt of an agent. Null: the row is of type http.
    #[schema(value_type = Value)]
    plan: Option<Raw>,
    /// What stands in the place of a proof.
    proof: Proof,
    /// What is doubtful.
    warnings: Vec<String>,
}

/// A secret by its name.
#[derive(Serialize, ToSchema)]
struct Secret {
    name: String,
    /// True: it may go to this origin from this row.
    allowed: bool,
}

/// A shape is no proof of anything.
#[derive(Serialize, ToSchema)]
#[schema(as = ShapeProof)]
struct Proof {
    /// Always false.
    ok: bool,
    /// In words.
    did: String,
    /// Contract hash of the row that was shaped.
    contract_hash: String,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Body {
    Text(String),
    Bytes(Bytes),
}

struct Headers(Vec<wire::Header>);

/// In the order in which they would be sent. A name that stands several times has its values joined, as HTTP reads it.
impl Serialize for Headers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (at, header) in self.0.iter().enumerate() {
            let same = |other: &&wire::Header| other.name == header.name;
            if self.0[..at].iter().any(|other| same(&other)) {
                continue;
            }
            let values: Vec<&str> = self.0[at..].iter().filter(same).map(|other| other.value.as_str()).collect();
            map.serialize_entry(&header.name, &values.join(", "))?;
        }
        map.end()
    }
}

impl Shape {
    /// The executor's shape of a call of the row.
    pub(crate) fn read(shape: wire::ShapeResponse, key: &str) -> Self {
        Shape {
            ok: false,
            ran: false,
            method: some(shape.method),
            url: some(shape.url),
            headers: Headers(shape.headers),
            body: shape.body.map(Body::read),
            secret: some(shape.secret_name).map(|name| Secret { name, allowed: shape.secret_allowed }),
            verdict: shape.verdict,
            effect: Effect::read(shape.effect),
            risk: Risk::read(shape.risk),
            plan: shape.plan_json.as_deref().map(raw),
            proof: Proof { ok: false, did: format!("DRY-RUN — {key}"), contract_hash: shape.contract_hash },
            warnings: shape.warnings,
        }
    }
}

impl Body {
    fn read(bytes: bytes::Bytes) -> Self {
        match String::from_utf8(bytes.into()) {
            Ok(text) => Body::Text(text),
            Err(other) => Body::Bytes(Bytes::read(other.into_bytes(), String::new(), false)),
        }
    }
}
