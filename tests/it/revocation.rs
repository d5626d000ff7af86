//! I6: once a revocation is acknowledged, nothing more passes the commit point, on any executor.

use std::sync::Arc;
use std::time::Duration;

use callbook_tests::book::{echo, http};
use callbook_tests::caller::Line;
use callbook_tests::database;
use callbook_tests::issuer::{Aim, Holder, Issuer, name_of, payload};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use futures::StreamExt as _;
use futures::future::join_all;
use sqlx::PgPool;
use tokio::sync::Semaphore;

/// Trials in this run: a few hundred, or as many as the variable says.
fn trials() -> usize {
    std::env::var("CALLBOOK_TRIALS").ok().and_then(|text| text.parse().ok()).unwrap_or(300)
}

async fn committed(pool: &PgPool, actor: &str) -> i64 {
    sqlx::query_scalar("select count(*) from invocation where actor = $1").bind(actor).fetch_one(pool).await.unwrap()
}

/// One token, calls in flight on both executors, and a revocation in their middle. Gives how many calls fired.
async fn trial(number: usize, issuer: Arc<Issuer>, lines: Arc<[Line; 2]>, pool: PgPool) -> usize {
    let token = issuer.bearer(&["ROW"]).await;
    let name = name_of(&token);
    let actor = name.replacen("jti:", "cap:", 1);
    let answered = &Semaphore::new(0);
    let calls = join_all((0..6).map(|at| {
        let (lines, token) = (lines.clone(), token.clone());
        async move {
            tokio::time::sleep(Duration::from_micros(400 * at)).await;
            let answer = lines[at as usize % 2].call(&token, "ROW", "a").await;
            answered.add_permits(1);
            answer
        }
    }));
    let revocation = async {
        // after none to four answers, while the others are on their way
        let _answers = answered.acquire_many(number as u32 % 5).await.unwrap();
        tokio::time::sleep(Duration::from_micros((number as u64 * 617) % 3_000)).await;
        issuer.revoke(&name).await;
        committed(&pool, &actor).await
    };
    let (calls, at_the_answer) = tokio::join!(calls, revocation);
    let after = join_all(lines.iter().map(|line| line.call(&token, "ROW", "a"))).await;
    assert_eq!(committed(&pool, &actor).await, at_the_answer, "trial {number}: a call passed after the answer");
    let mut fired = 0;
    for call in calls.into_iter().chain(after) {
        match call {
            Ok(_) => fired += 1,
            // a loaded machine may open connections more slowly than a call waits for one; such a call did not fire
            Err(reason) if reason == "database_unavailable" => {}
            Err(reason) => assert_eq!(reason, format!("revoked:{name}"), "trial {number}"),
        }
    }
    assert_eq!(fired as i64, at_the_answer, "trial {number}: every accepted call is on record");
    fired
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_no_call_commits_after_its_revocation_was_acknowledged() {
    let first = World::start().await;
    let second = World::with().database(&first.database_url).start().await;
    first.create(&echo("ROW")).await;
    let issuer = Arc::new(Issuer::of(&first).await);
    let lines = Arc::new([Line::to(&first).await, Line::to(&second).await]);
    let pool = database::services(&first.database_url);
    let all = trials();
    let fired: Vec<usize> = futures::stream::iter(0..all)
        .map(|number| trial(number, issuer.clone(), lines.clone(), pool.clone()))
        .buffer_unordered(8)
        .collect()
        .await;
    let (calls, fired) = (all * 8, fired.into_iter().sum::<usize>());
    assert!(fired > all / 2 && fired < calls - 2 * all, "{fired} of {calls}: the revocations came in the middle");
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn revoke_between_check_and_fire() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&http("ASK", &format!("GET {}/$1", upstream.origin()), "$1=what", "")).await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let token = issuer.bearer(&["ASK"]).await;
    assert!(line.call(&token, "ASK", "warm").await.unwrap().ok, "it is known and good");
    let pool = database::services(&world.database_url);
    let mut writer = pool.begin().await.unwrap();
    callbook_store::lock::exclusive(&mut writer).await.unwrap();
    let call = tokio::spawn({
        let (line, token) = (line.clone(), token.clone());
        async move { line.call(&token, "ASK", "late").await }
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    let name = name_of(&token);
    sqlx::query("insert into revocation (name, at, actor) values ($1, now(), 'tests')")
        .bind(&name)
        .execute(&mut *writer)
        .await
        .unwrap();
    assert!(!call.is_finished(), "the call stands before the commit point");
    writer.commit().await.unwrap();
    assert_eq!(call.await.unwrap().unwrap_err(), format!("revoked:{name}"));
    assert_eq!(upstream.count(), 1);
    world.stop().await;
}

#[tokio::test]
async fn whatever_of_a_token_is_taken_back_takes_what_is_derived_from_it() {
    let world = World::start().await;
    world.create(&echo("ROW")).await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let holder = Holder::new(&world.clock);
    for what in ["root", "child", "holder", "other holder", "sub", "kid"] {
        let issuer = if what == "kid" { &Issuer::of(&world).await } else { &issuer };
        let (own, next) = (Holder::new(&world.clock), Holder::new(&world.clock));
        let mut claims = issuer.claims_of(&own, &["ROW"]);
        claims["sub"] = what.into();
        let root = issuer.root(&claims).await;
        let child = own.derive(&root, &next, |_| {});
        let sibling = own.derive(&root, &holder, |_| {});
        let name = match what {
            "root" => name_of(&root),
            "child" => name_of(&child),
            "holder" => format!("holder:{}", own.thumbprint()),
            "other holder" => format!("holder:{}", next.thumbprint()),
            "sub" => format!("sub:{what}"),
            _ => format!("kid:{}", issuer.kid),
        };
        issuer.revoke(&name).await;
        let only_child = matches!(what, "child" | "other holder");
        for (token, who, stands) in [(&root, &own, only_child), (&child, &next, false), (&sibling, &holder, only_child)]
        {
            let proof = who.proof(&Aim { token, key: "ROW", sent: r#""a""# });
            let answer = line.prove(token, &proof, "ROW", "a").await;
            match stands {
                true => assert!(answer.unwrap().ok, "{what}"),
                false => assert_eq!(answer.unwrap_err(), format!("revoked:{name}"), "{what}"),
            }
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn a_running_read_is_given_up_when_its_token_is_taken_back_and_a_write_runs_to_its_end() {
    let upstream = Upstream::slow(Duration::from_secs(5), |_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&http("READ", &format!("GET {}/$1", upstream.origin()), "$1=what", "")).await;
    world.create(&http("WRITE", &format!("POST {}/$1", upstream.origin()), "$1=what", "")).await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let mut claims = issuer.claims(&["READ", "WRITE"]);
    claims["cap"]["effect"] = "write".into();
    claims["cap"]["uses"] = 9.into();
    let token = issuer.root(&claims).await;
    let began = std::time::Instant::now();
    let (read, write, ()) = tokio::join!(line.call(&token, "READ", "a"), line.call(&token, "WRITE", "a"), async {
        while upstream.count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        issuer.revoke(&format!("sub:{}", payload(&token)["sub"].as_str().unwrap())).await;
    });
    let (read, write) = (read.unwrap(), write.unwrap());
    assert_eq!(read.error.unwrap().code, "cancelled:revoked");
    assert!(write.ok && began.elapsed() >= Duration::from_secs(5), "{write:?}");
    let receipt = world.get(&format!("/api/dispatch?receipt={}", read.proof.unwrap().invocation_id)).await;
    assert_eq!(receipt.json()["error"]["code"], "cancelled:revoked", "{}", receipt.text);
    world.stop().await;
}
