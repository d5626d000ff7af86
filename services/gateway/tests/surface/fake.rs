//! A gRPC server that answers what a test told it and keeps what it was asked.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use callbook_domain::fault::Fault;
use callbook_runtime::grpc::to_status;
use http::{HeaderMap, HeaderValue, Uri};
use http_body_util::{BodyExt, Full};
use prost::Message;
use tonic::service::Routes;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// One call as it came in.
#[derive(Clone)]
pub struct Asked {
    pub headers: HeaderMap,
    /// The messages; more than one where the client streams.
    pub messages: Vec<Bytes>,
    /// False: its last message did not come yet, or never will.
    pub whole: bool,
}

#[derive(Clone)]
enum Said {
    Message(Bytes),
    Refusal(Fault),
}

/// The server. Clones are the same.
#[derive(Clone, Default)]
pub struct Fake {
    says: Arc<Mutex<HashMap<String, Said>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Fake {
    /// Starts it on a port of its own.
    pub async fn start(&self) -> Uri {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let fake = self.clone();
        let router = Router::new().fallback(move |request| async move { fake.answer(request).await });
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tokio::spawn(Server::builder().add_routes(Routes::from(router)).serve_with_incoming(incoming));
        format!("http://{address}").parse().unwrap()
    }

    /// Answers `Service/Method` of `callbook.…` with a message.
    pub fn say(&self, method: &str, message: &impl Message) -> &Self {
        self.tell(method, Said::Message(message.encode_to_vec().into()))
    }

    /// Refuses `Service/Method`.
    pub fn refuse(&self, method: &str, fault: Fault) -> &Self {
        self.tell(method, Said::Refusal(fault))
    }

    /// What it was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The last message that it was asked.
    pub fn last<M: Message + Default>(&self) -> M {
        let asked = self.asked();
        M::decode(asked.last().unwrap().messages[0].clone()).unwrap()
    }

    fn tell(&self, method: &str, said: Said) -> &Self {
        self.says.lock().unwrap().insert(method.to_owned(), said);
        self
    }

    async fn answer(&self, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let method = parts.uri.path().rsplit('.').next().unwrap_or_default().to_owned();
        let place = self.asked().len();
        self.asked.lock().unwrap().push(Asked { headers: parts.headers, messages: Vec::new(), whole: false });
        let Ok(body) = body.collect().await else { return tonic::Status::cancelled("").into_http() };
        let mut asked = self.asked.lock().unwrap();
        asked[place].messages = messages(body.to_bytes());
        asked[place].whole = true;
        drop(asked);
        let said = self.says.lock().unwrap().get(&method).cloned();
        match said {
            Some(Said::Message(message)) => answered(&message),
            Some(Said::Refusal(fault)) => to_status(&fault).into_http(),
            None => tonic::Status::unimplemented(method).into_http(),
        }
    }
}

fn messages(mut bytes: Bytes) -> Vec<Bytes> {
    let mut messages = Vec::new();
    while bytes.len() >= 5 {
        bytes.advance(1);
        let length = bytes.get_u32() as usize;
        if bytes.len() < length {
            break;
        }
        messages.push(bytes.split_to(length));
    }
    messages
}

fn answered(message: &[u8]) -> Response {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(message.len() as u32);
    framed.put_slice(message);
    let trailers =
        HeaderMap::from_iter([(http::HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"))]);
    let body = Full::new(framed.freeze()).with_trailers(async move { Some(Ok(trailers)) });
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    response
}
