use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use callbook_domain::fault::{Fault, Reason};
use callbook_gateway::{Config, router};
use callbook_wire::executor::v1 as executor;
use callbook_wire::resolver::v1 as resolver;
use http::Uri;
use serde_json::Value;

use crate::client::{gateway, get, post, send};
use crate::fake::Fake;

/// An address where nobody listens.
async fn closed() -> Uri {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap()).parse().unwrap()
}

/// A server that takes the first bytes of a call and goes away.
async fn breaking() -> (Uri, Arc<AtomicUsize>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
    let taken = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&taken);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let mut bytes = vec![0; 4096];
            // An empty SETTINGS frame makes the client believe, so that it sends the request.
            let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, &[0, 0, 0, 4, 0, 0, 0, 0, 0]).await;
            while let Ok(read) = tokio::io::AsyncReadExt::read(&mut stream, &mut bytes).await {
                if read == 0 || bytes[..read].windows(6).any(|part| part == b"Invoke") || read > 200 {
                    break;
                }
            }
        }
    });
    (uri, taken)
}

fn ran() -> executor::InvokeResponse {
    let proof = executor::Proof { invocation_id: "inv_1".into(), ..executor::Proof::default() };
    executor::InvokeResponse {
        answer: Some(executor::Answer { ok: true, ran: true, proof: Some(proof), ..executor::Answer::default() }),
    }
}

#[tokio::test]
async fn the_credential_the_deadline_and_the_id_go_on_unchanged() {
    let fake = Fake::default();
    fake.say("ResolverService/GetStamp", &resolver::GetStampResponse::default());
    let headers = [
        ("authorization", "Bearer  cbk_1"),
        ("x-terminal-key", "k"),
        ("x-request-id", "r-1"),
        ("x-deadline-ms", "1500"),
        ("cookie", "a=b"),
        ("x-forwarded-for", "1.2.3.4"),
    ];
    let answer = send(&gateway(&fake).await, "GET", "/api/directory:stamp", &headers, Body::empty()).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let asked = fake.asked()[0].headers.clone();
    let value = |name: &str| asked.get(name).map(|value| value.to_str().unwrap().to_owned());
    assert_eq!(value("authorization").as_deref(), Some("Bearer  cbk_1"));
    assert_eq!(value("x-terminal-key").as_deref(), Some("k"));
    assert_eq!(value("x-request-id").as_deref(), Some("r-1"));
    let timeout = value("grpc-timeout").unwrap();
    let micros: u64 = timeout.trim_end_matches('u').parse().unwrap();
    assert!((1_000_000..=1_500_000).contains(&micros), "{timeout}");
    assert_eq!((value("cookie"), value("x-forwarded-for")), (None, None));
}

#[tokio::test]
async fn a_deadline_is_a_number_and_has_a_bound() {
    let fake = Fake::default();
    fake.say("ResolverService/GetStamp", &resolver::GetStampResponse::default());
    let gateway = gateway(&fake).await;
    for bad in ["0", "-1", "soon", ""] {
        let answer = send(&gateway, "GET", "/api/directory:stamp", &[("x-deadline-ms", bad)], Body::empty()).await;
        assert_eq!((answer.status.as_u16(), answer.json()["field"].as_str()), (400, Some("x-deadline-ms")), "{bad}");
    }
    send(&gateway, "GET", "/api/directory:stamp", &[("x-deadline-ms", "99999999999")], Body::empty()).await;
    let timeout = fake.asked().last().unwrap().headers["grpc-timeout"].to_str().unwrap().to_owned();
    let most = if timeout.ends_with('m') { 600_000 } else { 600_000_000 };
    assert!(timeout.trim_end_matches(['m', 'u']).parse::<u64>().unwrap() <= most, "{timeout}");
}

#[tokio::test]
async fn two_credentials_of_one_kind_are_refused() {
    let headers = [("authorization", "Bearer a"), ("authorization", "Bearer b")];
    let answer = send(&gateway(&Fake::default()).await, "GET", "/api/directory:stamp", &headers, Body::empty()).await;
    assert_eq!(answer.status, 400);
}

