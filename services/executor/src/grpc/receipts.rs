//! `ReceiptService`.

use callbook_domain::fault::{Fault, Reason};
use callbook_domain::invocation::{InvocationId, Mode, State, Status};
use callbook_domain::row::{Effect, Risk, RowType};
use callbook_runtime::grpc::to_status;
use callbook_wire::receipt::v1::receipt_service_server::ReceiptService;
use callbook_wire::receipt::v1::{
    self as wire, CommitMode, ConfirmRequest, ConfirmResponse, GetReceiptRequest, GetReceiptResponse, GetStatsRequest,
    GetStatsResponse, ListInvocationsRequest, ListInvocationsResponse, ReceiptStatus,
};
use time::OffsetDateTime;
use tonic::{Request, Response};
use uuid::Uuid;

use super::{Grpc, at, effect, failure, risk, row_type};
use crate::credential::Credential;
use crate::receipt::{self, Full};
use crate::store::receipt::{Figures, Filter, Record};
use crate::stored_answer::outcome;

/// The page size where none is asked for, and the largest.
const PAGE: (u32, u32) = (50, 500);

#[tonic::async_trait]
impl ReceiptService for Grpc {
    async fn confirm(&self, request: Request<ConfirmRequest>) -> Result<Response<ConfirmResponse>, tonic::Status> {
        let confirmed = receipt::confirm(&self.0, &request.into_inner().invocation_id).await;
        let confirmed = confirmed.map_err(|f| to_status(&f))?;
        Ok(Response::new(ConfirmResponse {
            invocation_id: confirmed.id.to_string(),
            confirmed: true,
            status: status(confirmed.status),
            started_at: Some(at(confirmed.started_at)),
            ended_at: confirmed.ended_at.map(at),
            commitments: Some(commitments(|part| confirmed.commitment(part))),
            repairs: confirmed.repairs.map(|id| id.to_string()).unwrap_or_default(),
            replay_of: confirmed.replay_of.map(|id| id.to_string()).unwrap_or_default(),
            mode: mode(confirmed.mode.as_str()),
            key: confirmed.key,
            contract_hash: confirmed.contract_hash,
        }))
    }

    async fn get_receipt(
        &self,
        request: Request<GetReceiptRequest>,
    ) -> Result<Response<GetReceiptResponse>, tonic::Status> {
        let credential = Credential::of(&self.0, request.metadata().as_ref());
        let full =
            receipt::get(&self.0, credential, &request.get_ref().invocation_id).await.map_err(|f| to_status(&f))?;
        Ok(Response::new(GetReceiptResponse { receipt: Some(encode(full)) }))
    }

    async fn list_invocations(
        &self,
        request: Request<ListInvocationsRequest>,
    ) -> Result<Response<ListInvocationsResponse>, tonic::Status> {
        let caller = Credential::of(&self.0, request.metadata().as_ref()).caller().await.map_err(|f| to_status(&f))?;
        let asked = request.into_inner();
        let before = match asked.page_token.as_str() {
            "" => None,
            token => Some(InvocationId::parse(token).ok_or_else(|| to_status(&bad_cursor()))?),
        };
        let limit = if asked.page_size == 0 { PAGE.0 } else { asked.page_size.min(PAGE.1) };
        let filter = filter(&asked).map_err(|fault| to_status(&fault))?;
        let mut records =
            receipt::list(&self.0, &caller, filter, before, i64::from(limit) + 1).await.map_err(|f| to_status(&f))?;
        let more = records.len() > limit as usize;
        records.truncate(limit as usize);
        let last = records.last().map(|record| InvocationId(record.id).to_string());
        Ok(Response::new(ListInvocationsResponse {
            invocations: records.into_iter().map(summary).collect(),
            next_page_token: last.filter(|_| more).unwrap_or_default(),
        }))
    }

