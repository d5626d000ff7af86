//! Connections from outside: taken one by one, told to hurry, and ended in order.

mod head;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use self::head::{HEAD, HeadTimer};

/// How a connection of HTTP/2 begins.
const HTTP2: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The most bytes of all headers of a request of HTTP/2: a whole token of four links and what stands beside it.
const HEADERS: u32 = 64 * 1024;
/// How many connections are open at the same time; the next ones wait in the kernel.
const CONNECTIONS: usize = 16_384;
/// How long accepting pauses after the system had no more descriptors to give.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the routes until it is told to stop, then lets open requests end for `drain`.
pub(crate) async fn serve(listener: TcpListener, routes: Router, stop: CancellationToken, drain: Duration) {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().header_read_timeout(HEAD);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Some(Duration::from_secs(20)))
        .max_header_list_size(HEADERS);
    let open = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { break };
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Some((stream, peer)) = usable(accepted).await else { continue };
        let routes = routes.clone();
        let service = hyper::service::service_fn(move |request: Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            routes.clone().oneshot(request)
        });
        let (mut builder, watcher, stop) = (builder.clone(), open.watcher(), stop.clone());
        let timer = HeadTimer::default();
        builder.http1().timer(timer.clone());
        tokio::spawn(async move {
            let begun = tokio::select! {
                () = stop.cancelled() => false,
                begun = tokio::time::timeout(HEAD, speaks(&stream)) => begun.is_ok_and(|speaks| speaks),
            };
            if begun {
                let stream = TokioIo::new(timer.watch(stream));
                let connection = builder.serve_connection_with_upgrades(stream, service).into_owned();
                // a client that breaks off is no news
                let _ = watcher.watch(connection).await;
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(drain, open.shutdown()).await.is_err() {
        tracing::warn!("requests were still open when the time to end them was over");
    }
}

/// Waits until it is clear which HTTP the client speaks: until then nobody else counts the time.
async fn speaks(stream: &TcpStream) -> bool {
    let mut begun = [0u8; HTTP2.len()];
    loop {
        match stream.peek(&mut begun).await {
            Ok(0) | Err(_) => return false,
            Ok(read) if read == HTTP2.len() || !HTTP2.starts_with(&begun[..read]) => return true,
            Ok(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
}

/// A connection that can be served. One that is gone already is passed over; without descriptors we wait a moment.
async fn usable(accepted: io::Result<(TcpStream, SocketAddr)>) -> Option<(TcpStream, SocketAddr)> {
    match accepted {
        Ok((stream, peer)) => {
            // without it the end of a small answer waits for the client's acknowledgement
            let _ = stream.set_nodelay(true);
            Some((stream, peer))
        }
        Err(error) if matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) => None,
        Err(error) => {
            tracing::warn!(%error, "a connection could not be taken");
            tokio::time::sleep(PAUSE).await;
            None
        }
    }
}
