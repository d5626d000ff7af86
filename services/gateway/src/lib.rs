//! The HTTP surface: data in, gRPC out. It owns no data, decides nothing about rows or callers, and carries the
//! caller's credential on unchanged; every service verifies it itself.

mod config;

mod answer;
mod app;
mod door;
mod request;
mod upstream;

mod directory;
mod dispatch;
mod health;
mod openapi;
mod principals;
mod receipt;
mod recommended;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use callbook_runtime::listen::with_nodelay;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use self::config::{Config, ConfigError, DEFAULT_POOL};

use self::app::App;

/// Why the gateway ended before it was told to.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// A setting that does not do.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The listener failed.
    #[error("the gateway cannot listen any more ({0})")]
    Listen(#[from] io::Error),
}

/// Answers requests until it is told to stop; then lets open ones end for [`Config::drain`].
///
/// # Errors
/// An address or a TLS file of a service that does not do, or a listener that fails.
pub async fn serve(listener: TcpListener, config: Config, shutdown: CancellationToken) -> Result<(), ServeError> {
    let drain = config.drain;
    let app = Arc::new(App::new(config)?);
    door::describe_metrics();
    let upkeep = tokio::spawn(Arc::clone(&app).upkeep(shutdown.clone()));
    app.health.stop_with(shutdown.clone());
    let routes = routes(&app).into_make_service_with_connect_info::<SocketAddr>();
    let stop = shutdown.clone();
    let server = axum::serve(with_nodelay(listener), routes).with_graceful_shutdown(stop.cancelled_owned());
    let late = async {
        shutdown.cancelled().await;
        tokio::time::sleep(drain).await;
    };
    let ended = tokio::select! {
        ended = server => ended,
        () = late => {
            tracing::warn!("requests were still open when the time to end them was over");
            Ok(())
        }
    };
    upkeep.abort();
    Ok(ended?)
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