#[tokio::test]
async fn a_read_goes_to_whoever_can_be_reached() {
    let fake = Fake::default();
    fake.say("ResolverService/GetStamp", &resolver::GetStampResponse::default());
    let mut config = Config::at(fake.start().await);
    config.resolver.extend([closed().await, breaking().await.0]);
    let gateway = router(config).unwrap();
    for _ in 0..12 {
        assert_eq!(get(&gateway, "/api/directory:stamp").await.status, 200);
    }
}

#[tokio::test]
async fn an_invocation_goes_elsewhere_only_where_no_connection_came_about() {
    let fake = Fake::default();
    fake.say("ExecutorService/Invoke", &ran());
    let mut config = Config::at(closed().await);
    config.executors.push(("default".into(), fake.start().await));
    let gateway = router(config).unwrap();
    for _ in 0..6 {
        assert_eq!(post(&gateway, "/api/dispatch", r#"{"key":"NOW"}"#).await.status, 200);
    }
    assert_eq!(fake.asked().len(), 6);
}

#[tokio::test]
async fn an_invocation_that_may_have_been_taken_is_not_sent_again_and_never_called_not_run() {
    let fake = Fake::default();
    fake.say("ExecutorService/Invoke", &ran());
    let (uri, taken) = breaking().await;
    let mut config = Config::at(uri);
    config.executors.push(("other".into(), fake.start().await));
    let answer = post(&router(config).unwrap(), "/api/dispatch", r#"{"key":"NOW"}"#).await;
    assert_eq!((answer.status.as_u16(), taken.load(Ordering::SeqCst)), (503, 1), "{}", answer.text);
    assert_eq!(answer.json()["ran"], Value::Null);
    assert!(fake.asked().is_empty());
}

#[tokio::test]
async fn a_row_of_another_pool_is_sent_there() {
    let (first, other) = (Fake::default(), Fake::default());
    let refusal =
        Fault::new(Reason::NoExecutorForPool, "no executor of this pool here").detail("gpu").with("pool", "gpu");
    first.refuse("ExecutorService/Invoke", refusal);
    other.say("ExecutorService/Invoke", &ran());
    let mut config = Config::at(first.start().await);
    let alone = router(config.clone()).unwrap();
    config.executors.push(("gpu".into(), other.start().await));
    let both = router(config).unwrap();
    assert_eq!(post(&both, "/api/dispatch", r#"{"key":"NOW"}"#).await.status, 200);
    assert_eq!((first.asked().len(), other.asked().len()), (1, 1));
    let answer = post(&alone, "/api/dispatch", r#"{"key":"NOW"}"#).await;
    assert_eq!((answer.status.as_u16(), answer.json()["error"].as_str()), (503, Some("no_executor_for_pool:gpu")));
    assert_eq!(answer.json()["ran"], false);
}

#[tokio::test]
async fn nobody_who_answers_is_a_problem_and_not_ready() {
    let gateway = router(Config::at(closed().await)).unwrap();
    let answer = get(&gateway, "/api/dispatch?ask=time").await;
    assert_eq!((answer.status.as_u16(), answer.json()["ran"].clone()), (503, Value::Bool(false)), "{}", answer.text);
    assert_eq!(answer.json()["error"], "service_unavailable");
    let ready = get(&gateway, "/readyz").await;
    assert_eq!((ready.status.as_u16(), ready.json()["resolver"].as_str()), (503, Some("unreachable")));
    assert_eq!(get(&gateway, "/healthz").await.json()["ok"], true);
}

#[tokio::test]
async fn a_resolver_that_serves_makes_the_process_ready() {
    let fake = Fake::default();
    let serving = tonic_health::pb::HealthCheckResponse { status: 1 };
    fake.say("Health/Check", &serving);
    let ready = get(&gateway(&fake).await, "/readyz").await;
    assert_eq!((ready.status.as_u16(), ready.json()["ready"].as_bool()), (200, Some(true)), "{}", ready.text);
}
