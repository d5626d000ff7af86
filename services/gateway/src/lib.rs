//! The HTTP surface: data in, gRPC out. It owns no data, decides nothing about rows or callers, and carries the
//! caller's credential on unchanged; every service verifies it itself.

mod config;

mod answer;
mod app;
mod door;
mod request;
mod upstream;

mod approvals;
mod directory;
mod dispatch;
mod health;
mod listen;
mod mcp;
mod openapi;
mod principals;
mod receipt;
mod recommended;
mod tokens;
mod watch_rules;

use std::sync::Arc;

use axum::Router;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::config::{Config, ConfigError};
pub use self::upstream::Near;

use self::app::App;

/// Answers requests until it is told to stop; then lets open ones end for [`Config::drain`].
///
/// # Errors
/// An address or a TLS file of a service that does not do.
pub async fn serve(listener: TcpListener, config: Config, shutdown: CancellationToken) -> Result<(), ConfigError> {
    let drain = config.drain;
    let app = Arc::new(App::new(config)?);
    door::describe_metrics();
    let upkeep = tokio::spawn(Arc::clone(&app).upkeep(shutdown.clone()));
    app.health.stop_with(shutdown.clone());
    listen::serve(listener, routes(&app), shutdown, drain).await;
    upkeep.abort();
    Ok(())
}

/// All routes, for tests that need no listener. Needs a runtime; connections to the services come with the first call.
///
/// # Errors
/// An address of a service that is none.
pub fn router(config: Config) -> Result<Router, ConfigError> {
    Ok(routes(&Arc::new(App::new(config)?)))
}

fn routes(app: &Arc<App>) -> Router {
    let (routes, document) = openapi::document().split_for_parts();
    door::around(openapi::serve(routes, &document), app)
}
