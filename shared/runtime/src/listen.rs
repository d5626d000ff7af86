//! Listening, with a sentence when it does not work.

use std::io;

use axum::serve::{ListenerExt, TapIo};
use tokio::net::{TcpListener, TcpStream};

use crate::settings::HostPort;

/// An address that cannot be listened on.
#[derive(Debug, thiserror::Error)]
#[error("setting `{setting}`: cannot listen on {at} ({source})")]
pub struct ListenError {
    /// The setting that names the address.
    pub setting: &'static str,
    /// The address.
    pub at: HostPort,
    /// What the system said.
    pub source: io::Error,
}

/// Listens on the address of a setting, such as `http`.
///
/// # Errors
/// The address is taken, not ours, or not known.
pub async fn bind(setting: &'static str, at: &HostPort) -> Result<TcpListener, ListenError> {
    let bound = TcpListener::bind((at.host.as_str(), at.port)).await;
    bound.map_err(|source| ListenError { setting, at: at.clone(), source })
}

/// A listener whose connections send small answers at once. Without it the p99 of a small answer is 40 ms, because
/// the kernel waits for more. tonic has its own switch: `TcpIncoming::with_nodelay`.
pub fn with_nodelay(listener: TcpListener) -> TapIo<TcpListener, fn(&mut TcpStream)> {
    listener.tap_io(|stream| {
        // A connection that is already gone says so at its first read.
        let _ = stream.set_nodelay(true);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_taken_address_is_one_sentence_that_names_the_setting() {
        let first = bind("http", &HostPort::parse("127.0.0.1:0").unwrap()).await.unwrap();
        let taken = HostPort::parse(&first.local_addr().unwrap().to_string()).unwrap();
        let sentence = bind("http", &taken).await.unwrap_err().to_string();
        assert!(sentence.starts_with(&format!("setting `http`: cannot listen on {taken} (")), "{sentence}");
    }
}
