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
