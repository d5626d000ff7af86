//! A stand-in for an upstream: an HTTP/1.1 server on loopback whose answers are bytes, pauses and hang-ups.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What it does after a request, in order. It then waits for the next request.
pub(super) enum Step {
    Bytes(Vec<u8>),
    Pause(Duration),
    HangUp,
}

/// A request as it came in.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// `GET /path`
    pub(super) line: String,
    /// Header lines, in lower case up to the colon.
    pub(super) headers: Vec<String>,
    pub(super) body: Vec<u8>,
    /// Counts the connections from 0.
    pub(super) connection: usize,
}

impl Seen {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

pub(super) struct Upstream {
    port: u16,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Upstream {
    pub(super) async fn start(answer: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&seen), Arc::new(answer));
        tokio::spawn(async move {
            for connection in 0.. {
                let Ok((socket, _)) = listener.accept().await else { return };
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                tokio::spawn(async move { serve(socket, connection, &log, &*answer).await });
            }
        });
        Upstream { port, seen }
    }

    pub(super) fn origin(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.origin())
    }

    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// A whole answer with a length.
pub(super) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<Step> {
    let mut bytes = format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    vec![Step::Bytes(bytes)]
}

pub(super) fn ok(body: &[u8]) -> Vec<Step> {
    answer("200 OK", "", body)
}

async fn serve(
    mut socket: TcpStream,
    connection: usize,
    log: &Mutex<Vec<Seen>>,
    answer: &(dyn Fn(&Seen) -> Vec<Step> + Send + Sync),
) {
    while let Some(seen) = read(&mut socket, connection).await {
        log.lock().unwrap().push(seen.clone());
        for step in answer(&seen) {
            match step {
                Step::Bytes(bytes) => {
                    if socket.write_all(&bytes).await.is_err() {
                        return;
                    }
                }
                Step::Pause(time) => tokio::time::sleep(time).await,
                Step::HangUp => return,
            }
        }
    }
}

async fn read(socket: &mut TcpStream, connection: usize) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(": ").unwrap_or((line, ""));
        format!("{}: {value}", name.to_ascii_lowercase())
    });
    let mut seen = Seen { line, headers: headers.collect(), body: bytes.split_off(end + 4), connection };
    let length = seen.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while seen.body.len() < length {
        socket.read_buf(&mut seen.body).await.ok().filter(|read| *read > 0)?;
    }
    Some(seen)
}
