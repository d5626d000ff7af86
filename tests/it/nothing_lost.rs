//! I1, I2 and I13: what is on the wire is in the log, what was answered is in the log, and no connection to the
//! database waits for an upstream.

use std::time::{Duration, Instant};

use callbook_tests::upstream::{Seen, Upstream, json as answered};
use callbook_tests::world::{World, send};
use callbook_tests::{book, database};
use futures::future::join_all;
use reqwest::Method;
use serde_json::json;
use sqlx::PgConnection;

/// What came last in the address: the test's own mark of the call.
fn mark(seen: &Seen) -> String {
    seen.target.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Intents of running calls whose arguments hold the mark.
async fn intents(database: &mut PgConnection, mark: &str) -> i64 {
    sqlx::query_scalar(
        "select count(*) from payload p
         join event e on e.invocation = p.invocation and e.kind = 'intent'
         join invocation i on i.id = p.invocation and i.state = 'running'
         where p.part = 'input' and position(convert_to($1, 'utf8') in p.bytes) > 0",
    )
    .bind(mark)
    .fetch_one(database)
    .await
    .unwrap()
}

#[tokio::test]
async fn i1_an_upstream_request_never_precedes_its_committed_intent() {
    let url = database::fresh().await;
    let looked_at = url.clone();
    let upstream = Upstream::thinking(move |seen| {
        let url = looked_at.clone();
        async move {
            let found = intents(&mut database::owner(&url).await, &mark(&seen)).await;
            answered(200, &format!("{{\"intents\":{found}}}"))
        }
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).database(&url).start().await;
    world.create(&book::http("LOOK", &format!("GET {}/look/$1", upstream.origin()), "$1=mark", "")).await;
    world.create(&book::http("WRITE", &format!("POST {}/write/$1", upstream.origin()), "$1=mark", "")).await;
    let calls = (0..60).map(|n| {
        let key = if n % 2 == 0 { "LOOK" } else { "WRITE" };
        let body = format!("mark-{n:03}-");
        let world = &world;
        async move { world.invoke(key, &body).await }
    });
    for answer in join_all(calls).await {
        assert_eq!(answer.json()["output"]["intents"], 1, "{}", answer.text);
    }
    assert_eq!(upstream.count(), 60);
    world.stop().await;
}

#[tokio::test]
async fn i2_whoever_has_an_answer_finds_its_result_committed() {
    let upstream = Upstream::start(|seen| match seen.target.ends_with("0") {
        true => answered(500, r#"{"no":1}"#),
        false => answered(200, r#"{"yes":1}"#),
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&book::http("LOOK", &format!("GET {}/look/$1", upstream.origin()), "$1=mark", "")).await;
    world.create(&book::echo("ECHO")).await;
    let calls = (0..60).map(|n| {
        let (world, key) = (&world, if n % 3 == 0 { "ECHO" } else { "LOOK" });
        async move {
            let mut database = database::owner(&world.database_url).await;
            let answer = world.invoke(key, &format!("m{n}")).await;
            let (state, ok, kinds, parts): (String, bool, Vec<String>, Vec<String>) = sqlx::query_as(
                "select state, ok, array(select kind from event where invocation = i.id order by id),
                        array(select part from payload where invocation = i.id order by part)
                 from invocation i where trace = $1",
            )
            .bind(answer.json()["trace"].as_str().unwrap())
            .fetch_one(&mut database)
            .await
            .unwrap();
            assert_eq!((state.as_str(), ok), ("done", answer.json()["ok"] == true), "{}", answer.text);
            assert_eq!(kinds, ["intent", "result"]);
            assert!(parts.contains(&"input".to_owned()) && parts.contains(&"output".to_owned()), "{parts:?}");
        }
    });
    join_all(calls).await;
    world.stop().await;
}

#[tokio::test]
async fn i13_twenty_slow_calls_hold_none_of_two_connections() {
    let url = database::fresh().await;
    let looked_at = url.clone();
    let upstream = Upstream::thinking(move |_| {
        let url = looked_at.clone();
        async move {
            tokio::time::sleep(Duration::from_secs(2)).await;
            let open: i64 = sqlx::query_scalar(
                "select count(*) from pg_stat_activity
                 where datname = current_database() and pid <> pg_backend_pid() and state like 'idle in transaction%'
                   and state_change < clock_timestamp() - interval '300 ms'",
            )
            .fetch_one(&mut database::owner(&url).await)
            .await
            .unwrap();
            answered(200, &format!("{{\"open\":{open}}}"))
        }
    })
    .await;
    let two = "[limits]\ndatabase_connections = 2\n";
    let world = World::with().allow(&[upstream.origin()]).database(&url).toml(two).start().await;
    world.create(&book::http("SLOW", &format!("GET {}/$1", upstream.origin()), "$1=mark", "")).await;
    world.create(&book::echo("ECHO")).await;
    let id = world.invoke("ECHO", "a").await.id();
    let slow = join_all((0..20).map(|n| {
        let (world, mark) = (&world, format!("m{n}"));
        async move { world.invoke("SLOW", &mark).await }
    }));
    let meanwhile = async {
        while upstream.count() < 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let began = Instant::now();
        for _ in 0..5 {
            assert_eq!(world.get(&format!("/api/dispatch?receipt={id}")).await.status, 200);
            assert_eq!(world.get(&format!("/api/dispatch?confirm={id}")).await.status, 200);
            assert_eq!(world.invoke("ECHO", "b").await.status, 200);
        }
        began.elapsed()
    };
    let (slow, took) = tokio::join!(slow, meanwhile);
    assert!(took < Duration::from_millis(1_700), "fifteen quick requests took {took:?} beside twenty slow ones");
    for answer in slow {
        assert_eq!(answer.json()["output"]["open"], 0, "{}", answer.text);
    }
    world.stop().await;
}

#[tokio::test]
async fn one_connection_is_enough_for_everything() {
    let world = World::with().toml("[limits]\ndatabase_connections = 1\n").start().await;
    world.create(&book::echo("ECHO")).await;
    let answers = join_all((0..20).map(|n| {
        let (world, text) = (&world, n.to_string());
        async move { world.invoke("ECHO", &text).await }
    }))
    .await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    world.stop().await;
}

/// What stands of a call in the database: its state, and whether its result is logged.
async fn found(database: &mut PgConnection, mark: &str) -> Vec<(String, Option<bool>, Vec<String>)> {
    sqlx::query_as(
        "select i.state, i.ok, array(select kind from event where invocation = i.id order by id)
         from payload p join invocation i on i.id = p.invocation
         where p.part = 'input' and position(convert_to($1, 'utf8') in p.bytes) > 0",
    )
    .bind(mark)
    .fetch_all(database)
    .await
    .unwrap()
}

/// Waits, at most some seconds, until nothing runs and nothing new comes.
async fn settled(database: &mut PgConnection) {
    let mut before = (-1, -1);
    for _ in 0..40 {
        tokio::time::sleep(Duration::from_millis(150)).await;
        let counts = "select count(*), count(*) filter (where state = 'running') from invocation";
        let now: (i64, i64) = sqlx::query_as(counts).fetch_one(&mut *database).await.unwrap();
        if now == before && now.1 == 0 {
            return;
        }
        before = now;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_hangs_up_at_any_moment_changes_nothing() {
    const CLIENTS: u64 = 240;
    let upstream = Upstream::slow(Duration::from_millis(15), |_| answered(200, r#"{"done":true}"#)).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&book::http("WRITE", &format!("POST {}/write/$1", upstream.origin()), "$1=mark", "")).await;
    for round in 0..CLIENTS / 8 {
        join_all((0..8).map(|lane| {
            let n = round * 8 + lane;
            let body = json!({"key": "WRITE", "body": format!("mark-{n:04}-")});
            // a client of its own, so that its connection goes with it
            let client = reqwest::Client::builder().no_proxy().build().unwrap();
            let url = format!("{}/api/dispatch", world.http);
            let request = client.post(url).header("x-terminal-key", callbook_tests::world::OWNER).json(&body);
            tokio::time::timeout(Duration::from_micros(n * 600), request.send())
        }))
        .await;
    }
    let mut database = database::owner(&world.database_url).await;
    settled(&mut database).await;
    let mut stored = 0;
    for n in 0..CLIENTS {
        let mark = format!("mark-{n:04}-");
        let hits = upstream.seen().iter().filter(|seen| seen.target.ends_with(&mark)).count();
        match found(&mut database, &mark).await.as_slice() {
            [] => assert_eq!(hits, 0, "{mark} reached the upstream without an intent"),
            [(state, ok, kinds)] => {
                assert_eq!((state.as_str(), *ok, hits), ("done", Some(true), 1), "{mark}");
                assert_eq!(kinds, &["intent", "result"], "{mark}");
                stored += 1;
            }
            several => panic!("{mark} was accepted {} times", several.len()),
        }
    }
    assert!(stored >= 20, "only {stored} of the clients came far enough to tell");
    world.stop().await;
}

#[tokio::test]
async fn a_grpc_client_that_hangs_up_at_any_moment_changes_nothing() {
    use callbook_wire::executor::v1::arguments::Form;
    use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
    use callbook_wire::executor::v1::{Arguments, InvokeRequest};
    let world = World::start().await;
    world.create(&book::echo("ECHO")).await;
    let executor = ExecutorServiceClient::new(world.channel().await);
    for n in 0..300u64 {
        let mut executor = executor.clone();
        let request = InvokeRequest {
            key: "ECHO".into(),
            arguments: Some(Arguments { form: Some(Form::Body(format!("mark-{n:04}-"))) }),
            ..InvokeRequest::default()
        };
        let calling = executor.invoke(callbook_tests::world::owned(request));
        let _ = tokio::time::timeout(Duration::from_micros(n * 40), calling).await;
    }
    let mut database = database::owner(&world.database_url).await;
    settled(&mut database).await;
    let states = "select state, count(*) from invocation group by state";
    let open: Vec<(String, i64)> = sqlx::query_as(states).fetch_all(&mut database).await.unwrap();
    assert!(open.len() == 1 && open[0].0 == "done" && open[0].1 > 50, "{open:?}");
    world.stop().await;
}

#[tokio::test]
async fn a_deadline_is_kept_and_its_end_is_typed() {
    let upstream = Upstream::slow(Duration::from_millis(2_500), |_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&book::http("SLOW", &format!("GET {}/$1", upstream.origin()), "$1=mark", "")).await;
    let hasty = book::http("HASTY", &format!("GET {}/$1", upstream.origin()), "$1=mark", "");
    world.create(&book::with(hasty, &json!({"timeout_ms": 150}))).await;
    let calls = [1u64, 5, 15, 30, 60, 120, 250, 500, 1_000].into_iter().flat_map(|ms| [(ms, true), (ms, false)]);
    join_all(calls.map(|(ms, header)| {
        let world = &world;
        async move {
            let request = world.owner(Method::POST, "/api/dispatch");
            let request = match header {
                true => request.header("x-deadline-ms", ms).json(&json!({"key": "SLOW", "body": "a"})),
                false => request.json(&json!({"key": "SLOW", "body": "a", "deadline_ms": ms})),
            };
            let began = Instant::now();
            let answer = send(request).await;
            let took = began.elapsed();
            assert!(took < Duration::from_millis(ms + 1_500), "{ms} ms became {took:?}");
            match (answer.status, answer.error().as_str()) {
                (503, "deadline_too_short") => {}
                (200, _) => assert_eq!(answer.json()["error"]["code"], "http:timeout", "{}", answer.text),
                _ => panic!("{ms} ms: {} {}", answer.status, answer.text),
            }
        }
    }))
    .await;
    let hasty = world.invoke("HASTY", "a").await.json();
    assert_eq!((&hasty["error"]["code"], &hasty["ran"]), (&json!("http:timeout"), &json!(true)), "{hasty}");
    for bad in ["0", "-1", "soon", ""] {
        let request = world.owner(Method::POST, "/api/dispatch").header("x-deadline-ms", bad);
        assert_eq!(send(request.json(&json!({"key": "SLOW", "body": "a"}))).await.status, 400, "{bad:?}");
    }
    let mut database = database::owner(&world.database_url).await;
    settled(&mut database).await;
    let open = "select count(*) from invocation where state <> 'done'";
    let open: i64 = sqlx::query_scalar(open).fetch_one(&mut database).await.unwrap();
    assert_eq!(open, 0, "a call whose caller had no more time has its result all the same");
    world.stop().await;
}
