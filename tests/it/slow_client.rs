//! Clients that dawdle, break off or send half of something.

use std::time::{Duration, Instant};

use callbook_tests::world::{World, send};
use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

fn address(world: &World) -> &str {
    world.http.trim_start_matches("http://")
}

#[tokio::test]
async fn a_head_that_never_ends_is_given_up_and_nobody_else_waits() {
    let world = World::start().await;
    let mut slow = Vec::new();
    let mut silent = TcpStream::connect(address(&world)).await.unwrap();
    let mut stuck = TcpStream::connect(address(&world)).await.unwrap();
    stuck.write_all(b"PRI * HTTP/2").await.unwrap();
    for _ in 0..50 {
        let mut stream = TcpStream::connect(address(&world)).await.unwrap();
        stream.write_all(b"GET /api/dispatch HTTP/1.1\r\nhost: x\r\nx-half: ").await.unwrap();
        slow.push(stream);
    }
    assert_eq!(send(world.anyone(Method::GET, "/api/dispatch")).await.status, 200);
    let began = Instant::now();
    let mut answer = Vec::new();
    for stream in [&mut slow[0], &mut silent, &mut stuck] {
        answer.clear();
        tokio::time::timeout(Duration::from_secs(25), stream.read_to_end(&mut answer)).await.unwrap().ok();
    }
    assert!(began.elapsed() < Duration::from_secs(20), "given up after {:?}", began.elapsed());
    world.stop().await;
}

/// Whoever keeps connections keeps them for a minute or so, and takes it that they are there.
#[tokio::test]
async fn a_connection_that_rests_longer_than_a_head_may_take_is_there_for_the_next_request() {
    let world = World::start().await;
    let mut stream = TcpStream::connect(address(&world)).await.unwrap();
    for rest in [0, 20] {
        tokio::time::sleep(Duration::from_secs(rest)).await;
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n").await.unwrap();
        let mut answer = [0; 15];
        stream.read_exact(&mut answer).await.unwrap();
        assert_eq!(&answer, b"HTTP/1.1 200 OK");
        let mut more = [0; 4096];
        assert!(stream.read(&mut more).await.unwrap() > 0);
    }
    // once it has begun, its head has to hurry as the first one had
    stream.write_all(b"GET /healthz HTTP/1.1\r\nx-half: ").await.unwrap();
    let began = Instant::now();
    let end = tokio::time::timeout(Duration::from_secs(25), stream.read_to_end(&mut Vec::new())).await;
    assert!(end.is_ok() && began.elapsed() < Duration::from_secs(20), "given up after {:?}", began.elapsed());
    world.stop().await;
}

#[tokio::test]
async fn half_a_body_is_no_request() {
    let world = World::start().await;
    let mut stream = TcpStream::connect(address(&world)).await.unwrap();
    let head = "POST /api/directory HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 500\r\n";
    let key = format!("x-terminal-key: {}\r\n\r\n", callbook_tests::world::OWNER);
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(key.as_bytes()).await.unwrap();
    stream
        .write_all(b"{\"key\":\"HALF\",\"type\":\"fn\",\"target\":\"now\",\"content\":\"# WHAT: x\\n# EX: ")
        .await
        .unwrap();
    drop(stream);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.get("/api/directory/HALF").await.status, 404);
    world.stop().await;
}
