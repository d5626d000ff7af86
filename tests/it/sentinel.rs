//! I5: a secret is found nowhere. Its upstream sends it back in every spelling, and afterwards everything that the
//! product answered, stored, logged, counted and traced is looked through.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use callbook_tests::book::{http, with};
use callbook_tests::door::{Answer, send};
use callbook_tests::dump::dump;
use callbook_tests::process::Process;
use callbook_tests::secrets::Secrets;
use callbook_tests::upstream::{Seen, Upstream};
use callbook_tests::world::{OWNER, World};
use callbook_tests::{database, spelling};
use reqwest::Method;
use serde_json::{Value, json};

const TOKEN: &str = "Tk\"n\\7f/Q+z=W&y%41 sntl-bearer-0q1w";
const USER: &str = "us/er=Q-sntl-user-5t6y7u";
const PASS: &str = "p@ss:w\"rd\\ /+sntl-pass-3e4r";
const HEADER: &str = "h&d?r#<x>\"\\ sntl-header-9o0p";
const QUERY: &str = "q=u&e%r/y+ \"\\sntl-query-8i9o";
const PLAIN: &str = "plainsntl0123456789abcdefghij";
const SECRETS: [(&str, &str); 6] =
    [("TOKEN", TOKEN), ("USER", USER), ("PASS", PASS), ("HEADER", HEADER), ("QUERY", QUERY), ("PLAIN", PLAIN)];
const FORMS: [(&str, &str); 6] = [
    ("BEARER", "bearer:TOKEN"),
    ("BASIC", "basic:USER:PASS"),
    ("BASIC_USER", "basic:USER"),
    ("HEADERS", "headers:{\"X-Key\":\"$HEADER\",\"X-Other\":\"pre-${TOKEN}-post\"}"),
    ("QUERY", "query:key=QUERY"),
    ("PLAIN", "bearer:PLAIN"),
];

fn text(status: u16, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).header("content-type", "text/plain").body(body.into()).unwrap()
}

/// What came in, as an upstream with a debug page would show it, or every secret in the spelling that the path names.
fn reflect(seen: &Seen) -> Response<Body> {
    let path = seen.target.split('?').next().unwrap().trim_start_matches('/');
    let everything = || {
        let headers: Vec<String> = seen
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", String::from_utf8_lossy(value.as_bytes())))
            .collect();
        format!("{} {}\n{}", seen.method, seen.target, headers.join("\n"))
    };
    match path.split_once('/').unwrap_or((path, "")) {
        ("spelling", number) => {
            let number: usize = number.parse().unwrap();
            let spelled: Vec<String> =
                SECRETS.iter().map(|(_, secret)| spelling::all(secret)[number].1.clone()).collect();
            text(200, spelled.join(" | "))
        }
        ("error", status) => text(status.parse().unwrap(), everything()),
        ("json", _) => Response::builder()
            .header("content-type", "application/json")
            .body(Body::from(json!({"asked": everything()}).to_string()))
            .unwrap(),
        ("headers", _) => Response::builder()
            .header("etag", format!("\"{PLAIN}\""))
            .header("retry-after", TOKEN)
            .header("x-ratelimit-remaining", QUERY)
            .header("set-cookie", PASS)
            .header("x-other", HEADER)
            .header("content-type", format!("text/x-{PLAIN}; charset=utf-8; note=\"{USER}\""))
            .body(Body::from("x"))
            .unwrap(),
        ("moved", _) => Response::builder()
            .status(302)
            .header("location", format!("https://example.com/?{}", seen.target))
            .body(Body::from(everything()))
            .unwrap(),
        ("binary", _) => text(200, [&[0xff, 0x00][..], everything().as_bytes(), TOKEN.as_bytes(), &[0xfe]].concat()),
        ("cut", _) => text(200, format!("{}{TOKEN}", "x".repeat(1_000 - TOKEN.len() + 4))),
        ("cutjson", _) => {
            text(200, format!("{}{}", "x".repeat(1_000 - TOKEN.len()), serde_json::to_string(TOKEN).unwrap()))
        }
        _ => text(200, everything()),
    }
}

/// Everything that a caller, an owner and a stranger can see of a call.
async fn look_at(process: &Process, key: &str, seen: &mut Vec<u8>) {
    let called = process.invoke(key, "").await;
    assert_eq!((called.status, &called.json()["ran"]), (200, &json!(true)), "{key}: {}", called.text);
    let id = called.id();
    let shaped = process.post("/api/dispatch", &json!({"key": key, "body": "", "shape": true})).await;
    let looks = [
        process.get(&format!("/api/dispatch?receipt={id}")).await,
        process.get(&format!("/api/dispatch?confirm={id}")).await,
        process.get(&format!("/receipt/{id}")).await,
        process.get(&format!("/api/dispatch?key={key}&format=markdown")).await,
        process.get(&format!("/api/directory/{key}")).await,
        process.get(&format!("/api/directory/{key}/test")).await,
    ];
    for answer in [called, shaped].iter().chain(&looks) {
        keep(answer, seen);
    }
}

