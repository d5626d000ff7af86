//! Held calls: a person decides on one exact call, which is fired once or not at all.

use std::time::Duration;

use callbook_domain::clock::Clock;
use callbook_tests::issuer::{Aim, Holder};
use callbook_tests::secrets::Secrets;
use callbook_tests::token::proof;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::{Answer, World, send};
use callbook_tests::{book, database};
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};
use time::macros::datetime;

/// A value that no answer may hold.
const SECRET: &str = "sk-live-9f8e7d6c5b4a";

/// A deployment with the sensitive row `PAY`, a principal that may call it, and one that may approve its calls.
pub struct Shop {
    pub world: World,
    pub upstream: Upstream,
    pub clock: Clock,
    pub team: String,
    pub boss: String,
    _secrets: Secrets,
}

impl Shop {
    pub async fn open() -> Shop {
        Shop::with(Upstream::start(|_| answered(200, r#"{"paid":true}"#)).await).await
    }

    pub async fn with(upstream: Upstream) -> Shop {
        let clock = Clock::held(datetime!(2026-08-01 12:00 UTC));
        let secrets = Secrets::bound_to(&upstream.origin(), &[("PAY_KEY", SECRET)]);
        let world = World::with().allow(&[upstream.origin()]).clock(clock.clone());
        let world = secrets.give(world).start().await;
        world.create(&pay_row(&upstream)).await;
        let team = world.principal("shop", &json!([{"may": "invoke"}])).await;
        let boss = world.principal("boss", &json!([{"may": "approve", "prefix": "PAY"}, {"may": "invoke"}])).await;
        Shop { world, upstream, clock, team, boss, _secrets: secrets }
    }

    /// A call of `PAY` by the team, with more fields beside key and body.
    pub async fn pay_with(&self, amount: &str, more: &Value) -> Answer {
        let mut body = json!({"key": "PAY", "body": amount});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        send(self.world.bearer(&self.team, Method::POST, "/api/dispatch").json(&body)).await
    }

    pub async fn pay(&self, amount: &str) -> Answer {
        self.pay_with(amount, &json!({})).await
    }

    /// A call that must be held; gives the approval's id.
    pub async fn held(&self, amount: &str) -> String {
        let answer = self.pay(amount).await;
        assert_eq!(answer.status, 202, "{}", answer.text);
        approval(&answer)
    }

    pub async fn decide(&self, by: &str, id: &str, verb: &str, body: &Value) -> Answer {
        let path = format!("/api/approvals/{id}/{verb}");
        send(self.world.bearer(by, Method::POST, &path).json(body)).await
    }

    pub async fn approve(&self, id: &str) {
        let decided = self.decide(&self.boss, id, "approve", &json!({})).await;
        assert_eq!((decided.status, &decided.json()["state"]), (200, &json!("approved")), "{}", decided.text);
    }

    pub async fn look(&self, by: &str, id: &str) -> Answer {
        send(self.world.bearer(by, Method::GET, &format!("/api/approvals/{id}"))).await
    }

    pub async fn list(&self, by: &str, query: &str) -> Vec<String> {
        let page = send(self.world.bearer(by, Method::GET, &format!("/api/approvals{query}"))).await.json();
        let ids = page["approvals"].as_array().unwrap().iter();
        ids.map(|approval| approval["id"].as_str().unwrap().to_owned()).collect()
    }

    /// The bodies of this kind in the log, oldest first.
    pub async fn events(&self, kind: &str) -> Vec<Value> {
        let mut connection = database::owner(&self.world.database_url).await;
        let bodies: Vec<String> = sqlx::query_scalar("select body from event where kind = $1 order by id")
            .bind(kind)
            .fetch_all(&mut connection)
            .await
            .unwrap();
        bodies.iter().map(|body| serde_json::from_str(body).unwrap()).collect()
    }
}

fn pay_row(upstream: &Upstream) -> Value {
    let schema = json!({"type": "object", "properties": {"amount": {"type": "string"}}, "required": ["amount"]});
    let columns = json!({"sensitive": true, "input_schema": schema, "auth": "bearer:PAY_KEY"});
    book::with(book::http("PAY", &format!("POST {}/pay/$1", upstream.origin()), "$1=amount", ""), &columns)
}

/// The id of the approval that an answer waits for.
pub fn approval(answer: &Answer) -> String {
    answer.json()["held"]["approval"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_sensitive_call_waits_for_a_person_and_is_fired_once_when_it_is_approved() {
    let shop = Shop::open().await;
    let first = shop.pay("7").await;
    let body = first.json();
    assert_eq!((first.status, &body["ok"], &body["ran"]), (202, &json!(false), &json!(false)), "{}", first.text);
    assert_eq!(body["held"]["reason"], "sensitive", "{body}");
    assert_eq!(body["held"]["expires_at"], "2026-08-01T12:15:00.000Z", "{body}");
    assert!(first.id().starts_with("inv_"), "{body}");
    let id = approval(&first);
    assert_eq!(body["held"]["url"], format!("{}/api/approvals/{id}", shop.world.http), "{body}");

    let again = shop.pay("7").await.json();
    assert_eq!((&again["held"], &again["proof"]["invocation_id"]), (&body["held"], &body["proof"]["invocation_id"]));
    assert_eq!(shop.upstream.count(), 0);

    shop.approve(&id).await;
    let fired = shop.pay("7").await;
    assert_eq!((fired.status, &fired.json()["ok"]), (200, &json!(true)), "{}", fired.text);
    assert_eq!(fired.id(), first.id(), "it runs under the id that it was held under");
    assert_eq!(shop.look(&shop.boss, &id).await.json()["state"], "used");

    let next = shop.pay("7").await;
    assert_eq!(next.status, 202, "the approval is used up: {}", next.text);
    assert_ne!(approval(&next), id);
    assert_eq!(shop.upstream.count(), 1);
    shop.world.stop().await;
}

#[tokio::test]
async fn a_changed_byte_is_another_call_and_never_fired_by_the_old_approval() {
    let shop = Shop::open().await;
    let id = shop.held("7").await;
    shop.approve(&id).await;
    for other in ["8", "7 ", "70"] {
        assert_ne!(shop.held(other).await, id, "{other}");
    }
    let typed = json!({"key": "PAY", "args": {"amount": "7"}});
    let typed = send(shop.world.bearer(&shop.team, Method::POST, "/api/dispatch").json(&typed)).await;
    assert_eq!(typed.status, 202, "{}", typed.text);
    let other = shop.world.principal("other", &json!([{"may": "invoke"}])).await;
    let other = shop.world.bearer(&other, Method::POST, "/api/dispatch").json(&json!({"key": "PAY", "body": "7"}));
    assert_eq!(send(other).await.status, 202, "another caller's call is another call");
    assert_eq!(shop.upstream.count(), 0);
    assert_eq!(shop.pay("7").await.status, 200);
    assert_eq!(shop.upstream.count(), 1);
    shop.world.stop().await;
}

#[tokio::test]
async fn an_approved_call_of_a_row_that_changed_since_is_held_anew() {
    let shop = Shop::open().await;
    let id = shop.held("7").await;
    shop.approve(&id).await;
    shop.world.change("PAY", &json!({"target": format!("POST {}/refund/$1", shop.upstream.origin())})).await;
    let look = shop.look(&shop.boss, &id).await.json();
    assert_eq!((&look["is_current"], &look["shape"]), (&json!(false), &Value::Null), "{look}");
    assert_ne!(shop.held("7").await, id);
    assert_eq!(shop.upstream.count(), 0);
    shop.world.change("PAY", &json!({"target": format!("POST {}/pay/$1", shop.upstream.origin())})).await;
    assert_eq!(shop.pay("7").await.status, 200, "the row is what was approved again");
    shop.world.stop().await;
}

#[tokio::test]
async fn fifty_repeats_at_once_of_an_approved_call_fire_it_once() {
    let upstream = Upstream::slow(Duration::from_millis(50), |_| answered(200, r#"{"paid":true}"#)).await;
    let shop = Shop::with(upstream).await;
    // repeats that come together are committed together: several rounds, so that some do
    for round in 1..=8 {
        let amount = round.to_string();
        let id = shop.held(&amount).await;
        shop.approve(&id).await;
        let tries = join_all((0..50).map(|_| shop.pay(&amount))).await;
        let fired = tries.iter().filter(|answer| answer.status == 200).count();
        assert_eq!((fired, shop.upstream.count()), (1, round), "round {round}");
        let others: Vec<&Answer> = tries.iter().filter(|answer| answer.status != 200).collect();
        assert!(others.iter().all(|answer| answer.status == 202), "{others:?}");
        let anew: std::collections::BTreeSet<String> = others.iter().map(|answer| approval(answer)).collect();
        assert!(anew.len() == 1 && !anew.contains(&id), "the others wait for one new approval: {anew:?}");
    }
    shop.world.stop().await;
}

#[tokio::test]
async fn a_refused_call_is_told_why_until_its_time_is_over() {
    let shop = Shop::open().await;
    let id = shop.held("7").await;
    let refused = shop.decide(&shop.boss, &id, "refuse", &json!({"reason": "not on a Friday"})).await;
    assert_eq!((refused.status, &refused.json()["state"]), (200, &json!("refused")), "{}", refused.text);
    let told = shop.pay("7").await;
    assert_eq!((told.status, told.error()), (403, "denied:not on a Friday".to_owned()), "{}", told.text);
    assert_eq!(told.json()["ran"], false);
    shop.held("8").await;
    shop.clock.advance(Duration::from_secs(15 * 60));
    assert_ne!(shop.held("7").await, id);
    assert_eq!(shop.look(&shop.boss, &id).await.json()["state"], "refused");
    assert_eq!(shop.upstream.count(), 0);
    shop.world.stop().await;
}

#[tokio::test]
async fn what_nobody_decided_or_fired_in_time_is_over() {
    let shop = Shop::open().await;
    let (approved, open) = (shop.held("7").await, shop.held("8").await);
    shop.approve(&approved).await;
    shop.clock.advance(Duration::from_secs(15 * 60 - 1));
    assert_eq!(shop.held("8").await, open, "a second is left");
    shop.clock.advance(Duration::from_secs(1));
    let late = shop.decide(&shop.boss, &open, "approve", &json!({})).await;
    assert_eq!((late.status, late.error()), (409, "already_decided:expired".to_owned()), "{}", late.text);
    assert_ne!(shop.held("7").await, approved, "an approval that was not used in time fires nothing");
    assert_ne!(shop.held("8").await, open);
    let (mut expired, mut both) = (shop.list(&shop.boss, "?state=expired").await, [open, approved]);
    expired.sort();
    both.sort(); // both were held at one moment
    assert_eq!(expired, both);
    assert_eq!(shop.upstream.count(), 0);
    shop.world.stop().await;
}

#[tokio::test]
async fn one_of_two_deciders_wins_and_the_other_is_told() {
    let shop = Shop::open().await;
    for amount in 0..8 {
        let id = shop.held(&amount.to_string()).await;
        let (nothing, second) = (json!({}), json!({"reason": "no"}));
        let (one, other) = tokio::join!(
            shop.decide(&shop.boss, &id, "approve", &nothing),
            shop.decide(&shop.boss, &id, "refuse", &second)
        );
        let (won, lost) = if one.status == 200 { (one, other) } else { (other, one) };
        let state = won.json()["state"].as_str().unwrap().to_owned();
        assert_eq!((won.status, lost.status, lost.error()), (200, 409, format!("already_decided:{state}")));
    }
    let decisions = shop.events("approve").await;
    assert_eq!(decisions.len(), 8, "one entry in the log for each decision: {decisions:?}");
    shop.world.stop().await;
}

#[tokio::test]
async fn nobody_decides_without_the_right_or_its_own_call() {
    let shop = Shop::open().await;
    let id = shop.held("7").await;
    let elsewhere = shop.world.principal("elsewhere", &json!([{"may": "approve", "prefix": "OTHER_"}])).await;
    for verb in ["approve", "refuse"] {
        let hidden = shop.decide(&elsewhere, &id, verb, &json!({})).await;
        assert_eq!(hidden.status, 404, "whether there is such a call is not told: {}", hidden.text);
        let own = shop.decide(&shop.team, &id, verb, &json!({})).await;
        assert_eq!(
            (own.status, own.error(), &own.json()["needs"]),
            (403, "forbidden".to_owned(), &json!("approve:PAY"))
        );
        let nobody = send(shop.world.anyone(Method::POST, &format!("/api/approvals/{id}/{verb}"))).await;
        assert_eq!(nobody.status, 401, "{}", nobody.text);
    }
    let boss = shop.world.bearer(&shop.boss, Method::POST, "/api/dispatch");
    let boss = send(boss.json(&json!({"key": "PAY", "body": "1"}))).await;
    let own = shop.decide(&shop.boss, &approval(&boss), "approve", &json!({})).await;
    assert_eq!((own.status, own.error()), (403, "forbidden".to_owned()), "{}", own.text);
    let owner = shop.world.post(&format!("/api/approvals/{}/approve", approval(&boss)), &json!({})).await;
    assert_eq!((owner.status, &owner.json()["decided_by"]), (200, &json!("owner:terminal-key")), "{}", owner.text);
    for body in [json!({"reason": "x".repeat(257)}), json!({"reason": "a\nb"}), json!({"why": "x"})] {
        let refused = shop.decide(&shop.boss, &id, "approve", &body).await;
        assert_eq!((refused.status, refused.error()), (400, "invalid_request".to_owned()), "{}", refused.text);
    }
    for unknown in ["apr_01JH0000000000000000000000", "apr_", "inv_01JH0000000000000000000000", "x"] {
        assert_eq!(shop.look(&shop.boss, unknown).await.status, 404, "{unknown}");
    }
    shop.world.stop().await;
}

#[tokio::test]
async fn a_person_sees_the_whole_request_and_no_secret() {
    let shop = Shop::open().await;
    let answer = shop.pay("a b").await;
    let id = approval(&answer);
    let look = shop.look(&shop.boss, &id).await;
    let (seen, row) = (look.json(), shop.world.row("PAY").await);
    assert_eq!((look.status, &seen["state"], &seen["is_current"]), (200, &json!("held"), &json!(true)), "{seen}");
    assert_eq!(seen["shape"]["method"], "POST", "{seen}");
    assert_eq!(seen["shape"]["url"], format!("{}/pay/a%20b", shop.upstream.origin()), "{seen}");
    assert_eq!(seen["shape"]["headers"]["Authorization"], "Bearer $PAY_KEY", "{seen}");
    assert_eq!(seen["shape"]["secret"], json!({"name": "PAY_KEY", "allowed": true}), "{seen}");
    assert_eq!((&seen["egress_host"], &seen["input"]), (&json!("127.0.0.1"), &json!({"body": "a b"})), "{seen}");
    assert_eq!(
        (&seen["contract_hash"], &seen["text_hash"], &seen["actor"], &seen["invocation_id"]),
        (&row["contract_hash"], &row["text_hash"], &json!("principal:shop"), &json!(answer.id())),
        "{seen}"
    );
    let own = shop.look(&shop.team, &id).await;
    assert_eq!(own.json(), seen, "the caller sees its own call");
    shop.approve(&id).await;
    assert_eq!(shop.pay("a b").await.status, 200);
    let sent = shop.upstream.seen();
    assert_eq!(sent[0].target, "/pay/a%20b", "what was shown is what was sent");
    assert_eq!(sent[0].headers["authorization"], format!("Bearer {SECRET}"));
    for text in [look.text, own.text, answer.text] {
        assert!(!text.contains(SECRET), "{text}");
    }
    shop.world.stop().await;
}

#[tokio::test]
async fn a_listing_shows_ones_own_calls_and_those_that_one_may_approve() {
    let shop = Shop::open().await;
    let other = shop.world.principal("other", &json!([{"may": "invoke"}])).await;
    let first = shop.held("1").await;
    let second = {
        let call = shop.world.bearer(&other, Method::POST, "/api/dispatch").json(&json!({"key": "PAY", "body": "2"}));
        approval(&send(call).await)
    };
    shop.clock.advance(Duration::from_secs(1));
    let third = shop.held("3").await;
    assert_eq!(shop.list(&other, "").await, std::slice::from_ref(&second));
    assert_eq!(shop.list(&shop.team, "").await, [third.clone(), first.clone()]);
    assert_eq!(shop.list(&shop.boss, "").await.len(), 3);
    shop.approve(&second).await;
    assert_eq!(shop.list(&shop.boss, "?state=approved").await, [second]);
    assert_eq!(shop.list(&shop.boss, "?state=held").await, [third.clone(), first.clone()]);
    let page = shop.world.get("/api/approvals?limit=1&state=held").await.json();
    assert_eq!(page["approvals"][0]["id"], third);
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = shop.world.get(&format!("/api/approvals?limit=1&state=held&cursor={cursor}")).await.json();
    assert_eq!((&next["approvals"][0]["id"], &next["next_cursor"]), (&json!(first), &Value::Null), "{next}");
    assert_eq!(shop.world.get("/api/approvals?state=lost").await.status, 400);
    assert_eq!(shop.world.get("/api/approvals?cursor=x").await.error(), "cursor_invalid");
    shop.world.stop().await;
}

#[tokio::test]
async fn a_caller_has_a_hundred_waiting_calls_at_most_and_others_have_theirs() {
    let shop = Shop::open().await;
    for amount in 0..100 {
        shop.held(&amount.to_string()).await;
    }
    let full = shop.pay("one more").await;
    assert_eq!((full.status, full.error().as_str()), (429, "overloaded"), "{}", full.text);
    assert_eq!(shop.pay("7").await.status, 202, "what waits already goes on waiting");
    let body = json!({"key": "PAY", "body": "9"});
    let other = send(shop.world.bearer(&shop.boss, Method::POST, "/api/dispatch").json(&body)).await;
    assert_eq!(other.status, 202, "{}", other.text);
    shop.clock.advance(Duration::from_secs(15 * 60));
    assert_eq!(shop.pay("one more").await.status, 202);
    shop.world.stop().await;
}

#[tokio::test]
async fn a_held_call_is_shown_to_a_holder_who_proves_it() {
    let shop = Shop::open().await;
    let alice = Holder::new(&shop.clock);
    let wanted = json!({"keys": ["PAY"], "risk": "high", "effect": "write", "holder": alice.jwk()});
    let token = shop.world.mint(&wanted).await;
    let held = shop.world.spend(&token, Some(&proof(&alice, &token, "PAY", "7")), "PAY", "7").await;
    let id = approval(&held);
    let look = async |proof: Option<&str>| {
        send(shop.world.cap(&token, proof, Method::GET, &format!("/api/approvals/{id}"))).await
    };
    let stolen = look(None).await;
    assert_eq!((stolen.status, &*stolen.error()), (401, "pop_required"), "{}", stolen.text);
    assert!(!stolen.text.contains("/pay/"), "{}", stolen.text);
    let sent = json!({"approval": id}).to_string();
    let own = look(Some(&alice.proof(&Aim { token: &token, key: "PAY", sent: &sent }))).await;
    assert_eq!((own.status, &own.json()["state"]), (200, &json!("held")), "{}", own.text);
    shop.world.stop().await;
}
