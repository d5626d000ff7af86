//! Retention: the bytes of old calls go, the log stays.

use std::time::Duration;

use time::OffsetDateTime;
use tokio_util::sync::CancellationToken;

use crate::App;
use crate::store::approval;
use crate::store::receipt::{self, ERASED_AT_ONCE};

/// How often old payloads are looked for.
const EVERY: Duration = Duration::from_secs(5);

/// Erases what is kept of calls that began longer ago than the setting says, until `stop`. By itself: it may take longer
/// than a heartbeat.
pub async fn run(app: &App, stop: CancellationToken) {
    let days = time::Duration::days(i64::from(app.config.retention_days));
    if days.is_zero() {
        return;
    }
    loop {
        let Some(before) = app.clock.now().checked_sub(days) else { return };
        let more = match erase(app, before).await {
            Ok(parts) => {
                if parts > 0 {
                    tracing::info!(parts, "old payloads erased");
                }
                parts >= ERASED_AT_ONCE
            }
            Err(error) => {
                tracing::warn!(%error, "old payloads could not be erased");
                false
            }
        };
        let pause = if more { Duration::from_millis(50) } else { EVERY };
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Erases a batch of what calls brought and gave, and of what held calls brought. Gives the larger count.
async fn erase(app: &App, before: OffsetDateTime) -> sqlx::Result<u64> {
    let held = approval::erase(app.directory.pool(), before).await?;
    Ok(receipt::erase(app.directory.pool(), before).await?.max(held))
}