    async fn get_stats(&self, request: Request<GetStatsRequest>) -> Result<Response<GetStatsResponse>, tonic::Status> {
        let caller = Credential::of(&self.0, request.metadata().as_ref()).caller().await.map_err(|f| to_status(&f))?;
        let asked = request.into_inner();
        let filter = Filter {
            key: named(&asked.key),
            actor: named(&asked.actor),
            since: moment(asked.since),
            until: moment(asked.until),
            ..Filter::default()
        };
        let figures = receipt::stats(&self.0, &caller, filter).await.map_err(|fault| to_status(&fault))?;
        let (total, by_key): (Vec<_>, Vec<_>) = figures.into_iter().partition(|figures| figures.key.is_none());
        Ok(Response::new(GetStatsResponse {
            total: total.into_iter().next().map(stats),
            by_key: by_key
                .into_iter()
                .map(|figures| wire::KeyStats {
                    key: figures.key.clone().unwrap_or_default(),
                    stats: Some(stats(figures)),
                })
                .collect(),
        }))
    }
}

fn bad_cursor() -> Fault {
    Fault::new(Reason::CursorInvalid, "the page token is not one of ours").with("field", "cursor")
}

fn filter(asked: &ListInvocationsRequest) -> Result<Filter, Fault> {
    let (state, material) = match asked.status() {
        ReceiptStatus::Unspecified => (None, None),
        ReceiptStatus::ProvenMaterialResult => (Some(State::Done), Some(true)),
        ReceiptStatus::ProvenAttemptNoMaterialResult => (Some(State::Done), Some(false)),
        ReceiptStatus::Pending => (Some(State::Running), None),
        ReceiptStatus::Unknown => (Some(State::Unknown), None),
        // no invocation is held or denied: those have events and no invocation
        ReceiptStatus::Held | ReceiptStatus::Denied => (Some(State::Unknown), Some(true)),
    };
    let parent = match named(&asked.parent) {
        None => None,
        Some(text) => Some(InvocationId::require(&text)?.0),
    };
    Ok(Filter {
        key: named(&asked.key),
        actor: named(&asked.actor),
        state: state.map(|state| state.as_str().to_owned()),
        material,
        since: moment(asked.since),
        until: moment(asked.until),
        parent,
        ..Filter::default()
    })
}

fn named(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.replace('\0', "\u{fffd}"))
}

fn moment(at: Option<prost_types::Timestamp>) -> Option<OffsetDateTime> {
    let nanos = |at: prost_types::Timestamp| i128::from(at.seconds) * 1_000_000_000 + i128::from(at.nanos);
    at.and_then(|at| OffsetDateTime::from_unix_timestamp_nanos(nanos(at)).ok())
}

fn id_text(id: Option<Uuid>) -> String {
    id.map(|id| InvocationId(id).to_string()).unwrap_or_default()
}

fn mode(word: &str) -> i32 {
    let mode = match Mode::parse(word) {
        Some(Mode::Durable) => CommitMode::Before,
        Some(Mode::Read) => CommitMode::Read,
        None => CommitMode::Unspecified,
    };
    mode.into()
}

fn status(status: Status) -> i32 {
    let status = match status {
        Status::Material => ReceiptStatus::ProvenMaterialResult,
        Status::NoMaterial => ReceiptStatus::ProvenAttemptNoMaterialResult,
        Status::Pending => ReceiptStatus::Pending,
        Status::Unknown => ReceiptStatus::Unknown,
        Status::Held => ReceiptStatus::Held,
        Status::Denied => ReceiptStatus::Denied,
    };
    status.into()
}

fn duration_ms(record: &Record) -> Option<i64> {
    record.finished_at.map(|end| i64::try_from((end - record.started_at).whole_milliseconds()).unwrap_or(i64::MAX))
}

fn upstream_status(record: &Record) -> Option<u32> {
    record.upstream_status.and_then(|status| u32::try_from(status).ok())
}

