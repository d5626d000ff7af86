//! The whole record of an invocation.

use callbook_wire::receipt::v1 as wire;
use data_encoding::HEXLOWER;
use serde::Serialize;
use utoipa::ToSchema;

use super::confirmation::Commitments;
use crate::answer::{Bytes, Effect, Mode, Raw, Risk, RowType, Status, Word, moment, raw, some};
use crate::dispatch::Failure;

/// The whole record of one invocation. Bytes are given exactly, so that the commitments can be checked.
#[derive(Serialize, ToSchema)]
pub(crate) struct Receipt {
    /// `inv_` and 26 characters.
    invocation_id: String,
    /// How it stands.
    status: Option<Status>,
    /// Key of the row, which may be deleted since.
    key: String,
    /// What runs the row.
    #[serde(rename = "type")]
    row_type: Option<RowType>,
    /// Revision of the row that was run.
    revision: i64,
    /// Contract hash of the row that was run.
    contract_hash: String,
    /// Text hash of the row that was run.
    text_hash: String,
    /// What the call could do to the world.
    effect: Option<Effect>,
    /// How much care the call needed.
    risk: Option<Risk>,
    /// Who called.
    actor: String,
    /// Ids of the token chain, root first.
    lineage: Vec<String>,
    /// Runner that ran it.
    runner: String,
    /// Pool of the executor that ran it.
    pool: String,
    /// Trace id.
    trace: String,
    /// When the intent was committed.
    #[schema(format = DateTime)]
    started_at: Option<String>,
    /// When the result was committed. Null: there is none.
    #[schema(format = DateTime)]
    ended_at: Option<String>,
    /// Time from start to end in milliseconds. Null: there is no result.
    duration_ms: Option<i64>,
    /// Arguments as the caller sent them. Null: erased.
    input: Option<Bytes>,
    /// Request as sent, secrets redacted. Null: nothing was sent, or erased.
    request: Option<Bytes>,
    /// Response as received, secrets redacted. Null: nothing was received, or erased.
    response: Option<Bytes>,
    /// Output. Null: none, or erased.
    output: Option<Bytes>,
    /// Why it did not succeed. Null: it did, or has no result.
    error: Option<Failure>,
    /// HTTP status of the upstream. Null: none was received.
    upstream_status: Option<u32>,
    /// Salted commitments of the four byte strings.
    commitments: Commitments,
    /// Salts of the commitments, in hex.
    nonces: Nonces,
    /// What identifies input, output and contract.
    fingerprints: Fingerprints,
    /// True: it gave output that counts.
    material: bool,
    /// True: it cost something and gave nothing that counts.
    waste: bool,
    /// Cost in US dollars, its children's included.
    cost_usd: f64,
    /// Invocation whose step this is. Null: called from outside.
    parent: Option<String>,
    /// Invocations that are its steps.
    children: Vec<String>,
    /// Invocation that it corrects. Null: none.
    repairs: Option<String>,
    /// Invocations that correct it.
    repaired_by: Vec<String>,
    /// Invocation that it runs again. Null: none.
    replay_of: Option<String>,
    /// When its intent was committed.
    mode: Option<Mode>,
    /// True: its bytes and salts were erased; the log stays.
    erased: bool,
    /// Its entries in the log, oldest first.
    events: Vec<Event>,
}

/// Salts in hex. Null: not made, or erased.
#[derive(Serialize, ToSchema)]
struct Nonces {
    input: Option<String>,
    output: Option<String>,
    request: Option<String>,
    response: Option<String>,
}

/// What identifies input, output and contract.
#[derive(Serialize, ToSchema)]
struct Fingerprints {
    input: String,
    output: Option<String>,
    contract: String,
}

/// One entry of the append-only log.
#[derive(Serialize, ToSchema)]
struct Event {
    /// `intent`, `result`, `unknown`, …
    kind: String,
    /// When it was written.
    #[schema(format = DateTime)]
    at: Option<String>,
    /// Its body, canonical JSON.
    #[schema(value_type = Value)]
    body: Raw,
}

impl Receipt {
    pub(super) fn read(found: wire::Receipt) -> Self {
        let plain = |bytes: bytes::Bytes| Bytes::read(bytes, String::new(), false);
        Receipt {
            invocation_id: found.invocation_id,
            status: Status::read(found.status),
            key: found.key,
            row_type: RowType::read(found.r#type),
            revision: found.revision,
            contract_hash: found.contract_hash,
            text_hash: found.text_hash,
            effect: Effect::read(found.effect),
            risk: Risk::read(found.risk),
            actor: found.actor,
            lineage: found.lineage,
            runner: found.runner,
            pool: found.pool,
            trace: found.trace,
            started_at: moment(found.started_at),
            ended_at: moment(found.ended_at),
            duration_ms: found.duration_ms,
            input: found.input.map(|bytes| Bytes::read(bytes, found.input_media_type, false)),
            request: found.request.map(plain),
            response: found.response.map(plain),
            output: found.output.map(|bytes| Bytes::read(bytes, found.output_media_type, found.truncated)),
            error: found.error.map(Failure::read),
            upstream_status: found.upstream_status,
            commitments: Commitments::read(found.commitments),
            nonces: Nonces::read(found.nonces.unwrap_or_default()),
            fingerprints: Fingerprints::read(found.fingerprints.unwrap_or_default()),
            material: found.material,
            waste: found.waste,
            cost_usd: found.cost_usd,
            parent: some(found.parent),
            children: found.children,
            repairs: some(found.repairs),
            repaired_by: found.repaired_by,
            replay_of: some(found.replay_of),
            mode: Mode::read(found.mode),
            erased: found.erased,
            events: found.events.into_iter().map(Event::read).collect(),
        }
    }
}

impl Nonces {
    fn read(salts: wire::Nonces) -> Self {
        let hex = |salt: &[u8]| some(HEXLOWER.encode(salt));
        Nonces {
            input: hex(&salts.input),
            output: hex(&salts.output),
            request: hex(&salts.request),
            response: hex(&salts.response),
        }
    }
}

impl Fingerprints {
    fn read(found: wire::Fingerprints) -> Self {
        Fingerprints { input: found.input, output: some(found.output), contract: found.contract }
    }
}

impl Event {
    fn read(event: wire::Event) -> Self {
        Event { kind: event.kind, at: moment(event.at), body: raw(&event.body_json) }
    }
}
