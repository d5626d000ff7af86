//! Retention: the bytes of old calls go, the log stays.

use time::Duration;

use crate::App;
use crate::store::receipt;

/// Erases what is kept of calls that ended longer ago than the setting says. Never within the day of an idempotency
/// key, unless the setting is shorter than that.
pub async fn erase(app: &App) {
    if app.config.retention_days == 0 {
        return;
    }
    let before = app.clock.now() - Duration::days(i64::from(app.config.retention_days));
    match receipt::erase(app.directory.pool(), before).await {
        Ok(0) => {}
        Ok(parts) => tracing::info!(parts, "old payloads erased"),
        Err(error) => tracing::warn!(%error, "old payloads could not be erased"),
    }
}
