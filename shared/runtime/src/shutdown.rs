//! Ending on a signal.

use std::io;

use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// A token that is cancelled at the first SIGTERM or SIGINT. The second one ends the process at once with status 130,
/// for a person who does not want to wait; what was committed is safe.
///
/// # Errors
/// The system does not let us handle signals.
pub fn on_signal() -> io::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        for second in [false, true] {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            if second {
                std::process::exit(130);
            }
            tracing::info!("stopping; a second signal ends the process at once");
            stop.cancel();
        }
    });
    Ok(token)
}
