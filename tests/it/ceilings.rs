//! What one good credential cannot grow into: a sensitive row by way of others, and more calls than one tree may have.

use callbook_tests::book::{echo, flow, with};
use callbook_tests::caller::Line;
use callbook_tests::issuer::Issuer;
use callbook_tests::provider::{Asked, Form, Provider, Say};
use callbook_tests::world::World;
use serde_json::{Value, json};

use crate::agent::{agent, children, deployment};

/// What the model was told of each of its wishes, in their order: `ok`, `failed`, `refused` or `held`.
fn statuses(told: &str) -> Vec<&str> {
    told.split(" status=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// Repeats everything that it was told.
fn all_of(asked: &Asked) -> Say {
    Say::text(asked.messages.iter().skip(1).map(|(_, text)| text.as_str()).collect::<String>())
}

/// An agent whose model tries a harmless row and every way to a sensitive one.
async fn stage() -> (World, Provider, callbook_tests::secrets::Secrets) {
    let invoke = |key: &str| ("invoke", json!({"key": key, "body": "a"}));
    let wishes = vec![invoke("SAY"), invoke("SECRET"), invoke("BY_FLOW"), invoke("BY_EACH"), invoke("BY_DEPTH")];
    let provider = Provider::start(Form::OpenaiChat, move |at, asked| match at % 2 {
        0 => Say::Calls(wishes.clone()),
        _ => all_of(asked),
    })
    .await;
    let (world, secrets) = deployment(&provider, &[]).await;
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    world.create(&echo("SAY")).await;
    world.create(&with(echo("SECRET"), &json!({"sensitive": true, "input_schema": schema}))).await;
    world.create(&flow("BY_FLOW", "SAY: $1 > SECRET: $PREV")).await;
    world.create(&flow("BY_EACH", "{ SAY: [\"$1\"] } > EACH: SECRET: $PREV")).await;
    world.create(&flow("BY_DEPTH", "?: SAY: $1 > SAY: x | BY_FLOW: y")).await;
    world.create(&agent("HELPER", "Help.")).await;
    world.create(&flow("ASKS_HELPER", "HELPER: $1")).await;
    (world, provider, secrets)
}

#[tokio::test]
async fn a_token_of_low_risk_reaches_no_sensitive_row_by_flow_by_each_or_by_agent() {
    let (world, provider, _secrets) = stage().await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let token = |keys: &[&str]| {
        let mut claims = issuer.claims(keys);
        claims["cap"]["effect"] = "write".into();
        claims["cap"]["uses"] = 50.into();
        claims
    };
    let ways = ["SECRET", "BY_FLOW", "BY_EACH", "BY_DEPTH"];
    let wide = issuer.root(&token(&[&ways[..], &["SAY", "HELPER"]].concat())).await;
    for key in ways {
        assert_eq!(line.call(&wide, key, "a").await.unwrap_err(), "risk_ceiling:low<row:high", "{key}");
    }
    let answer = line.call(&wide, "HELPER", "try").await.unwrap();
    let refused = ["ok", "refused", "refused", "refused", "refused"];
    assert_eq!((answer.ok, statuses(&answer.result)), (true, refused.to_vec()), "{answer:?}");
    assert_eq!(answer.result.matches("risk_ceiling:low<row:high").count(), 4, "{}", answer.result);

    // who may call the agent alone, also where a flow has written its call, lends it nothing else
    for narrow in ["HELPER", "ASKS_HELPER"] {
        let only = issuer.root(&token(&[narrow])).await;
        let answer = line.call(&only, narrow, "try").await.unwrap();
        assert_eq!((answer.ok, statuses(&answer.result)), (true, vec!["refused"; 5]), "{narrow}: {answer:?}");
        assert_eq!(answer.result.matches("unknown_key").count(), 5, "{}", answer.result);
    }
    assert_eq!(provider.upstream.count(), 6);
    for key in ways {
        let listed = world.get(&format!("/api/invocations?key={key}")).await.json();
        assert_eq!(listed["invocations"], json!([]), "{key} was committed");
    }
    world.stop().await;
}

#[tokio::test]
async fn agents_that_start_agents_end_at_the_budget_of_the_tree() {
    let provider = Provider::start(Form::OpenaiChat, |_, asked| match asked.messages.len() {
        1 => Say::Calls(vec![("invoke", json!({"key": "BOMB", "body": "x"})); 16]),
        _ => all_of(asked),
    })
    .await;
    let (world, _secrets) = deployment(&provider, &[]).await;
    let bounds = json!({"target": "lab-1?depth=8&cost=1000&tokens=100000000", "timeout_ms": 120_000});
    world.create(&with(agent("BOMB", "Start sixteen of yourself."), &bounds)).await;
    let call = json!({"key": "BOMB", "body": "x", "deadline_ms": 120_000});
    let answer = world.post("/api/dispatch", &call).await;
    assert_eq!((answer.status, &answer.json()["ok"]), (200, &json!(true)), "{}", answer.text);
    let listed = world.get("/api/invocations?limit=500").await.json();
    let made = listed["invocations"].as_array().unwrap();
    let agents = made.iter().filter(|one| one["runner"] == "agent").count();
    assert_eq!(agents, 65, "the root and 64 calls: {} in all", made.len());
    assert!(made.iter().all(|one| one["status"] != "PENDING"), "{listed}");
    assert!(provider.upstream.count() <= 130, "{}", provider.upstream.count());

    // each of them was told why it got no more
    let model: Vec<Value> = children(&world, &answer.id()).await;
    let last = model.iter().rev().find(|child| child["runner"] == "model").unwrap();
    assert!(last["request"]["text"].as_str().unwrap().contains("budget_exhausted:calls"), "{last}");
    world.stop().await;
}
