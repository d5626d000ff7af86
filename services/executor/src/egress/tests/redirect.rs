//! Redirects: followed by us, within one origin, and never with a write.

use http::Method;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::super::{Egress, Outbound, Phase, Policy, Redirects, Sent, send};
use super::upstream::{Step, Upstream, answer, ok};
use super::{egress, get, header, limits, post};

/// Follows; carries a credential, to see whether it survives and where it goes.
fn following(url: &str) -> Outbound {
    let headers = vec![header("authorization", "Bearer hunter2"), header("x-row", "1")];
    Outbound { redirects: Redirects::SameOrigin, headers, ..get(url) }
}

fn to(location: &str) -> Vec<Step> {
    answer("302 Found", &format!("location: {location}\r\n"), b"")
}

fn lines(upstream: &Upstream) -> Vec<String> {
    upstream.seen().into_iter().map(|seen| seen.line).collect()
}

#[tokio::test]
async fn headers_survive_within_an_origin() {
    let upstream = Upstream::start(|seen| match seen.line.as_str() {
        "GET /a" => answer("301 Moved", "location: /b?x=1\r\n", b"moved"),
        "GET /b?x=1" => answer("308 Moved", "location: c\r\n", b""),
        _ => ok(b"here"),
    })
    .await;
    let answered = send(&egress(&[&upstream]), following(&upstream.url("/a")), limits()).await.unwrap();
    assert_eq!((answered.status, answered.body.as_ref()), (200, b"here".as_slice()));
    assert_eq!(lines(&upstream), ["GET /a", "GET /b?x=1", "GET /c"]);
    for seen in upstream.seen() {
        assert_eq!((seen.header("authorization"), seen.header("x-row")), (Some("Bearer hunter2"), Some("1")));
        assert_eq!((seen.header("user-agent"), seen.header("referer")), (Some("callbook/test"), None));
    }
}

#[tokio::test]
async fn a_redirect_is_the_answer_unless_the_row_follows() {
    let upstream = Upstream::start(|_| to("/b")).await;
    let answered = send(&egress(&[&upstream]), get(&upstream.url("/a")), limits()).await.unwrap();
    assert_eq!(answered.status, 302);
    assert_eq!(lines(&upstream), ["GET /a"]);
}

#[tokio::test]
async fn another_origin_is_never_followed() {
    let other = Upstream::start(|_| ok(b"stolen")).await;
    let theirs = other.port();
    let upstream = Upstream::start(move |seen| match seen.line.as_str() {
        "GET /port" => to(&format!("http://127.0.0.1:{theirs}/steal")),
        "GET /relative" => to(&format!("//127.0.0.1:{theirs}/steal")),
        "GET /scheme" => to("file:///etc/passwd"),
        "GET /userinfo" => to(&format!("http://a:b@127.0.0.1:{theirs}/")),
        "GET /backslash" => to(&format!("/\\127.0.0.1:{theirs}/")),
        "GET /metadata" => to("http://169.254.169.254/latest/"),
        "GET /none" => answer("302 Found", "", b""),
        _ => ok(b"here"),
    })
    .await;
    // The other origin is an allowed one too, and still another.
    let egress = egress(&[&upstream, &other]);
    for path in ["/port", "/relative", "/scheme", "/userinfo", "/backslash", "/metadata", "/none"] {
        let answered = send(&egress, following(&upstream.url(path)), limits()).await.unwrap();
        assert_eq!(answered.status, 302, "{path}");
    }
    assert!(other.seen().is_empty());
    assert_eq!(upstream.seen().len(), 7);
}

#[tokio::test]
async fn a_write_is_never_sent_to_a_second_place() {
    let upstream = Upstream::start(|seen| match seen.line.split_once("/").unwrap().1 {
        "" => answer("307 Moved", "location: /next\r\n", b""),
        _ => ok(b"here"),
    })
    .await;
    let egress = egress(&[&upstream]);
    for method in [Method::POST, Method::PUT, Method::PATCH, Method::DELETE] {
        let outbound = Outbound { method, redirects: Redirects::SameOrigin, ..post(&upstream.url("/"), "x") };
        assert_eq!(send(&egress, outbound, limits()).await.unwrap().status, 307);
    }
    assert_eq!(upstream.seen().len(), 4);
    let head = Outbound { method: Method::HEAD, ..following(&upstream.url("/")) };
    assert_eq!(send(&egress, head, limits()).await.unwrap().status, 200);
}

#[tokio::test]
async fn a_ring_of_redirects_ends_after_five() {
    let upstream = Upstream::start(|_| to("/again")).await;
    let answered = send(&egress(&[&upstream]), following(&upstream.url("/")), limits()).await.unwrap();
    assert_eq!((answered.status, upstream.seen().len()), (302, 6));
}

#[tokio::test]
async fn a_failure_after_a_redirect_may_have_been_seen() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        drop(listener);
        let _ = socket.read(&mut [0; 4096]).await;
        let _ = socket.write_all(b"HTTP/1.1 302 Found\r\nlocation: /gone\r\nconnection: close\r\n\r\n").await;
    });
    let egress = Egress::new(Policy::parse(&origin).unwrap(), "test");
    let failed = send(&egress, following(&format!("{origin}/")), limits()).await.unwrap_err();
    assert_eq!((failed.phase, failed.sent), (Phase::Connect, Sent::MayHave));
}
