//! What goes over the wire, and what is said when it breaks.

use std::time::Duration;

use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::{Outbound, Phase, Policy, Refusal, Sent, send};
use super::upstream::{Step, Upstream, answer, ok};
use super::{egress, get, header, limits, post};

#[tokio::test]
async fn a_connection_is_kept_and_belongs_to_one_secret() {
    let upstream = Upstream::start(|_| ok(b"a")).await;
    let egress = egress(&[&upstream]);
    for secret in [None, None, Some("ONE"), Some("ONE"), Some("TWO"), None] {
        let outbound = Outbound { secret: secret.map(str::to_owned), ..get(&upstream.url("/")) };
        assert_eq!(send(&egress, outbound, limits()).await.unwrap().status, 200);
    }
    let connections: Vec<usize> = upstream.seen().iter().map(|seen| seen.connection).collect();
    assert_eq!(connections, [0, 0, 1, 1, 2, 0]);
}

#[tokio::test]
async fn a_request_says_who_we_are_and_nothing_more() {
    let upstream = Upstream::start(|_| ok(b"")).await;
    let egress = egress(&[&upstream]);
    let headers = vec![header("x-a", "1"), header("user-agent", "someone"), header("x-a", "2")];
    send(&egress, Outbound { headers, ..get(&upstream.url("/p?q=1#f")) }, limits()).await.unwrap();
    let seen = &upstream.seen()[0];
    assert_eq!(seen.line, "GET /p?q=1");
    let mut lines = seen.headers.clone();
    lines.sort();
    let host = format!("host: 127.0.0.1:{}", upstream.port());
    let expected =
        ["accept-encoding: gzip, deflate, br", "accept: */*", &host, "user-agent: callbook/test", "x-a: 1", "x-a: 2"];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn a_body_has_a_length_even_when_it_is_empty() {
    let upstream = Upstream::start(|_| ok(b"")).await;
    let egress = egress(&[&upstream]);
    send(&egress, post(&upstream.url("/"), "{\"a\":1}"), limits()).await.unwrap();
    send(&egress, Outbound { body: None, ..post(&upstream.url("/"), "") }, limits()).await.unwrap();
    let seen = upstream.seen();
    assert_eq!((seen[0].header("content-length"), seen[0].body.as_slice()), (Some("7"), b"{\"a\":1}".as_slice()));
    assert_eq!(seen[1].header("content-length"), Some("0"));
}

#[tokio::test]
async fn few_headers_of_the_answer_are_kept() {
    let upstream = Upstream::start(|_| {
        let headers = "Content-Type: Text/Plain; charset=\"ISO-8859-1\"\r\nETag: \"x\"\r\nRetry-After: 7\r\n\
            X-RateLimit-Remaining: 3\r\nRateLimit: \"default\";r=50\r\nSet-Cookie: a=b\r\nServer: s\r\nX-Request-Id: 9\r\n";
        answer("429 Slow", headers, b"caf\xe9")
    })
    .await;
    let answered = send(&egress(&[&upstream]), get(&upstream.url("/")), limits()).await.unwrap();
    assert_eq!(answered.status, 429);
    assert_eq!(answered.media_type.as_deref(), Some("text/plain"));
    assert_eq!(super::super::text(&answered).unwrap(), "café");
    assert_eq!((answered.remote_wire_bytes, answered.truncated), (4, false));
    let names: Vec<&str> = answered.kept_headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-type", "etag", "retry-after", "x-ratelimit-remaining", "ratelimit"]);
}

#[tokio::test]
async fn an_answer_without_a_body_is_an_answer() {
    let upstream = Upstream::start(|seen| match seen.line.as_str() {
        "HEAD /" => {
            vec![Step::Bytes(b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 9\r\n\r\n".to_vec())]
        }
        "GET /204" => vec![Step::Bytes(b"HTTP/1.1 204 No\r\ncontent-encoding: zstd\r\n\r\n".to_vec())],
        _ => answer("200 OK", "content-encoding: br\r\n", b""),
    })
    .await;
    let egress = egress(&[&upstream]);
    let head = Outbound { method: Method::HEAD, ..get(&upstream.url("/")) };
    for outbound in [head, get(&upstream.url("/204")), get(&upstream.url("/"))] {
        let answered = send(&egress, outbound, limits()).await.unwrap();
        assert!(answered.body.is_empty() && !answered.truncated);
    }
}

#[tokio::test]
async fn a_hang_up_is_a_failure_that_may_have_been_seen_and_is_not_tried_again() {
    let upstream = Upstream::start(|seen| match seen.line.split('?').next().unwrap() {
        "POST /half" => vec![Step::Bytes(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec()), Step::HangUp],
        "POST /noise" => vec![Step::Bytes(b"\x00\x01 not http\r\n\r\n".to_vec()), Step::HangUp],
        "POST /fine" => ok(b""),
        _ => vec![Step::HangUp],
    })
    .await;
    let egress = egress(&[&upstream]);
    for path in ["/gone", "/half", "/noise"] {
        send(&egress, post(&upstream.url("/fine"), "x"), limits()).await.unwrap();
        let before = upstream.seen().len();
        let url = upstream.url(&format!("{path}?token=hunter2"));
        let failed = send(&egress, post(&url, "x"), limits()).await.unwrap_err();
        assert_eq!((failed.phase, failed.sent), (Phase::Head, Sent::MayHave), "{path}");
        assert!(!failed.message.contains("hunter2"), "{failed}");
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(upstream.seen().len(), before + 1, "{path}");
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_replaced() {
    let upstream = Upstream::start(|_| {
        let mut steps = ok(b"a");
        steps.push(Step::HangUp);
        steps
    })
    .await;
    let egress = egress(&[&upstream]);
    for _ in 0..3 {
        send(&egress, post(&upstream.url("/"), "x"), limits()).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(upstream.seen().len(), 3);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_a_failure() {
    let upstream = Upstream::start(|seen| {
        let head: &[u8] = match seen.line.as_str() {
            "GET /length" => b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf",
            _ => b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhalf",
        };
        vec![Step::Bytes(head.to_vec()), Step::HangUp]
    })
    .await;
    let egress = egress(&[&upstream]);
    for path in ["/length", "/chunked"] {
        let failed = send(&egress, get(&upstream.url(path)), limits()).await.unwrap_err();
        assert_eq!((failed.phase, failed.sent), (Phase::Body, Sent::MayHave), "{path}");
    }
}

/// A listener that says something to whoever comes, whatever they say, and hangs up.
async fn says(bytes: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut hello = [0; 4096];
            let _ = socket.read(&mut hello).await;
            let _ = socket.write_all(bytes).await;
        }
    });
    origin
}

#[tokio::test]
async fn no_connection_and_no_trust_mean_that_nothing_was_sent() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let (plain, silent) = (says(b"HTTP/1.1 400 Bad Request\r\n\r\n").await, says(b"").await);
    let policy = Policy::parse(&format!("{closed},{plain},{silent}")).unwrap();
    let egress = super::super::Egress::new(policy, "test");
    for (origin, phase) in [(closed, Phase::Connect), (plain, Phase::Tls), (silent, Phase::Tls)] {
        let failed = send(&egress, post(&format!("{origin}/p?token=hunter2"), "x"), limits()).await.unwrap_err();
        assert_eq!((failed.phase, failed.sent), (phase, Sent::No), "{failed:?}");
        assert!(failed.message.contains(&origin) && !failed.message.contains("hunter2"), "{failed:?}");
    }
}

#[tokio::test]
async fn what_frames_or_routes_a_message_is_not_the_rows_to_set() {
    let upstream = Upstream::start(|_| ok(b"")).await;
    let egress = egress(&[&upstream]);
    let set = |name| Outbound { headers: vec![header(name, "chunked")], ..post(&upstream.url("/"), "x") };
    for name in ["host", "transfer-encoding", "content-length", "connection", "upgrade", "expect"] {
        let failed = send(&egress, set(name), limits()).await.unwrap_err();
        assert_eq!((failed.phase, failed.sent), (Phase::Refused(Refusal::Header), Sent::No), "{name}");
    }
    for method in [Method::CONNECT, Method::TRACE] {
        let failed = send(&egress, Outbound { method, ..get(&upstream.url("/")) }, limits()).await.unwrap_err();
        assert_eq!(failed.phase, Phase::Refused(Refusal::Method));
    }
    let outside = get("http://127.0.0.1:1/");
    assert_eq!(send(&egress, outside, limits()).await.unwrap_err().phase, Phase::Refused(Refusal::Scheme));
    assert!(upstream.seen().is_empty());
}

#[test]
fn debug_texts_hold_no_secret() {
    let outbound = Outbound {
        headers: vec![header("authorization", "Bearer hunter2")],
        ..post("https://api.example.com/hunter2?token=hunter2", "hunter2")
    };
    assert!(!format!("{outbound:?}").contains("hunter2"));
}