fn summary(record: Record) -> wire::InvocationSummary {
    wire::InvocationSummary {
        invocation_id: InvocationId(record.id).to_string(),
        status: status(receipt::status(&record)),
        started_at: Some(at(record.started_at)),
        ended_at: record.finished_at.map(at),
        duration_ms: duration_ms(&record),
        upstream_status: upstream_status(&record),
        parent: id_text(record.parent),
        repairs: id_text(record.repairs),
        replay_of: id_text(record.replay_of),
        key: record.key,
        actor: record.actor,
        error_code: record.code.unwrap_or_default(),
        cost_usd: record.cost_usd,
        runner: record.runner,
    }
}

fn stats(figures: Figures) -> wire::Stats {
    wire::Stats {
        count: u64::try_from(figures.count).unwrap_or(0),
        failures: u64::try_from(figures.failures).unwrap_or(0),
        latency_p50_ms: figures.p50_ms,
        latency_p95_ms: figures.p95_ms,
        latency_p99_ms: figures.p99_ms,
        cost_usd: figures.cost_usd,
    }
}

fn commitments(of: impl Fn(&str) -> String) -> wire::Commitments {
    wire::Commitments { input: of("input"), output: of("output"), request: of("request"), response: of("response") }
}

fn nonces(full: &Full) -> wire::Nonces {
    let of = |part| full.part(part).map(|kept| kept.nonce.clone().into()).unwrap_or_default();
    wire::Nonces { input: of("input"), output: of("output"), request: of("request"), response: of("response") }
}

fn encode(full: Full) -> wire::Receipt {
    let bytes = |name| full.part(name).map(|kept| kept.bytes.clone().into());
    let media_type = |name| full.part(name).map(|kept| kept.media_type.clone()).unwrap_or_default();
    let record = &full.record;
    let error = match outcome(record, &full.payload) {
        callbook_domain::outcome::Outcome::Failed(failed) if record.finished_at.is_some() => Some(failure(failed)),
        callbook_domain::outcome::Outcome::Failed(_) | callbook_domain::outcome::Outcome::Ok(..) => None,
    };
    let material = record.material == Some(true);
    wire::Receipt {
        invocation_id: InvocationId(record.id).to_string(),
        status: status(receipt::status(record)),
        key: record.key.clone(),
        r#type: RowType::parse(&record.r#type).map(row_type).unwrap_or_default(),
        revision: record.row_revision,
        contract_hash: record.contract_hash.clone(),
        text_hash: record.text_hash.clone(),
        effect: Effect::parse(&record.effect).map(effect).unwrap_or_default(),
        risk: Risk::parse(&record.risk).map(risk).unwrap_or_default(),
        actor: record.actor.clone(),
        lineage: record.lineage.clone(),
        runner: record.runner.clone(),
        pool: record.pool.clone(),
        trace: record.trace.clone(),
        started_at: Some(at(record.started_at)),
        ended_at: record.finished_at.map(at),
        duration_ms: duration_ms(record),
        input: bytes("input"),
        input_media_type: media_type("input"),
        request: bytes("request"),
        response: bytes("response"),
        output: bytes("output"),
        output_media_type: media_type("output"),
        truncated: record.truncated,
        error,
        upstream_status: upstream_status(record),
        commitments: Some(commitments(|part| full.commitment(part))),
        nonces: Some(nonces(&full)),
        fingerprints: Some(wire::Fingerprints {
            input: full.commitment("input"),
            output: full.commitment("output"),
            contract: record.contract_hash.clone(),
        }),
        material,
        waste: !material && record.cost_usd > 0.0,
        cost_usd: record.cost_usd,
        parent: id_text(record.parent),
        children: full.children.iter().map(InvocationId::to_string).collect(),
        repairs: id_text(record.repairs),
        repaired_by: full.repaired_by.iter().map(InvocationId::to_string).collect(),
        replay_of: id_text(record.replay_of),
        mode: mode(&record.mode),
        erased: full.payload.is_empty(),
        events: full
            .events
            .iter()
            .map(|event| wire::Event {
                kind: event.kind.clone(),
                at: Some(at(event.at)),
                body_json: event.body.clone().into(),
            })
            .collect(),
    }
}