fn keep(answer: &Answer, seen: &mut Vec<u8>) {
    for (name, value) in &answer.headers {
        seen.extend_from_slice(name.as_str().as_bytes());
        seen.extend_from_slice(value.as_bytes());
    }
    seen.extend_from_slice(answer.text.as_bytes());
    decode(&answer.json(), seen);
}

/// What stands in base64 fields, as the bytes that it stands for.
fn decode(value: &Value, seen: &mut Vec<u8>) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(text)) = fields.get("base64") {
                seen.extend_from_slice(&data_encoding::BASE64.decode(text.as_bytes()).unwrap());
            }
            fields.values().for_each(|value| decode(value, seen));
        }
        Value::Array(items) => items.iter().for_each(|value| decode(value, seen)),
        Value::String(text) => seen.extend_from_slice(text.as_bytes()),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

struct Stage {
    process: Process,
    upstream: Upstream,
    collector: Upstream,
    database_url: String,
    _secrets: Secrets,
}

async fn stage() -> Stage {
    let upstream = Upstream::start(reflect).await;
    let collector = Upstream::start(|_| {
        Response::builder()
            .header("content-type", "application/grpc")
            .header("grpc-status", "0")
            .body(Body::empty())
            .unwrap()
    })
    .await;
    let secrets = Secrets::bound_to(&upstream.origin(), &SECRETS);
    let database_url = database::fresh().await;
    let nobody = format!("http://127.0.0.1:{}", callbook_tests::process::free_port());
    let origins = SECRETS.iter().map(|(name, _)| format!("{name}={nobody}")).collect::<Vec<_>>().join(",");
    let environment = [
        ("DATABASE_URL", database_url.as_str()),
        ("RUST_LOG", "trace"),
        ("CALLBOOK_SECRETS_DIR", secrets.folder().to_str().unwrap()),
        ("CALLBOOK_SECRET_ORIGINS", &format!("{},{origins}", secrets.origins())),
        ("CALLBOOK_ALLOW_ORIGINS", &format!("{},{nobody}", upstream.origin())),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.origin()),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ]
    .map(|(name, value)| (name, value.to_owned()));
    let environment: Vec<(&str, &str)> = environment.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let process = Process::start(&["up"], &environment);
    let row = |key: String, target: String, auth: &str| {
        with(http(&key, &target, "none", ""), &json!({"auth": auth, "max_response_bytes": 1_000_000}))
    };
    for (name, auth) in FORMS {
        for path in ["echo", "json", "error/401", "error/500", "moved"] {
            let key = format!("{name}_{}", path.replace('/', "_").to_uppercase());
            process.create(&row(key, format!("GET {}/{path}", upstream.origin()), auth)).await;
        }
        process.create(&row(format!("{name}_NOBODY"), format!("GET {nobody}/x"), auth)).await;
    }
    for path in ["headers", "binary", "cut", "cutjson"] {
        let target = format!("GET {}/{path}", upstream.origin());
        process
            .create(&with(row(path.to_uppercase(), target, FORMS[0].1), &json!({"max_response_bytes": 1_000})))
            .await;
    }
    for number in 0..spelling::all("x").len() {
        process
            .create(&row(
                format!("SPELLED_{number}"),
                format!("GET {}/spelling/{number}", upstream.origin()),
                FORMS[0].1,
            ))
            .await;
    }
    Stage { process, upstream, collector, database_url, _secrets: secrets }
}

