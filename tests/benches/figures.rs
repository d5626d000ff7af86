//! The figures that the product is held to, from outside, on a release build:
//!
//!     cargo bench -p callbook-tests --bench figures
//!
//! Absolute times are this machine's; what to compare are the two sides of one line, measured in one run.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a measurement that prints its figures")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use callbook_domain::clock::Clock;
use callbook_domain::event::Sealed;
use callbook_domain::invocation::{InvocationId, Mode};
use callbook_executor::committer::{Candidate, Committer, Finished, Part};
use callbook_tests::caller::{request, with_token};
use callbook_tests::issuer::{Aim, Holder, Issuer};
use callbook_tests::process::Process;
use callbook_tests::upstream::Upstream;
use callbook_tests::world::{OWNER, World};
use callbook_tests::{database, shared};
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::executor::v1::{Arguments, InvokeRequest, arguments::Form};
use callbook_wire::resolver::v1::AskRequest;
use callbook_wire::resolver::v1::resolver_service_client::ResolverServiceClient;
use hdrhistogram::Histogram;
use serde_json::json;
use tonic::transport::Channel;

const CONNECTIONS: usize = 64;

fn main() {
    let data = tempfile::tempdir().unwrap();
    database::durable(data.path());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        println!("{:<58} {:>12}", "figure", "value");
        ask().await;
        durable().await;
        overhead().await;
        gated().await;
    });
    start_and_size();
}

fn line(figure: &str, value: impl std::fmt::Display) {
    println!("{figure:<58} {value:>12}");
}

fn micros(histogram: &Histogram<u64>, quantile: f64) -> String {
    format!("{:.3} ms", histogram.value_at_quantile(quantile) as f64 / 1_000.0)
}

fn owned<T>(message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    request.metadata_mut().insert("x-terminal-key", OWNER.parse().unwrap());
    request
}

/// Asks over one connection, and the time inside the resolver by its own figure.
async fn ask() {
    let Some(file) = shared("catalogue/rows.ndjson") else { return };
    let world = World::start().await;
    let rows = std::fs::read(file).unwrap();
    let imported = world.owner(reqwest::Method::POST, "/api/directory:import?allow_lookalike=true").body(rows).send();
    assert_eq!(imported.await.unwrap().status(), 200);
    let mut client = ResolverServiceClient::connect(world.grpc.clone()).await.unwrap();
    let questions = ["what time is it", "list the issues of a repository", "refund a payment", "current weather"];
    let mut histogram = Histogram::<u64>::new(3).unwrap();
    for at in 0..4_000 {
        let began = Instant::now();
        let question = questions[at % questions.len()].to_owned();
        client.ask(owned(AskRequest { question, ..AskRequest::default() })).await.unwrap();
        if at >= 400 {
            histogram.record(began.elapsed().as_micros() as u64).unwrap();
        }
    }
    line("ask, 891 rows, one gRPC connection, p50", micros(&histogram, 0.5));
    line("ask, 891 rows, one gRPC connection, p99", micros(&histogram, 0.99));
    world.stop().await;
}

/// A pure row with durable intent and result, beside the same rows committed in the same groups by nobody else.
async fn durable() {
    let world = World::with().set(|flags| flags.retention_days = Some("0".into())).start().await;
    world
        .create(&json!({"key": "NOW", "type": "fn", "target": "now", "content": "# WHAT: Time\n# EX: [NOW][/NOW]"}))
        .await;
    let channels = channels(&world.grpc).await;
    let (mut calls, mut bare) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        calls.push(rate(invoke_loop(channels.clone(), Duration::from_secs(4)).await));
        bare.push(rate(bare_loop(&world, Duration::from_secs(4)).await));
    }
    let (calls, bare) = (median(&mut calls), median(&mut bare));
    line("invoke of a pure fn row, 64 gRPC connections", format!("{calls:.0}/s"));
    line("the same rows in the same groups, bare, 64 in flight", format!("{bare:.0}/s"));
    line("share of the bare loop", format!("{:.0} %", 100.0 * calls / bare));
    world.stop().await;
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn rate((done, took): (usize, Duration)) -> f64 {
    done as f64 / took.as_secs_f64()
}

type Channels = Arc<Vec<ExecutorServiceClient<Channel>>>;

async fn channels(grpc: &str) -> Channels {
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(ExecutorServiceClient::connect(grpc.to_owned()).await.unwrap());
    }
    Arc::new(channels)
}

async fn invoke_loop(channels: Channels, time: Duration) -> (usize, Duration) {
    in_flight(time, move |at| {
        let mut client = channels[at % channels.len()].clone();
        async move {
            let request = InvokeRequest { key: "NOW".into(), ..InvokeRequest::default() };
            let answer = client.invoke(owned(request)).await.unwrap().into_inner().answer.unwrap();
            assert!(answer.ok);
        }
    })
    .await
}

