//! I4: what may have reached an upstream is not sent to it a second time, whatever became of the answer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use callbook_tests::book;
use callbook_tests::world::World;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// What an upstream does once it has read a request.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Hangs up.
    Close,
    /// Hangs up so that the other side sees an error.
    Reset,
    /// Sends the head and a part of the body, and hangs up.
    Half,
    /// Answers with something that is no HTTP.
    Nonsense,
    /// Answers the first request of a connection, and hangs up after the second.
    SecondTime,
    /// Answers, and hangs up a moment later although it said that it would not.
    Later,
}

const FINE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}";

/// An upstream by hand, and how many requests it has read.
async fn upstream(then: Then) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let read = Arc::new(AtomicUsize::new(0));
    let count = read.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, then, count.clone()));
        }
    });
    (origin, read)
}

async fn serve(mut stream: TcpStream, then: Then, count: Arc<AtomicUsize>) {
    for turn in 0.. {
        let mut request = Vec::new();
        while !request.windows(4).any(|end| end == b"\r\n\r\n") {
            let mut piece = [0; 1_024];
            match stream.read(&mut piece).await {
                Ok(0) | Err(_) => return,
                Ok(length) => request.extend_from_slice(&piece[..length]),
            }
        }
        count.fetch_add(1, Ordering::SeqCst);
        let answer: &[u8] = match then {
            Then::Close => return,
            Then::Reset => return stream.set_zero_linger().unwrap(),
            Then::Half => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"half\":",
            Then::Nonsense => b"220 mail.example ESMTP\r\n\r\n",
            Then::SecondTime if turn == 1 => return,
            Then::SecondTime | Then::Later => FINE,
        };
        stream.write_all(answer).await.unwrap();
        match then {
            Then::SecondTime => {}
            Then::Later => tokio::time::sleep(Duration::from_millis(30)).await,
            Then::Close | Then::Reset | Then::Half | Then::Nonsense => return,
        }
        if matches!(then, Then::Later) {
            return;
        }
    }
}

#[tokio::test]
async fn i4_a_request_without_a_whole_answer_is_not_sent_again_and_a_write_is_not_called_retryable() {
    for then in [Then::Close, Then::Reset, Then::Half, Then::Nonsense] {
        let (origin, read) = upstream(then).await;
        let world = World::with().allow(std::slice::from_ref(&origin)).start().await;
        world.create(&book::http("WRITE", &format!("POST {origin}/$1"), "$1=word", "")).await;
        world.create(&book::http("READ", &format!("GET {origin}/$1"), "$1=word", "")).await;
        for (key, retryable) in [("WRITE", false), ("READ", true)] {
            read.store(0, Ordering::SeqCst);
            let answer = world.invoke(key, "a").await;
            let error = answer.json()["error"].clone();
            assert_eq!((answer.status, &error["code"]), (200, &json!("http:fetch")), "{then:?} {key}: {}", answer.text);
            assert_eq!((&error["retryable"], read.load(Ordering::SeqCst)), (&json!(retryable), 1), "{then:?} {key}");
        }
        world.stop().await;
    }
}

#[tokio::test]
async fn i4_a_write_on_a_connection_that_was_kept_is_not_sent_again_when_it_breaks() {
    let (origin, read) = upstream(Then::SecondTime).await;
    let world = World::with().allow(std::slice::from_ref(&origin)).start().await;
    world.create(&book::http("WRITE", &format!("POST {origin}/$1"), "$1=word", "")).await;
    assert_eq!(world.invoke("WRITE", "a").await.json()["ok"], true);
    let broken = world.invoke("WRITE", "b").await;
    assert_eq!((&broken.json()["ok"], read.load(Ordering::SeqCst)), (&json!(false), 2), "{}", broken.text);
    assert_eq!(broken.json()["error"]["retryable"], false, "{}", broken.text);
    world.stop().await;
}

#[tokio::test]
async fn a_connection_that_the_upstream_closed_meanwhile_costs_no_call() {
    let (origin, read) = upstream(Then::Later).await;
    let world = World::with().allow(std::slice::from_ref(&origin)).start().await;
    world.create(&book::http("WRITE", &format!("POST {origin}/$1"), "$1=word", "")).await;
    for _ in 0..5 {
        let answer = world.invoke("WRITE", "a").await;
        assert_eq!(answer.json()["ok"], true, "{}", answer.text);
        tokio::time::sleep(Duration::from_millis(60)).await;
    }
    assert_eq!(read.load(Ordering::SeqCst), 5);
    world.stop().await;
}
