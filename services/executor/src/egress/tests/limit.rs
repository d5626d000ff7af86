//! Bounds of time and size.

use std::time::{Duration, Instant};

use async_compression::tokio::write::{BrotliEncoder, GzipEncoder, ZlibEncoder};
use tokio::io::AsyncWriteExt;

use super::super::{Answered, Failed, Limits, Phase, Sent, send};
use super::upstream::{Step, Upstream, answer};
use super::{egress, get, limits, post};

macro_rules! packed {
    ($encoder:ident, $bytes:expr) => {{
        let mut encoder = $encoder::new(Vec::new());
        encoder.write_all($bytes).await.unwrap();
        encoder.shutdown().await.unwrap();
        encoder.into_inner()
    }};
}

/// One call to an upstream that answers these bytes in this coding.
async fn call(coding: &str, body: Vec<u8>, limits: Limits) -> Result<Answered, Failed> {
    let coding = format!("content-encoding: {coding}\r\n");
    let upstream = Upstream::start(move |_| answer("200 OK", &coding, &body)).await;
    send(&egress(&[&upstream]), get(&upstream.url("/")), limits).await
}

#[tokio::test]
async fn each_coding_is_undone() {
    let text = b"{\"a\":[1,2,3]}".repeat(20);
    let packed = [
        ("gzip", packed!(GzipEncoder, &text)),
        ("X-GZip", packed!(GzipEncoder, &text)),
        ("deflate", packed!(ZlibEncoder, &text)),
        ("br", packed!(BrotliEncoder, &text)),
        ("identity", text.clone()),
    ];
    for (coding, bytes) in packed {
        let sent = bytes.len() as u64;
        let answered = call(coding, bytes, limits()).await.unwrap();
        assert_eq!((answered.body.as_ref(), answered.remote_wire_bytes), (text.as_slice(), sent), "{coding}");
        assert!(!answered.truncated);
    }
}

#[tokio::test]
async fn one_gzip_stream_after_another_is_one_text() {
    let mut bytes = packed!(GzipEncoder, b"one ");
    bytes.extend(packed!(GzipEncoder, b"two"));
    assert_eq!(call("gzip", bytes, limits()).await.unwrap().body.as_ref(), b"one two");
}

#[tokio::test]
async fn a_coding_that_is_unknown_or_broken_is_a_failure() {
    let mut short = packed!(GzipEncoder, &b"some text".repeat(99));
    short.truncate(short.len() / 2);
    let cases = [("zstd", b"x".to_vec()), ("gzip, br", b"x".to_vec()), ("gzip", b"no gzip".to_vec()), ("gzip", short)];
    for (coding, bytes) in cases {
        let failed = call(coding, bytes, limits()).await.unwrap_err();
        assert_eq!((failed.phase, failed.sent), (Phase::Decode, Sent::MayHave), "{coding}");
    }
}

#[tokio::test]
async fn a_long_answer_is_cut_at_its_bound_and_marked() {
    let limits = Limits { max_bytes: 1000, ..limits() };
    let whole = call("identity", vec![b'a'; 1000], limits).await.unwrap();
    assert_eq!((whole.body.len(), whole.truncated), (1000, false));
    let cut = call("identity", vec![b'a'; 1001], limits).await.unwrap();
    assert_eq!((cut.status, cut.body.len(), cut.truncated), (200, 1000, true));
    let packed = call("gzip", packed!(GzipEncoder, &[b'a'; 1001]), limits).await.unwrap();
    assert_eq!((packed.body.len(), packed.truncated), (1000, true));
}

#[tokio::test]
async fn a_bomb_ends_early() {
    let zeros = vec![0; 16 << 20];
    for (coding, bytes) in [("gzip", packed!(GzipEncoder, &zeros)), ("br", packed!(BrotliEncoder, &zeros))] {
        let sent = bytes.len() as u64;
        // The size would allow it: only the ratio ends it.
        let answered = call(coding, bytes, Limits { max_bytes: 16 << 20, ..limits() }).await.unwrap();
        assert!(answered.truncated, "{coding}");
        let bound = (answered.remote_wire_bytes * 100).max(64 << 10) + (16 << 10);
        assert!(answered.body.len() as u64 <= bound, "{coding}: {} of {sent}", answered.body.len());
    }
    let regular = packed!(GzipEncoder, &[b'a'; 60_000]);
    assert!(!call("gzip", regular, limits()).await.unwrap().truncated, "a short text may be as regular as it likes");
}

#[tokio::test]
async fn an_answer_that_never_ends_is_cut() {
    let upstream = Upstream::start(|_| {
        let mut steps = vec![Step::Bytes(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())];
        steps.extend((0..1000).map(|_| Step::Bytes(vec![b'a'; 64 << 10])));
        steps
    })
    .await;
    let answered = send(&egress(&[&upstream]), get(&upstream.url("/")), limits()).await.unwrap();
    assert_eq!((answered.body.len(), answered.truncated), (4 << 20, true));
}

#[tokio::test]
async fn a_stall_ends_at_the_bound_that_it_meets() {
    let head = || Step::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\nbegin".to_vec());
    let upstream = Upstream::start(move |seen| match seen.line.as_str() {
        "POST /head" => vec![Step::Pause(Duration::from_secs(60))],
        "POST /idle" => vec![head(), Step::Pause(Duration::from_secs(60))],
        _ => {
            let mut steps = vec![head()];
            for _ in 0..90 {
                steps.extend([Step::Pause(Duration::from_millis(100)), Step::Bytes(b"a".to_vec())]);
            }
            steps
        }
    })
    .await;
    let egress = egress(&[&upstream]);
    let short = Duration::from_millis(400);
    let cases = [
        ("/head", Limits { head: short, ..limits() }, "began no answer within 400 ms"),
        ("/idle", Limits { idle: short, ..limits() }, "stood still for 400 ms"),
        ("/trickle", Limits { total: short, ..limits() }, "no complete answer within 400 ms"),
    ];
    for (path, limits, says) in cases {
        let began = Instant::now();
        let failed = send(&egress, post(&upstream.url(path), "x"), limits).await.unwrap_err();
        assert_eq!((failed.phase, failed.sent), (Phase::Timeout, Sent::MayHave), "{path}");
        assert!(failed.message.contains(says), "{path}: {failed}");
        assert!(began.elapsed() < Duration::from_secs(3), "{path}");
    }
    let none = send(&egress, get(&upstream.url("/")), Limits { total: Duration::ZERO, ..limits() }).await.unwrap_err();
    assert_eq!((none.phase, none.sent), (Phase::Timeout, Sent::No));
}

#[tokio::test]
async fn a_caller_that_goes_away_ends_the_call() {
    let upstream = Upstream::start(|_| vec![Step::Pause(Duration::from_secs(60))]).await;
    let egress = egress(&[&upstream]);
    let call = send(&egress, get(&upstream.url("/")), limits());
    assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
    assert_eq!(upstream.seen().len(), 1);
}
