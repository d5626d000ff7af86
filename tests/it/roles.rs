//! The roles as processes of their own: the walk works, and any of them may die or be asked to stop.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use callbook_tests::door::{Answer, Door, attempt};
use callbook_tests::process::Process;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::{book, database};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

/// One process for each service, as many executors as wanted, and nothing in front of them.
struct Services {
    resolver: Process,
    contract: Process,
    gate: Process,
    executors: Vec<Process>,
}

fn at(process: &Process) -> &str {
    process.grpc.trim_start_matches("http://")
}

/// A process of one role. Those in the tests' hand take few connections, because a server has not many.
fn serve(role: &str, url: &str, more: &[(&str, &str)]) -> Process {
    let environment: Vec<(&str, &str)> = [("DATABASE_URL", url)].iter().chain(more).copied().collect();
    Process::start(&["serve", role], &environment)
}

fn executor(url: &str, upstream: &Upstream, pools: &str) -> Process {
    serve("executor", url, &[("CALLBOOK_ALLOW_ORIGINS", &upstream.origin()), ("CALLBOOK_POOLS", pools)])
}

impl Services {
    fn start(url: &str, upstream: &Upstream, executors: &[&str]) -> Services {
        let executors = executors.iter().map(|pools| executor(url, upstream, pools)).collect();
        let [resolver, contract, gate] = ["resolver", "contract", "gate"].map(|role| serve(role, url, &[]));
        Services { resolver, contract, gate, executors }
    }

    /// A gateway in front of them, which has no database.
    fn gateway(&self, executors: &str) -> Process {
        let (resolver, contract, gate) = (at(&self.resolver), at(&self.contract), at(&self.gate));
        let found = [("CALLBOOK_RESOLVER", resolver), ("CALLBOOK_CONTRACT", contract), ("CALLBOOK_GATE", gate)];
        let found: Vec<(&str, &str)> = found.into_iter().chain([("CALLBOOK_EXECUTORS", executors)]).collect();
        serve("gateway", "", &found)
    }
}