fn assert_clean(place: &str, bytes: &[u8]) {
    if let Some(found) = spelling::found(bytes, &SECRETS) {
        panic!("{place} ({} bytes) holds {found}", bytes.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i5_no_spelling_of_a_secret_is_found_anywhere_after_its_upstream_sent_it_back() {
    let stage = stage().await;
    let process = &stage.process;
    let keys = process.get("/api/directory?limit=500").await.json();
    let keys: Vec<&str> = keys["rows"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    let (mut seen, team) = (Vec::new(), process.principal("team", &json!([{"may": "invoke"}])).await);
    for key in &keys {
        look_at(process, key, &mut seen).await;
    }
    for path in
        ["/api/invocations?limit=500", "/api/invocations/stats", "/api/directory:export", "/api/dispatch?ask=upstream"]
    {
        keep(&process.get(path).await, &mut seen);
    }
    keep(
        &send(process.bearer(&team, Method::POST, "/api/dispatch").json(&json!({"key": "BEARER_ECHO"}))).await,
        &mut seen,
    );
    assert!(stage.upstream.count() > keys.len() / 2, "the upstream was asked {} times", stage.upstream.count());
    let sent =
        stage.upstream.seen().iter().any(|seen| {
            seen.headers.get("authorization").is_some_and(|sent| sent.as_bytes().ends_with(TOKEN.as_bytes()))
        });
    assert!(sent, "the secret was used");
    assert_clean("an answer", &seen);
    assert!(String::from_utf8_lossy(&seen).contains("[redacted:TOKEN]"));
    let metrics = process.client.get(format!("{}/metrics", process.admin)).send().await.unwrap().text().await.unwrap();
    assert!(metrics.contains("callbook"), "{metrics}");
    assert_clean("the metrics", metrics.as_bytes());
    tokio::time::sleep(Duration::from_millis(400)).await;
    let log = process.log();
    assert!(log.len() > 1_000_000, "the log at trace level has {} bytes only", log.len());
    let keys = [&SECRETS[..], &[("the owner's key", OWNER), ("a principal's key", &team)]].concat();
    assert_eq!(spelling::found(&dump(&stage.database_url).await, &keys), None, "in the database");
    assert_eq!(spelling::found(log.as_bytes(), &keys), None, "in the log");
    let spans: Vec<u8> = stage.collector.seen().iter().flat_map(|seen| seen.body.to_vec()).collect();
    assert!(spans.len() > 1_000, "{} bytes of spans", spans.len());
    assert_clean("the spans", &spans);
}

#[tokio::test]
async fn i5_a_secret_that_is_rotated_or_lost_while_it_is_used_is_found_nowhere_either() {
    let secrets = Arc::new(std::sync::Mutex::new(None::<Secrets>));
    let turned = secrets.clone();
    let upstream = Upstream::start(move |seen| {
        let secrets = turned.lock().unwrap();
        let secrets = secrets.as_ref().unwrap();
        if seen.target.contains("lost") {
            secrets.lose("TOKEN")
        } else {
            secrets.rotate("TOKEN", PLAIN)
        }
        text(200, format!("you sent {}, it is {PLAIN} now", seen.headers["authorization"].to_str().unwrap()))
    })
    .await;
    let given = Secrets::bound_to(&upstream.origin(), &[("TOKEN", TOKEN)]);
    let world = given.give(World::with().allow(&[upstream.origin()])).start().await;
    *secrets.lock().unwrap() = Some(given);
    for path in ["rotated", "lost"] {
        secrets.lock().unwrap().as_ref().unwrap().rotate("TOKEN", TOKEN);
        let key = path.to_uppercase();
        world
            .create(&with(
                http(&key, &format!("GET {}/{path}", upstream.origin()), "none", ""),
                &json!({"auth": "bearer:TOKEN"}),
            ))
            .await;
        let answer = world.invoke(&key, "").await;
        assert_eq!(answer.json()["ok"], true, "{}", answer.text);
        let receipt = world.get(&format!("/api/dispatch?receipt={}", answer.id())).await;
        assert_eq!(spelling::found(answer.text.as_bytes(), &[("TOKEN", TOKEN)]), None, "{path}");
        assert_eq!(spelling::found(receipt.text.as_bytes(), &[("TOKEN", TOKEN)]), None, "{path}");
    }
    assert_eq!(spelling::found(&dump(&world.database_url).await, &[("TOKEN", TOKEN)]), None);
    world.stop().await;
}

#[tokio::test]
async fn a_secret_that_cannot_stand_in_a_header_is_named_and_not_shown() {
    let upstream = Upstream::start(|_| text(200, "x")).await;
    let odd = "first-line-sntl\nsecond-line-sntl-2w3e";
    let secrets = Secrets::bound_to(&upstream.origin(), &[("TOKEN", odd)]);
    let world = secrets.give(World::with().allow(&[upstream.origin()])).start().await;
    world
        .create(&with(
            http("ROW", &format!("GET {}/", upstream.origin()), "none", ""),
            &json!({"auth": "bearer:TOKEN"}),
        ))
        .await;
    let answer = world.invoke("ROW", "").await;
    assert_eq!((&answer.json()["ok"], upstream.count()), (&json!(false), 0), "{}", answer.text);
    assert_eq!(spelling::found(answer.text.as_bytes(), &[("TOKEN", odd)]), None);
    assert_eq!(spelling::found(&dump(&world.database_url).await, &[("TOKEN", odd)]), None);
    world.stop().await;
}
