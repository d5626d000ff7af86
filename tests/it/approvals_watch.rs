//! The watcher's rules: what they let through, refuse and hold, and that whatever breaks them refuses.

use callbook_runtime::grpc::from_status;
use callbook_tests::world::{Answer, keyed, owned, send};
use callbook_tests::{book, database};
use callbook_wire::executor::v1 as wire;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use reqwest::Method;
use serde_json::{Value, json};
use tonic::Code;

use super::approvals::Shop;

impl Shop {
    /// Puts a rule as the owner; it must be taken.
    async fn rule(&self, name: &str, rule: &Value) -> Value {
        let request = self.world.owner(Method::PUT, &format!("/api/watch-rules/{name}"));
        let answer = send(request.json(rule)).await;
        assert!(matches!(answer.status, 200 | 201), "{}", answer.text);
        answer.json()
    }

    /// A call of any row by the team.
    async fn team_calls(&self, key: &str, body: &str) -> Answer {
        let body = json!({"key": key, "body": body});
        send(self.world.bearer(&self.team, Method::POST, "/api/dispatch").json(&body)).await
    }

    async fn names(&self) -> Vec<String> {
        let listed = self.world.get("/api/watch-rules").await.json();
        listed["rules"].as_array().unwrap().iter().map(|rule| rule["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Behind the product's back.
    async fn write(&self, sql: &'static str) {
        let mut owner = database::owner(&self.world.database_url).await;
        sqlx::query(sql).execute(&mut owner).await.unwrap();
    }
}

fn denied(answer: &Answer, reason: &str) {
    assert_eq!((answer.status, answer.error()), (403, format!("denied:{reason}")), "{}", answer.text);
    assert_eq!(answer.json()["ran"], false);
}

#[tokio::test]
async fn rules_are_asked_by_position_then_name_and_the_first_that_matches_decides() {
    let shop = Shop::open().await;
    let put = shop.rule("b-small", &json!({"position": 10, "pattern_body": "^[0-9]$", "action": "allow"})).await;
    assert_eq!((&put["ok"], &put["created"], &put["reason"]), (&json!(true), &json!(true), &Value::Null), "{put}");
    shop.rule("a-never", &json!({"position": 10, "pattern_body": "^9$", "action": "deny", "reason": "nine is taken"}))
        .await;
    shop.rule(
        "z-first",
        &json!({"position": -1, "pattern_key": "PAY", "pattern_body": "^5$", "action": "hold", "reason": "look at it"}),
    )
    .await;
    shop.rule("elsewhere", &json!({"position": -9, "pattern_key": "PA", "action": "deny"})).await;
    assert_eq!(shop.names().await, ["elsewhere", "z-first", "a-never", "b-small"]);

    assert_eq!(shop.pay("7").await.status, 200);
    denied(&shop.pay("9").await, "nine is taken");
    let held = shop.pay("5").await;
    assert_eq!((held.status, &held.json()["held"]["reason"]), (202, &json!("look at it")), "{}", held.text);
    let none = shop.pay("77").await;
    assert_eq!((none.status, &none.json()["held"]["reason"]), (202, &json!("sensitive")), "{}", none.text);
    assert_eq!(shop.upstream.count(), 1);

    let again = shop.rule("b-small", &json!({"position": 99, "pattern_body": "^[0-9]$", "action": "deny"})).await;
    assert_eq!(again["created"], false);
    denied(&shop.pay("7").await, "b-small");
    let gone = send(shop.world.owner(Method::DELETE, "/api/watch-rules/b-small")).await.json();
    assert_eq!((&gone["ok"], &gone["deleted"]), (&json!(true), &json!(1)), "{gone}");
    assert_eq!(send(shop.world.owner(Method::DELETE, "/api/watch-rules/b-small")).await.json()["deleted"], 0);
    assert_eq!(shop.pay("7").await.status, 202);
    let written = shop.events("mutate").await;
    let of_rule = |event: &&Value| event["watch_rule"] == "b-small";
    assert_eq!(written.iter().filter(of_rule).count(), 3, "each write of a rule is in the log: {written:?}");
    shop.world.stop().await;
}

#[tokio::test]
async fn rules_speak_of_sensitive_rows_and_never_of_the_owner() {
    let shop = Shop::open().await;
    shop.rule("all", &json!({"action": "deny", "reason": "closed"})).await;
    shop.world.create(&book::echo("TELL")).await;
    let plain = shop.world.bearer(&shop.team, Method::POST, "/api/dispatch").json(&json!({"key": "TELL", "body": "a"}));
    assert_eq!(send(plain).await.status, 200);
    denied(&shop.pay("7").await, "closed");
    assert_eq!(shop.world.invoke("PAY", "7").await.status, 200, "the owner's calls go on");
    assert_eq!(shop.upstream.count(), 1);
    shop.world.stop().await;
}

#[tokio::test]
async fn a_flow_that_reaches_a_sensitive_row_is_held_once_as_a_whole() {
    let shop = Shop::open().await;
    shop.world.create(&book::flow("PAY_TWICE", "PAY: $1 > PAY: $1")).await;
    let call = || shop.team_calls("PAY_TWICE", "7");
    let held = call().await;
    assert_eq!(held.status, 202, "{}", held.text);
    shop.approve(&super::approvals::approval(&held)).await;
    let fired = call().await;
    assert_eq!((fired.status, &fired.json()["ok"]), (200, &json!(true)), "{}", fired.text);
    assert_eq!(shop.upstream.count(), 2, "its written steps need no approval of their own");
    shop.world.stop().await;
}

#[tokio::test]
async fn what_a_rule_refuses_no_flow_and_no_gate_of_a_token_lets_through() {
    let shop = Shop::open().await;
    shop.world.create(&book::flow("PAY_TWICE", "PAY: $1 > PAY: $1")).await;
    let call = || shop.team_calls("PAY_TWICE", "7");
    let held = call().await;
    shop.approve(&super::approvals::approval(&held)).await;
    shop.rule("closed", &json!({"pattern_key": "PAY", "action": "deny", "reason": "closed"})).await;
    let fired = call().await;
    assert_eq!(fired.json()["error"]["code"], "denied:closed", "{}", fired.text);
    let gated = json!({"keys": ["PAY"], "risk": "high", "effect": "write", "uses": 5, "owner_gate": true});
    let gated = shop.world.mint(&gated).await;
    let refused = shop.world.spend(&gated, None, "PAY", "7").await;
    assert_eq!((refused.status, &*refused.error()), (403, "denied:closed"), "{}", refused.text);
    assert_eq!(shop.upstream.count(), 0);
    shop.world.stop().await;
}

#[tokio::test]
async fn json_in_a_piece_of_text_is_matched_without_its_escapes() {
    let shop = Shop::open().await;
    let schema = json!({"type": "object", "properties": {"id": {"type": "string"}, "req": {"type": "object"}}});
    let row = book::http("RUN", &format!("POST {}/run", shop.upstream.origin()), "$1=id | $2=req", "${req}");
    shop.world.create(&book::with(row, &json!({"sensitive": true, "input_schema": schema}))).await;
    shop.rule("never", &json!({"position": 1, "pattern_body": "delete", "action": "deny", "reason": "never"})).await;
    shop.rule("rest", &json!({"position": 2, "action": "allow"})).await;
    let call = async |body: &str| shop.team_calls("RUN", body).await;
    let allowed = call(r#"7|{"op":"show"}"#).await;
    assert_eq!(allowed.status, 200, "{}", allowed.text);
    for hidden in [r#"7|{"op":"delete"}"#, r#"7|{"op":"\u0064elete"}"#] {
        let refused = call(hidden).await;
        assert_eq!((refused.status, &*refused.error()), (403, "denied:never"), "{hidden}: {}", refused.text);
    }
    assert_eq!(shop.upstream.count(), 1);
    shop.world.stop().await;
}

#[tokio::test]
async fn a_broken_pattern_in_the_table_denies_and_lets_nothing_through() {
    let shop = Shop::open().await;
    shop.rule("first", &json!({"position": -5, "action": "allow"})).await;
    assert_eq!(shop.pay("7").await.status, 200);
    shop.write("insert into watch_rule (name, position, pattern_key, action, actor, updated_at) values ('bad', 9, '(', 'deny', 'x', now())").await;
    denied(&shop.pay("7").await, "watcher_error");
    shop.write("update watch_rule set pattern_key = '' where name = 'bad'").await;
    assert_eq!(shop.pay("7").await.status, 200, "the table is what it should be again");
    shop.write("alter table watch_rule rename to away").await;
    denied(&shop.pay("7").await, "watcher_error");
    shop.write("alter table away rename to watch_rule").await;
    assert_eq!(shop.pay("7").await.status, 200);
    assert_eq!(shop.upstream.count(), 3);
    shop.world.stop().await;
}

#[tokio::test]
async fn where_nothing_can_be_held_nothing_goes_on() {
    let shop = Shop::open().await;
    shop.write("alter table approval rename to away").await;
    denied(&shop.pay("7").await, "watcher_error");
    assert_eq!(shop.upstream.count(), 0);
    shop.write("alter table away rename to approval").await;
    assert_eq!(shop.pay("7").await.status, 202);
    shop.world.stop().await;
}

#[tokio::test]
async fn what_is_no_rule_is_refused_with_its_field() {
    let shop = Shop::open().await;
    let cases = [
        (json!({"name": "r", "action": "deny", "pattern_key": "("}), "pattern_key"),
        (json!({"name": "r", "action": "deny", "pattern_key": "a)|(b"}), "pattern_key"),
        (json!({"name": "r", "action": "deny", "pattern_body": "[z-a]"}), "pattern_body"),
        (json!({"name": "r", "action": "deny", "pattern_body": "(\\w{200}){200}"}), "pattern_body"),
        (json!({"name": "r", "action": "deny", "reason": "x".repeat(257)}), "reason"),
        (json!({"name": "no name", "action": "deny"}), "name"),
        (json!({"action": "deny"}), "name"),
    ];
    for (rule, field) in cases {
        let refused = shop.world.post("/api/watch-rules", &rule).await;
        assert_eq!((refused.status, refused.error()), (400, "invalid_request".to_owned()), "{rule}: {}", refused.text);
        assert_eq!(refused.json()["field"], field, "{rule}: {}", refused.text);
    }
    for rule in
        [json!({"name": "r"}), json!({"name": "r", "action": "maybe"}), json!({"name": "r", "action": "deny", "x": 1})]
    {
        assert_eq!(shop.world.post("/api/watch-rules", &rule).await.status, 400, "{rule}");
    }
    let other =
        send(shop.world.owner(Method::PUT, "/api/watch-rules/a").json(&json!({"name": "b", "action": "deny"}))).await;
    assert_eq!((other.status, &other.json()["field"]), (400, &json!("name")), "{}", other.text);
    assert_eq!(shop.names().await, Vec::<String>::new());
    let created = shop.world.post("/api/watch-rules", &json!({"name": "r", "action": "hold"})).await;
    assert_eq!(created.status, 201, "{}", created.text);
    let boss =
        shop.world.bearer(&shop.boss, Method::POST, "/api/watch-rules").json(&json!({"name": "r", "action": "allow"}));
    assert_eq!(send(boss).await.status, 403);
    shop.world.stop().await;
}

#[tokio::test]
async fn rules_are_put_listed_and_taken_away_over_grpc() {
    let shop = Shop::open().await;
    let mut executor = ExecutorServiceClient::new(shop.world.channel().await);
    let rule = wire::WatchRule {
        name: "r".into(),
        position: 3,
        pattern_key: "PAY".into(),
        pattern_body: String::new(),
        action: wire::WatchAction::Deny.into(),
        reason: "closed".into(),
    };
    let put = || wire::PutWatchRuleRequest { rule: Some(rule.clone()) };
    assert_eq!(executor.put_watch_rule(keyed(&shop.boss, put())).await.unwrap_err().code(), Code::PermissionDenied);
    let done = executor.put_watch_rule(owned(put())).await.unwrap().into_inner();
    assert_eq!((done.rule.as_ref(), done.created), (Some(&rule), true));
    let listed = executor.list_watch_rules(owned(wire::ListWatchRulesRequest {})).await.unwrap().into_inner().rules;
    assert_eq!(listed, std::slice::from_ref(&rule));
    let odd = wire::WatchRule { action: 0, ..rule.clone() };
    let refused = executor.put_watch_rule(owned(wire::PutWatchRuleRequest { rule: Some(odd) })).await.unwrap_err();
    assert!(from_status(&refused).metadata().contains(&("field", "action".to_owned())), "{refused:?}");
    denied(&shop.pay("7").await, "closed");
    let delete = |name: &str| owned(wire::DeleteWatchRuleRequest { name: name.into() });
    for (name, deleted) in [("r", 1), ("r", 0), ("no\0name", 0)] {
        assert_eq!(executor.delete_watch_rule(delete(name)).await.unwrap().into_inner().deleted, deleted, "{name:?}");
    }
    shop.world.stop().await;
}
