//! A credential that is dead: after eight refusals in a row nothing is sent with it for an hour.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use callbook_domain::clock::Clock;
use callbook_tests::book::{http, with};
use callbook_tests::door::send;
use callbook_tests::secrets::Secrets;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use reqwest::Method;
use serde_json::{Value, json};

struct Stage {
    world: World,
    upstream: Upstream,
    secrets: Secrets,
    status: Arc<AtomicU16>,
}

async fn stage() -> Stage {
    let status = Arc::new(AtomicU16::new(401));
    let answers = status.clone();
    let upstream = Upstream::start(move |_| answered(answers.load(Ordering::SeqCst), "{\"no\":1}")).await;
    let secrets = Secrets::bound_to(&upstream.origin(), &[("TOKEN", "tok-1234567890"), ("OTHER", "other-1234567890")]);
    let clock = Clock::held(Clock::system().now());
    let world = secrets.give(World::with().allow(&[upstream.origin()])).clock(clock).start().await;
    for (key, auth) in [("ROW", "bearer:TOKEN"), ("SAME", "bearer:TOKEN"), ("OTHER", "bearer:OTHER"), ("OPEN", "")] {
        world
            .create(&with(http(key, &format!("GET {}/x?q=$1", upstream.origin()), "q", ""), &json!({"auth": auth})))
            .await;
    }
    Stage { world, upstream, secrets, status }
}

impl Stage {
    async fn refuse(&self, times: usize) {
        for time in 1..=times {
            let answer = self.world.invoke("ROW", "x").await;
            assert_eq!(answer.json()["error"]["code"], "http:401", "{time}: {}", answer.text);
        }
    }

    async fn assert_open(&self, key: &str) {
        let before = self.upstream.count();
        let answer = self.world.invoke(key, "x").await;
        let told = answer.json();
        assert_eq!(
            (answer.status, &told["error"], &told["ran"]),
            (503, &json!(format!("breaker_open:{key}")), &json!(false)),
            "{told}"
        );
        assert!(
            told["message"].as_str().unwrap().contains('8') || told["message"].as_str().unwrap().contains("eight"),
            "{told}"
        );
        assert_eq!(self.upstream.count(), before);
    }

    async fn call(&self, key: &str) -> Value {
        self.world.invoke(key, "x").await.json()
    }

    async fn receipts(&self) -> usize {
        self.world.get("/api/invocations?limit=500").await.json()["invocations"].as_array().unwrap().len()
    }
}

#[tokio::test]
async fn eight_refusals_open_it_for_every_row_of_the_credential_before_anything_is_committed() {
    let stage = stage().await;
    stage.refuse(8).await;
    let committed = stage.receipts().await;
    stage.assert_open("ROW").await;
    stage.assert_open("SAME").await;
    assert_eq!(stage.receipts().await, committed, "a call that did not run leaves no receipt");
    assert_eq!(stage.call("OTHER").await["error"]["code"], "http:401", "another credential has a breaker of its own");
    assert_eq!(stage.call("OPEN").await["error"]["code"], "http:401");
    stage.world.stop().await;
}

#[tokio::test]
async fn after_an_hour_one_probe_goes_and_its_answer_decides() {
    let stage = stage().await;
    stage.refuse(8).await;
    stage.world.clock.advance(Duration::from_secs(3599));
    stage.assert_open("ROW").await;
    stage.world.clock.advance(Duration::from_secs(2));
    stage.refuse(1).await;
    stage.assert_open("ROW").await;
    stage.world.clock.advance(Duration::from_secs(3601));
    stage.status.store(200, Ordering::SeqCst);
    assert_eq!(stage.call("ROW").await["ok"], true);
    stage.status.store(401, Ordering::SeqCst);
    stage.refuse(7).await;
    stage.world.stop().await;
}

#[tokio::test]
async fn a_rotated_secret_closes_it_at_once() {
    let stage = stage().await;
    stage.refuse(8).await;
    stage.assert_open("ROW").await;
    stage.secrets.rotate("TOKEN", "new-token-1234567890");
    stage.status.store(200, Ordering::SeqCst);
    assert_eq!(stage.call("ROW").await["ok"], true);
    assert_eq!(stage.call("SAME").await["ok"], true);
    stage.world.stop().await;
}

#[tokio::test]
async fn the_owner_can_close_it_by_hand() {
    let stage = stage().await;
    stage.refuse(8).await;
    stage.assert_open("SAME").await;
    let team = stage.world.principal("team", &json!([{"may": "invoke"}, {"may": "edit"}])).await;
    let path = "/api/directory/SAME/breaker/reset";
    assert_eq!(send(stage.world.bearer(&team, Method::POST, path)).await.status, 403);
    let reset = send(stage.world.owner(Method::POST, path)).await;
    assert_eq!((reset.status, &reset.json()["cleared"]), (200, &json!(1)), "{}", reset.text);
    stage.refuse(7).await;
    stage.world.stop().await;
}

#[tokio::test]
async fn a_caller_cannot_open_it_with_bad_arguments_and_a_success_ends_the_row_of_refusals() {
    let stage = stage().await;
    for status in [400, 404, 422, 429, 500] {
        stage.status.store(status, Ordering::SeqCst);
        for _ in 0..3 {
            assert_eq!(stage.call("ROW").await["error"]["code"], format!("http:{status}"));
        }
    }
    stage.status.store(401, Ordering::SeqCst);
    stage.refuse(7).await;
    stage.status.store(200, Ordering::SeqCst);
    assert_eq!(stage.call("ROW").await["ok"], true);
    stage.status.store(401, Ordering::SeqCst);
    stage.refuse(7).await;
    for _ in 0..12 {
        assert_eq!(stage.call("OPEN").await["error"]["code"], "http:401", "a row without a credential has no breaker");
    }
    stage.world.stop().await;
}

#[tokio::test]
async fn it_is_shared_by_replicas_and_survives_a_restart() {
    let stage = stage().await;
    stage.refuse(8).await;
    let builder = World::with()
        .allow(&[stage.upstream.origin()])
        .database(&stage.world.database_url)
        .clock(stage.world.clock.clone());
    let other = stage.secrets.give(builder).start().await;
    let refused = other.invoke("ROW", "x").await;
    assert_eq!((refused.status, refused.error()), (503, "breaker_open:ROW".to_owned()), "{}", refused.text);
    other.stop().await;
    stage.world.stop().await;
}
