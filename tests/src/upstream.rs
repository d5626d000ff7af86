//! The outside world: an HTTP server on loopback that remembers what it was asked.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use tokio::net::TcpListener;

/// One request that came in.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The method.
    pub method: String,
    /// Path and query as they came.
    pub target: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

type Answering = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
type Answer = Arc<dyn Fn(Seen) -> Answering + Send + Sync>;

/// A server that answers every request by one function.
#[derive(Clone)]
pub struct Upstream {
    /// Where it listens.
    pub at: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

#[derive(Clone)]
struct Inner {
    seen: Arc<Mutex<Vec<Seen>>>,
    answer: Answer,
}

impl Upstream {
    /// A server that answers at once.
    pub async fn start(answer: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static) -> Upstream {
        Upstream::slow(Duration::ZERO, answer).await
    }

    /// A server that thinks for `delay` before each answer.
    pub async fn slow(delay: Duration, answer: impl Fn(&Seen) -> Response<Body> + Send + Sync + 'static) -> Upstream {
        let answer = Arc::new(answer);
        Upstream::thinking(move |seen| {
            let answer = answer.clone();
            async move {
                tokio::time::sleep(delay).await;
                answer(&seen)
            }
        })
        .await
    }

    /// A server that may look around before it answers.
    pub async fn thinking<F>(answer: impl Fn(Seen) -> F + Send + Sync + 'static) -> Upstream
    where
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let inner = Inner { seen: seen.clone(), answer: Arc::new(move |seen| Box::pin(answer(seen))) };
        let routes = Router::new().fallback(handle).with_state(inner);
        tokio::spawn(async move { axum::serve(listener, routes).await });
        Upstream { at, seen }
    }

    /// The weather service of the walk: answers any coordinate with a temperature.
    pub async fn weather() -> Upstream {
        Upstream::start(|_| {
            json(
                200,
                r#"{"latitude":37.763283,"longitude":-122.41286,"current":{"time":"2026-07-26T04:30","interval":900,"temperature_2m":15.7}}"#,
            )
        })
        .await
    }

    /// `http://127.0.0.1:port`.
    pub fn origin(&self) -> String {
        format!("http://{}", self.at)
    }

    /// What came in so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How much came in so far.
    pub fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

/// A JSON answer.
pub fn json(status: u16, body: &str) -> Response<Body> {
    Response::builder()
        .status(StatusCode::from_u16(status).unwrap())
        .header("content-type", "application/json")
        .body(Body::from(body.to_owned()))
        .unwrap()
}

async fn handle(State(inner): State<Inner>, request: Request) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap_or_default();
    let seen = Seen {
        method: head.method.to_string(),
        target: head.uri.path_and_query().map(ToString::to_string).unwrap_or_default(),
        headers: head.headers,
        body,
    };
    inner.seen.lock().unwrap().push(seen.clone());
    (inner.answer)(seen).await
}
