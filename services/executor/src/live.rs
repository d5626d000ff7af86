//! The executor's own life: its heartbeat, the calls of the dead, and its end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::App;
use crate::store::liveness;

/// How often it says that it lives, and looks for those who do not.
const BEAT: Duration = Duration::from_secs(5);
/// After a longer silence of its own it does not judge others: perhaps nobody could be heard.
const FIT_TO_JUDGE: Duration = Duration::from_secs(10);
/// How long calls in flight are waited for at the end.
const DRAIN: Duration = Duration::from_secs(25);

/// Beats and resolves until `stop`, then waits for the calls in flight.
///
/// # Errors
/// The first heartbeat could not be written, so nobody would know whose calls these are.
pub async fn serve(app: Arc<App>, stop: CancellationToken) -> sqlx::Result<()> {
    beat(&app).await?;
    resolve(&app).await;
    let retaining = tokio::spawn({
        let (app, stop) = (app.clone(), stop.clone());
        async move { crate::retain::run(&app, stop).await }
    });
    let watching = tokio::spawn({
        let app = app.clone();
        async move { crate::revocable::run(&app).await }
    });
    let mut heard = Instant::now();
    let mut beats = tokio::time::interval(BEAT);
    beats.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    beats.tick().await;
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            _ = beats.tick() => {}
        }
        let silent = heard.elapsed();
        match beat(&app).await {
            Ok(()) => heard = Instant::now(),
            Err(error) => {
                tracing::warn!(%error, "the heartbeat cannot be written");
                continue;
            }
        }
        if silent < FIT_TO_JUDGE {
            resolve(&app).await;
        }
    }
    retaining.abort();
    drain(&app).await;
    watching.abort();
    Ok(())
}

/// A heartbeat that does not hang on a connection which leads nowhere.
async fn beat(app: &App) -> sqlx::Result<()> {
    let beating = liveness::beat(app.directory.pool(), app.id, &app.config.pools, &app.config.address);
    tokio::time::timeout(BEAT, beating).await.unwrap_or(Err(sqlx::Error::PoolTimedOut))
}

async fn resolve(app: &App) {
    match liveness::resolve(app.directory.pool(), app.clock.now()).await {
        Ok(0) => {}
        Ok(lost) => tracing::warn!(lost, "calls of dead executors are unknown now"),
        Err(error) => tracing::warn!(%error, "calls of dead executors could not be looked for"),
    }
}

async fn drain(app: &App) {
    app.tasks.close();
    let waiting = app.tasks.wait();
    tokio::pin!(waiting);
    let end = tokio::time::sleep(DRAIN);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut waiting => {
                let _ = liveness::leave(app.directory.pool(), app.id).await;
                return;
            }
            () = &mut end => {
                tracing::warn!(left = app.tasks.len(), "stopped with calls in flight, their lease will end");
                return;
            }
            // those that still run are still ours
            () = tokio::time::sleep(BEAT) => {
                let _ = beat(app).await;
            }
        }
    }
}
