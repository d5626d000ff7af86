//! Whether the process lives, and whether it can be given work.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use axum::extract::State;
use callbook_domain::fault::Reason;
use http::StatusCode;
use serde::Serialize;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use utoipa::ToSchema;

use crate::answer::{Answer, json, json_with};
use crate::app::App;
use crate::request::Call;
use crate::upstream::{Pool, rpc};

/// How long a service may take to say that it serves.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long its word is believed, so that asking us is never asking them in proportion.
const BELIEVED: Duration = Duration::from_millis(500);

/// What was last found.
#[derive(Default)]
pub(crate) struct Health {
    last: Mutex<Option<(Instant, Ready)>>,
    stop: OnceLock<CancellationToken>,
}

impl Health {
    /// From the moment that this is cancelled the process is not ready any more.
    pub(crate) fn stop_with(&self, stop: CancellationToken) {
        // Set once, by the one `serve` that an app has.
        let _ = self.stop.set(stop);
    }

    /// Whether the process was told to stop.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stop.get().is_some_and(CancellationToken::is_cancelled)
    }

    /// Comes when the process is told to stop.
    pub(crate) async fn stopping(&self) {
        match self.stop.get() {
            Some(stop) => stop.cancelled().await,
            None => std::future::pending().await,
        }
    }
}

/// The process lives.
#[derive(Serialize, ToSchema)]
struct Alive {
    /// Always true.
    ok: bool,
}

/// What the process would pass requests on to.
#[derive(Clone, Copy, Serialize, ToSchema)]
struct Ready {
    /// True: requests can be sent here.
    ready: bool,
    /// The resolvers; they must serve.
    resolver: Part,
    /// The contract services; they must be reachable.
    contract: Part,
    /// The gates; they must be reachable.
    gate: Part,
    /// The executors; they must be reachable.
    executor: Part,
}

/// One service.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Part {
    /// A process of it serves.
    Serving,
    /// A process of it answers, and says that it does not serve all that it should.
    NotServing,
    /// No process of it answers.
    Unreachable,
}

/// Says that the process lives.
#[utoipa::path(get, path = "/healthz", tag = "health", responses((status = 200, description = "It lives", body = Alive)))]
pub(crate) async fn healthz() -> Answer {
    json(&Alive { ok: true })
}

/// Says whether requests can be sent here.
#[utoipa::path(
    get, path = "/readyz", tag = "health",
    responses((status = 200, description = "Ready", body = Ready), (status = 503, description = "Not ready", body = Ready))
)]
pub(crate) async fn readyz(State(app): State<Arc<App>>) -> Answer {
    let mut ready = look(&app).await;
    ready.ready &= !app.health.is_stopping();
    let status = if ready.ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    json_with(status, &ready)
}

/// One look at a time; who comes meanwhile gets what it found.
async fn look(app: &App) -> Ready {
    let mut last = app.health.last.lock().await;
    if let Some((at, ready)) = *last
        && at.elapsed() < BELIEVED
    {
        return ready;
    }
    let found = &app.upstreams;
    let (resolver, contract, gate, executor) =
        tokio::join!(part(&found.resolver), part(&found.contract), part(&found.gate), part(&found.receipts));
    // A part that answers can still do what needs no database, so only the reading of the book has to be whole.
    let ready = resolver == Part::Serving && [contract, gate, executor].iter().all(|part| *part != Part::Unreachable);
    let ready = Ready { ready, resolver, contract, gate, executor };
    *last = Some((Instant::now(), ready));
    ready
}

async fn part(pool: &Pool) -> Part {
    let call = Call::of_our_own(PATIENCE);
    match pool.read(&call, HealthCheckRequest::default(), rpc!(health.check)).await {
        Ok(answer) if answer.status == ServingStatus::Serving as i32 => Part::Serving,
        Ok(_) => Part::NotServing,
        Err(fault) if matches!(fault.reason(), Reason::ServiceUnavailable | Reason::DeadlineTooShort) => {
            Part::Unreachable
        }
        Err(_) => Part::NotServing,
    }
}
