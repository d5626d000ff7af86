//! `POST /api/directory:import`: many rows, passed on piece by piece.

use std::num::NonZeroUsize;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::extract::{Request, State};
use bytes::Bytes;
use callbook_domain::fault::{Fault, Reason, Result};
use callbook_wire::directory::v1 as wire;
use callbook_wire::directory::v1::import_rows_request::Part;
use futures::{Stream, StreamExt};
use http::{StatusCode, header};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;
use utoipa::{IntoParams, ToSchema};

use crate::answer::{Answer, Provenance, Refused, json_with, only, some};
use crate::app::App;
use crate::request::{Call, Query, Switch, is_import, too_large, unsupported};
use crate::upstream::{directory, fault_of_write};

/// Pieces on the way at a time.
const AHEAD: usize = 4;

/// How to import.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct How {
    /// How far one refused row stops the import. Absent: `atomic`, all rows or none.
    #[param(nullable = false, inline)]
    mode: Option<Mode>,
    /// What becomes of a row whose key exists. Absent: `refuse`.
    #[param(nullable = false, inline)]
    on_conflict: Option<OnConflict>,
    /// True: keys that read like other keys are accepted.
    #[param(nullable = false, inline)]
    allow_lookalike: Option<Switch>,
    /// Provenance of all rows. Absent: what each row says.
    #[param(nullable = false, inline)]
    provenance: Option<Provenance>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[schema(as = ImportMode)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Atomic,
    Each,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OnConflict {
    Refuse,
    Replace,
    Skip,
}

/// What an import did.
#[derive(Serialize, ToSchema)]
struct Imported {
    /// False: the import was atomic, at least one row was refused and nothing was written.
    ok: bool,
    created: u64,
    replaced: u64,
    /// Rows that were already so, or that were skipped.
    unchanged: u64,
    /// The rows that were refused, in the order of the text.
    refused: Vec<RefusedRow>,
    /// What is doubtful, the first 100.
    warnings: Vec<String>,
    /// The directory's revision of the last write. Null: nothing was written.
    revision: Option<i64>,
}

/// A row that an import refused.
#[derive(Serialize, ToSchema)]
struct RefusedRow {
    /// Line of the NDJSON text, or place in the JSON list, from 1.
    line: u64,
    /// Null: the line had none that could be read.
    key: Option<String>,
    /// Why, in the words of a single write.
    error: String,
    /// What to do about it. Absent: the error says it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    how_to_fix: Option<String>,
}

/// Writes many rows: NDJSON or one JSON list, at most 64 MiB.
#[utoipa::path(
    post, path = "/api/directory:import", tag = "directory", operation_id = "import_rows", params(How),
    request_body(content((String = "application/x-ndjson"), (Vec<Object> = "application/json"))),
    responses(
        Refused,
        (status = 200, description = "What it did", body = Imported),
        (status = 422, description = "A row was refused and nothing was written", body = Imported)
    )
)]
pub(crate) async fn import(
    State(app): State<Arc<App>>,
    call: Call,
    Query(how): Query<How>,
    request: Request,
) -> Answer {
    if !is_import(request.headers()) {
        return Err(unsupported("send NDJSON with `content-type: application/x-ndjson`"));
    }
    let call = call.or_within(app.config.import_deadline);
    let limit = app.config.limits.import_bytes.map_or(usize::MAX, NonZeroUsize::get);
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    if announced.is_some_and(|length: usize| length > limit) {
        return Err(too_large(limit).into());
    }
    let done = Imported::read(send(&app, &call, how.into(), request.into_body(), limit).await?);
    json_with(if done.ok { StatusCode::OK } else { StatusCode::UNPROCESSABLE_ENTITY }, &done)
}

/// Passes the body on. The answer may come before its end, when the import is refused.
async fn send(
    app: &App,
    call: &Call,
    options: wire::ImportOptions,
    body: Body,
    limit: usize,
) -> Result<wire::ImportRowsResponse> {
    let (pieces, received) = mpsc::channel(AHEAD);
    let lane = app.upstreams.contract.lane()?;
    let request = call.request(Pieces { received, ended: false }).map_err(|status| fault_of_write(&status))?;
    let mut client = directory(lane.wire.clone());
    let mut answer = pin!(client.import_rows(request));
    let fed = tokio::select! {
        answer = &mut answer => return done(answer),
        fed = feed(&pieces, options, body, limit) => fed,
    };
    // On a refusal the call is dropped unfinished, which the service sees as a call that was cancelled.
    fed?;
    done(answer.await)
}

fn done(
    answer: std::result::Result<tonic::Response<wire::ImportRowsResponse>, tonic::Status>,
) -> Result<wire::ImportRowsResponse> {
    answer.map(tonic::Response::into_inner).map_err(|status| fault_of_write(&status))
}

async fn feed(pieces: &mpsc::Sender<Piece>, options: wire::ImportOptions, body: Body, limit: usize) -> Result<()> {
    // A receiver that is gone means that the answer is there.
    let _ = pieces.send(Piece::Part(Part::Options(options))).await;
    let (mut body, mut sent) = (body.into_data_stream(), 0usize);
    while let Some(chunk) = body.next().await {
        let chunk: Bytes = chunk.map_err(|_| Fault::new(Reason::InvalidRequest, "the body broke off"))?;
        sent = sent.saturating_add(chunk.len());
        if sent > limit {
            return Err(too_large(limit));
        }
        let _ = pieces.send(Piece::Part(Part::Chunk(chunk))).await;
    }
    let _ = pieces.send(Piece::End).await;
    Ok(())
}

enum Piece {
    Part(Part),
    /// The whole body was read.
    End,
}

/// The messages of the call. They end only where the body was read to its end: where it broke off they stay open until
/// the call is cancelled, so that no part of a body is ever taken for all of it.
struct Pieces {
    received: mpsc::Receiver<Piece>,
    ended: bool,
}

impl Stream for Pieces {
    type Item = wire::ImportRowsRequest;

    fn poll_next(mut self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended {
            return Poll::Ready(None);
        }
        match self.received.poll_recv(cx) {
            Poll::Ready(Some(Piece::Part(part))) => Poll::Ready(Some(wire::ImportRowsRequest { part: Some(part) })),
            Poll::Ready(Some(Piece::End)) => {
                self.ended = true;
                Poll::Ready(None)
            }
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

impl From<How> for wire::ImportOptions {
    fn from(how: How) -> Self {
        let mode = match how.mode.unwrap_or(Mode::Atomic) {
            Mode::Atomic => wire::ImportMode::Atomic,
            Mode::Each => wire::ImportMode::Each,
        };
        let on_conflict = match how.on_conflict.unwrap_or(OnConflict::Refuse) {
            OnConflict::Refuse => wire::OnConflict::Refuse,
            OnConflict::Replace => wire::OnConflict::Replace,
            OnConflict::Skip => wire::OnConflict::Skip,
        };
        wire::ImportOptions {
            mode: mode.into(),
            on_conflict: on_conflict.into(),
            allow_lookalike: how.allow_lookalike.unwrap_or_default().0,
            provenance: only(how.provenance),
        }
    }
}

impl Imported {
    fn read(done: wire::ImportRowsResponse) -> Self {
        let refused = |row: wire::RefusedRow| RefusedRow {
            line: row.line,
            key: some(row.key),
            error: row.error,
            how_to_fix: some(row.how_to_fix),
        };
        Imported {
            ok: done.ok,
            created: done.created,
            replaced: done.replaced,
            unchanged: done.unchanged,
            refused: done.refused.into_iter().map(refused).collect(),
            warnings: done.warnings,
            revision: done.revision,
        }
    }
}