async fn terminate(process: Process) -> (Option<i32>, Duration) {
    tokio::task::spawn_blocking(move || process.terminate()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_walk_passes_against_five_processes_and_each_ends_when_it_is_asked_to() {
    let (url, upstream) = (database::fresh().await, Upstream::weather().await);
    let services = Services::start(&url, &upstream, &["default"]);
    let gateway = services.gateway(&format!("default={}", at(&services.executors[0])));
    crate::walk::walk(&gateway, &upstream).await;
    let team = gateway.principal("team", &json!([{"may": "invoke"}])).await;
    gateway.create(&book::echo("ECHO")).await;
    let call = gateway.bearer(&team, Method::POST, "/api/dispatch").json(&json!({"key": "ECHO", "body": "a"}));
    assert_eq!(attempt(call).await.unwrap().json()["ok"], true, "the executor knows who the gate let in");
    assert_eq!(gateway.look("/readyz").await.status, 200);

    let Services { resolver, contract, gate, mut executors } = services;
    let watching = watch(&resolver).await;
    let processes = [
        ("executor", executors.remove(0)),
        ("resolver", resolver),
        ("contract", contract),
        ("gate", gate),
        ("gateway", gateway),
    ];
    for (role, process) in processes {
        let (code, took) = terminate(process).await;
        assert_eq!(code, Some(0), "{role}");
        assert!(took < Duration::from_secs(3), "{role} took {took:?}");
    }
    drop(watching);
}

/// A stream of changes that stays open.
async fn watch(resolver: &Process) -> tonic::Streaming<callbook_wire::resolver::v1::WatchChangesResponse> {
    use callbook_wire::resolver::v1::WatchChangesRequest;
    use callbook_wire::resolver::v1::resolver_service_client::ResolverServiceClient;
    let mut client = ResolverServiceClient::connect(resolver.grpc.clone()).await.unwrap();
    let watching = client.watch_changes(callbook_tests::world::owned(WatchChangesRequest::default())).await;
    watching.unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_runs_in_its_pool_and_a_pool_that_nobody_serves_is_refused_before_the_commit() {
    let (url, upstream) = (database::fresh().await, Upstream::weather().await);
    let services = Services::start(&url, &upstream, &["default", "gpu"]);
    let pools = format!("default={},gpu={}", at(&services.executors[0]), at(&services.executors[1]));
    let gateway = services.gateway(&pools);
    for (key, pool) in [("ANY", ""), ("GPU", "gpu"), ("NOWHERE", "moon")] {
        gateway.create(&book::with(book::echo(key), &json!({"runner": pool}))).await;
    }
    for (key, pool) in [("ANY", "default"), ("GPU", "gpu")] {
        let answer = gateway.invoke(key, "a").await;
        let receipt = gateway.get(&format!("/api/dispatch?receipt={}", answer.id())).await.json();
        assert_eq!((answer.status, &receipt["pool"]), (200, &json!(pool)), "{}", answer.text);
    }
    // what a flow calls runs where it does: rows of its pool, and those that name none
    gateway.create(&book::with(book::flow("BOTH", "ANY: $1 > GPU: $PREV$1"), &json!({"runner": "gpu"}))).await;
    let both = gateway.invoke("BOTH", "a").await;
    assert_eq!((both.status, &both.json()["result"]), (200, &json!("aa")), "{}", both.text);
    let astray = gateway.post("/api/directory", &book::flow("ASTRAY", "ANY: $1 > GPU: $PREV")).await;
    assert!(
        astray.status == 422 && astray.text.contains("pool_mismatch: step `GPU` runs in pool `gpu`"),
        "{}",
        astray.text
    );
    let nowhere = gateway.invoke("NOWHERE", "a").await;
    assert_eq!((nowhere.status, nowhere.error().as_str()), (503, "no_executor_for_pool:moon"), "{}", nowhere.text);
    assert_eq!(gateway.get("/api/invocations?key=NOWHERE").await.json()["invocations"], json!([]));
}

/// What came of a call under load, and when it began.
struct Tried {
    began: Instant,
    answer: Option<Answer>,
}

/// Calls both gateways from many callers until it is told to stop.
async fn load(doors: &[Door], stop: &AtomicBool) -> Vec<Tried> {
    let callers = (0..12).map(|n| {
        let door = &doors[n % doors.len()];
        async move {
            let mut tried = Vec::new();
            while !stop.load(Ordering::SeqCst) {
                let (began, body) = (Instant::now(), json!({"key": "WORK", "body": "a"}));
                let answer = attempt(door.owner(Method::POST, "/api/dispatch").json(&body)).await.ok();
                tried.push(Tried { began, answer });
            }
            tried
        }
    });
    join_all(callers).await.into_iter().flatten().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i9_either_of_two_executors_may_be_killed_under_load_and_the_gateways_go_on_within_a_second() {
    let upstream = Upstream::slow(Duration::from_millis(30), |_| answered(200, "{}")).await;
    let url = database::fresh().await;
    let mut services = Services::start(&url, &upstream, &["default", "default"]);
    let list = services.executors.iter().map(|one| format!("default={}", at(one))).collect::<Vec<_>>().join(",");
    let gateways = [services.gateway(&list), services.gateway(&list)];
    let doors: Vec<Door> = gateways.iter().map(|gateway| (**gateway).clone()).collect();
    doors[0].create(&book::http("WORK", &format!("POST {}/$1", upstream.origin()), "$1=word", "")).await;
    let mut database = database::owner(&url).await;
    let mut acknowledged: BTreeMap<String, Value> = BTreeMap::new();
    for round in 0..2 {
        let stop = AtomicBool::new(false);
        let victim = services.executors.remove(0);
        let address = at(&victim).to_owned();
        let kill = async {
            tokio::time::sleep(Duration::from_millis(700)).await;
            victim.kill();
            let killed = Instant::now();
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            stop.store(true, Ordering::SeqCst);
            killed
        };
        let (tried, killed) = tokio::join!(load(&doors, &stop), kill);
        for Tried { began, answer } in &tried {
            let answer = answer.as_ref().expect("a gateway always answers");
            let late = began.saturating_duration_since(killed) >= Duration::from_secs(1);
            match answer.status {
                200 => drop(acknowledged.insert(answer.id(), answer.json()["proof"]["contract_hash"].clone())),
                503 if !late => assert_ne!(answer.json()["ran"], true, "{}", answer.text),
                _ => panic!("round {round}, {late}: {} {}", answer.status, answer.text),
            }
        }
        let after = tried.iter().filter(|one| one.began > killed + Duration::from_secs(1)).count();
        assert!(after > 20, "only {after} calls came after the first second");
        // twenty seconds of silence, without the wait
        let silence = "update executor set heartbeat_at = heartbeat_at - interval '1 minute' where address = $1";
        sqlx::query(silence).bind(&address).execute(&mut database).await.unwrap();
        services.executors.push(restarted(&url, &upstream, &address));
        nothing_runs(&mut database).await;
    }
    assert!(acknowledged.len() > 100, "{} calls", acknowledged.len());
    for (n, (id, contract)) in acknowledged.iter().enumerate() {
        let receipt = doors[n % 2].get(&format!("/api/dispatch?receipt={id}")).await.json();
        assert_eq!((&receipt["material"], &receipt["contract_hash"]), (&json!(true), contract), "{receipt}");
    }
    let intents: i64 =
        sqlx::query_scalar("select count(*) from event where kind = 'intent'").fetch_one(&mut database).await.unwrap();
    assert!(upstream.count() as i64 <= intents, "{} requests, {intents} intents", upstream.count());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn executors_that_are_asked_to_stop_one_after_the_other_cost_no_caller_an_answer() {
    let upstream = Upstream::slow(Duration::from_millis(30), |_| answered(200, "{}")).await;
    let url = database::fresh().await;
    let mut services = Services::start(&url, &upstream, &["default", "default"]);
    let list = services.executors.iter().map(|one| format!("default={}", at(one))).collect::<Vec<_>>().join(",");
    let gateway = services.gateway(&list);
    gateway.create(&book::http("WORK", &format!("POST {}/$1", upstream.origin()), "$1=word", "")).await;
    let (doors, stop) = ([(*gateway).clone()], AtomicBool::new(false));
    let rolling = async {
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(400)).await;
            let leaves = services.executors.remove(0);
            let address = at(&leaves).to_owned();
            let (code, took) = terminate(leaves).await;
            assert!(code == Some(0) && took < Duration::from_secs(3), "{code:?} after {took:?}");
            let (url, upstream) = (url.clone(), upstream.clone());
            let comes = tokio::task::spawn_blocking(move || restarted(&url, &upstream, &address));
            services.executors.push(comes.await.unwrap());
            // what could not be reached is passed over for a second
            tokio::time::sleep(Duration::from_millis(1_200)).await;
        }
        stop.store(true, Ordering::SeqCst);
    };
    let (tried, ()) = tokio::join!(load(&doors, &stop), rolling);
    for Tried { answer, .. } in &tried {
        let answer = answer.as_ref().expect("a gateway always answers");
        assert_eq!((answer.status, &answer.json()["ok"]), (200, &json!(true)), "{}", answer.text);
    }
    assert_eq!(upstream.count(), tried.len());
}

/// An executor at the address of the one that was killed.
fn restarted(url: &str, upstream: &Upstream, address: &str) -> Process {
    let port = address.rsplit(':').next().and_then(|port| port.parse().ok()).unwrap();
    let environment = [("DATABASE_URL", url), ("CALLBOOK_ALLOW_ORIGINS", &upstream.origin())];
    let free = callbook_tests::process::free_port;
    Process::start_at(&["serve", "executor"], &environment, free(), port, free())
}

/// Waits until every intent has ended.
async fn nothing_runs(database: &mut sqlx::PgConnection) {
    let began = Instant::now();
    loop {
        let open: i64 = sqlx::query_scalar("select count(*) from invocation where state = 'running'")
            .fetch_one(&mut *database)
            .await
            .unwrap();
        if open == 0 {
            return;
        }
        assert!(began.elapsed() < Duration::from_secs(12), "{open} intents of a dead executor stay open");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_gateway_says_which_part_is_missing_and_goes_on_when_it_is_back() {
    let (url, upstream) = (database::fresh().await, Upstream::weather().await);
    let mut services = Services::start(&url, &upstream, &["default"]);
    let address = at(&services.executors[0]).to_owned();
    let gateway = services.gateway(&format!("default={address}"));
    gateway.create(&book::echo("ECHO")).await;
    assert_eq!(gateway.invoke("ECHO", "a").await.status, 200);
    services.executors.remove(0).kill();
    let began = Instant::now();
    let refused = gateway.invoke("ECHO", "a").await;
    assert_eq!((refused.status, refused.error().as_str()), (503, "service_unavailable"), "{}", refused.text);
    assert!(refused.headers.contains_key("retry-after") && began.elapsed() < Duration::from_secs(3));
    assert_eq!(gateway.look("/api/dispatch?key=ECHO").await.status, 200, "the book is read all the same");
    tokio::time::sleep(Duration::from_millis(600)).await;
    let ready = gateway.look("/readyz").await;
    assert_eq!((ready.status, &ready.json()["executor"]), (503, &json!("unreachable")), "{}", ready.text);
    assert_eq!(gateway.look("/healthz").await.status, 200);
    services.executors.push(restarted(&url, &upstream, &address));
    let began = Instant::now();
    while gateway.invoke("ECHO", "a").await.status != 200 {
        assert!(began.elapsed() < Duration::from_secs(2), "the gateway does not find the executor again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_that_hangs_is_passed_over_before_more_calls_wait_for_it() {
    let (url, upstream) = (database::fresh().await, Upstream::weather().await);
    let services = Services::start(&url, &upstream, &["default", "default"]);
    let list = services.executors.iter().map(|one| format!("default={}", at(one))).collect::<Vec<_>>().join(",");
    let gateway = services.gateway(&list);
    gateway.create(&book::echo("ECHO")).await;
    let mut database = database::owner(&url).await;
    services.executors[0].signal("STOP");
    // asked every second, and given one to answer
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let began = Instant::now();
    for _ in 0..20 {
        assert_eq!(gateway.invoke("ECHO", "a").await.status, 200);
    }
    // one that went there would wait for its deadline of 30 s
    assert!(began.elapsed() < Duration::from_secs(20), "calls waited for {:?}", began.elapsed());
    assert_eq!(executors_of(&gateway, &mut database, 8).await, 1);
    services.executors[0].signal("CONT");
    let began = Instant::now();
    while executors_of(&gateway, &mut database, 8).await < 2 {
        assert!(began.elapsed() < Duration::from_secs(4), "the executor is not used again");
    }
}

/// How many executors ran the next calls of a row.
async fn executors_of(gateway: &Door, database: &mut sqlx::PgConnection, calls: i64) -> i64 {
    for _ in 0..calls {
        assert_eq!(gateway.invoke("ECHO", "a").await.status, 200);
    }
    let last = "select count(distinct executor) from (select executor from invocation order by id desc limit $1) last";
    sqlx::query_scalar(last).bind(calls).fetch_one(database).await.unwrap()
}
