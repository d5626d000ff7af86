//! The address for operators: `/metrics`, `/healthz`, `/readyz`.

use std::io;

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::health::Readiness;
use crate::listen::with_nodelay;

/// Serves the address until the token is cancelled. Cancel it last: a process that drains still says that it lives.
///
/// # Errors
/// What the listener met.
pub async fn serve(
    listener: TcpListener,
    metrics: PrometheusHandle,
    readiness: Readiness,
    until: CancellationToken,
) -> io::Result<()> {
    let page = move || {
        let text = metrics.render();
        async move { ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text) }
    };
    let routes = Router::new().route("/metrics", get(page)).merge(health_routes(readiness));
    axum::serve(with_nodelay(listener), routes).with_graceful_shutdown(until.cancelled_owned()).await
}

/// `/healthz` (the process lives) and `/readyz` (it should be given work), for the gateway too.
pub fn health_routes<S: Clone + Send + Sync + 'static>(readiness: Readiness) -> Router<S> {
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready)).with_state(readiness)
}

async fn ready(State(readiness): State<Readiness>) -> impl IntoResponse {
    let missing = readiness.missing();
    let status = if missing.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, [(header::CACHE_CONTROL, "no-store")], Json(json!({"ready": missing.is_empty(), "waiting_for": missing})))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn get_page(address: SocketAddr, path: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    #[tokio::test]
    async fn the_three_pages_say_what_is_and_the_token_ends_them() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, || metrics::counter!("callbook_invocations_total").increment(3));
        let readiness = Readiness::waiting_for(["database", "snapshot"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let until = CancellationToken::new();
        let server = tokio::spawn(serve(listener, recorder.handle(), readiness.clone(), until.clone()));
        let page = async |path: &str| get_page(address, path).await;
        assert_eq!(page("/healthz").await, (200, "ok\n".to_owned()));
        readiness.ready("database");
        let waiting = (503, r#"{"ready":false,"waiting_for":["snapshot"]}"#.to_owned());
        assert_eq!(page("/readyz").await, waiting);
        readiness.ready("snapshot");
        readiness.until_ready().await;
        assert_eq!(page("/readyz").await.0, 200);
        assert!(page("/metrics").await.1.contains("callbook_invocations_total 3"));
        readiness.not_ready("stopping");
        assert_eq!(page("/readyz").await.0, 503);
        until.cancel();
        server.await.unwrap().unwrap();
    }
}