/// Runs one call after the other in each of 64 tasks.
async fn in_flight<F>(time: Duration, call: impl Fn(usize) -> F + Clone + Send + Sync + 'static) -> (usize, Duration)
where
    F: Future<Output = ()> + Send,
{
    let (began, done) = (Instant::now(), Arc::new(AtomicUsize::new(0)));
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|at| {
            let (call, done) = (call.clone(), done.clone());
            tokio::spawn(async move {
                while began.elapsed() < time {
                    call(at).await;
                    done.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    (done.load(Ordering::Relaxed), began.elapsed())
}

async fn bare_loop(world: &World, time: Duration) -> (usize, Duration) {
    let committer = Arc::new(Committer::start(&database::services(&world.database_url), &world.clock));
    let row = world.get("/api/directory/NOW").await.json();
    let revision = row["revision"].as_i64().unwrap();
    let contract: Arc<str> = row["contract_hash"].as_str().unwrap().into();
    in_flight(time, move |_| {
        let (committer, contract) = (committer.clone(), contract.clone());
        async move {
            let candidate = candidate(revision, &contract);
            let finished = finished(&candidate);
            assert!(committer.admit(candidate).await.unwrap());
            assert!(committer.finish(finished).await.unwrap());
        }
    })
    .await
}

/// A call as an executor would commit it, with bodies of the size that they have.
fn candidate(revision: i64, contract: &str) -> Candidate {
    let now = Clock::system().now();
    Candidate {
        id: InvocationId::new(now),
        caller: "owner".into(),
        principal: None,
        holder: None,
        credential_ends: None,
        is_counted: true,
        approval: None,
        actor: "owner:terminal-key".into(),
        idempotency_key: None,
        argument_hash: vec![7; 32],
        key: "NOW".into(),
        row_type: "fn",
        row_revision: revision,
        contract_hash: contract.into(),
        text_hash: contract.into(),
        effect: "read",
        risk: "low",
        runner: "fn",
        mode: Mode::Durable,
        pool: "default".into(),
        executor: uuid::Uuid::nil(),
        lease_seconds: 40.0,
        parent: None,
        repairs: None,
        replay_of: None,
        trace: "0".repeat(32),
        started_at: now,
        warnings: Vec::new(),
        input: Sealed::new(b"{}".to_vec()),
        event: format!("{{\"filled\":\"{}\"}}", "x".repeat(560)),
    }
}

fn finished(candidate: &Candidate) -> Finished {
    let output = Sealed::new(vec![b'x'; 120]);
    Finished {
        id: candidate.id.0,
        key: candidate.key.clone(),
        actor: candidate.actor.clone(),
        at: candidate.started_at,
        ok: true,
        material: true,
        code: None,
        message: None,
        retryable: None,
        failed_at: None,
        upstream_status: None,
        truncated: false,
        own_cost_usd: 0.0,
        cost_usd: 0.0,
        parts: vec![Part { name: "output", sealed: output, media_type: "application/json".into() }],
        event: format!("{{\"filled\":\"{}\"}}", "x".repeat(700)),
    }
}

/// What an `http` row adds to its upstream, called directly by the same client.
async fn overhead() {
    let upstream = Upstream::weather().await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let target = format!("GET {}/v1/forecast?latitude=$1&longitude=$2", upstream.origin());
    let content = "# WHAT: Weather\n# ARGS: $1=latitude | $2=longitude\n# EX: [W]1|2[/W]";
    world.create(&json!({"key": "W", "type": "http", "target": target, "content": content})).await;
    for connections in [1, 16] {
        let direct = latencies(connections, {
            let (client, url) =
                (world.client.clone(), format!("{}/v1/forecast?latitude=1&longitude=2", upstream.origin()));
            move || {
                let request = client.get(&url);
                async move { assert_eq!(request.send().await.unwrap().status(), 200) }
            }
        })
        .await;
        let client = ExecutorServiceClient::connect(world.grpc.clone()).await.unwrap();
        let through = latencies(connections, move || {
            let mut client = client.clone();
            async move {
                let arguments = Some(Arguments { form: Some(Form::Body("1|2".into())) });
                let request = InvokeRequest { key: "W".into(), arguments, ..InvokeRequest::default() };
                assert!(client.invoke(owned(request)).await.unwrap().into_inner().answer.unwrap().ok);
            }
        })
        .await;
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            line(&format!("upstream direct, {connections} at once, {name}"), micros(&direct, quantile));
            line(&format!("the same through an http row, {connections} at once, {name}"), micros(&through, quantile));
        }
    }
    world.stop().await;
}

/// What a call with a token costs in processor time beside the same call of the owner, in five runs of pairs.
async fn gated() {
    let url = database::fresh().await;
    let process = Process::start(&["up"], &[("DATABASE_URL", &url), ("CALLBOOK_RETENTION_DAYS", "0")]);
    process.create(&callbook_tests::book::echo("ROW")).await;
    let clock = Clock::system();
    let issuer = Issuer::on(&url, &clock).await;
    let holders = [(); 3].map(|()| Holder::new(&clock));
    let mut chain = issuer.root(&issuer.claims_of(&holders[0], &["ROW"])).await;
    for pair in holders.windows(2) {
        chain = pair[0].derive(&chain, &pair[1], |_| {});
    }
    let bearer = issuer.bearer(&["ROW"]).await;
    let client = ExecutorServiceClient::connect(process.grpc.clone()).await.unwrap();
    let call = || request("ROW", "a");
    let (mut by_bearer, mut by_chain) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let owner = processor_time(&process, &client, || owned(call())).await;
        let token = processor_time(&process, &client, || with_token(&bearer, None, call())).await;
        let aim = Aim { token: &chain, key: "ROW", sent: "\"a\"" };
        let proven = || with_token(&chain, Some(&holders[2].proof(&aim)), call());
        let proven = processor_time(&process, &client, proven).await;
        by_bearer.push(100.0 * token / owner - 100.0);
        by_chain.push(100.0 * proven / owner - 100.0);
    }
    line("a call with a bearer token beside the owner's, processor", format!("{:+.1} %", median(&mut by_bearer)));
    line("with three links and a proof, processor", format!("{:+.1} %", median(&mut by_chain)));
    process.terminate();
}

/// Seconds of processor time of 6,000 calls, 16 at once.
async fn processor_time(
    process: &Process,
    client: &ExecutorServiceClient<Channel>,
    request: impl Fn() -> tonic::Request<InvokeRequest>,
) -> f64 {
    let before = process.processor_time();
    let calls = (0..6_000).map(|_| {
        let (mut client, request) = (client.clone(), request());
        async move { assert!(client.invoke(request).await.unwrap().into_inner().answer.unwrap().ok) }
    });
    futures::StreamExt::for_each_concurrent(futures::stream::iter(calls), 16, |call| call).await;
    (process.processor_time() - before).as_secs_f64()
}

async fn latencies<F>(at_once: usize, call: impl Fn() -> F + Clone + Send + Sync + 'static) -> Histogram<u64>
where
    F: Future<Output = ()> + Send,
{
    let mut all = Histogram::<u64>::new(3).unwrap();
    let tasks: Vec<_> = (0..at_once)
        .map(|_| {
            let call = call.clone();
            tokio::spawn(async move {
                let mut own = Histogram::<u64>::new(3).unwrap();
                for at in 0..600 {
                    let began = Instant::now();
                    call().await;
                    if at >= 50 {
                        own.record(began.elapsed().as_micros() as u64).unwrap();
                    }
                }
                own
            })
        })
        .collect();
    for task in tasks {
        all.add(task.await.unwrap()).unwrap();
    }
    all
}

/// How long `up` takes on a data directory that exists, and how much memory it holds with 1,000 rows.
fn start_and_size() {
    let data = tempfile::tempdir().unwrap();
    let directory = data.path().to_str().unwrap().to_owned();
    let up = || Process::start(&["up", "--data-dir", &directory], &[("DATABASE_URL", "")]);
    up().terminate();
    let began = Instant::now();
    let process = up();
    line("up ready on an existing data directory", format!("{} ms", began.elapsed().as_millis()));
    let rows: String = (0..1_000)
        .map(|at| {
            let content = format!(
                "# WHAT: Row number {at} of the measurement\n# ARGS: $1=text\n# EX: [R_{at}]a[/R_{at}]\n[\"$1\"]"
            );
            format!("{}\n", json!({"key": format!("R_{at}"), "type": "fn", "target": "echo", "content": content}))
        })
        .collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = reqwest::Client::new();
        let import = client.post(format!("{}/api/directory:import?allow_lookalike=true", process.http));
        assert_eq!(import.header("x-terminal-key", OWNER).body(rows).send().await.unwrap().status(), 200);
        for at in 0..200 {
            let body = json!({"key": format!("R_{at}"), "body": "x"});
            let call =
                client.post(format!("{}/api/dispatch", process.http)).header("x-terminal-key", OWNER).json(&body);
            assert_eq!(call.send().await.unwrap().status(), 200);
        }
    });
    line("memory of the callbook process with 1,000 rows", format!("{} MB", process.resident_kib() / 1_024));
    process.terminate();
}
