//! Bounds of agents, and providers that fail: each ends in a typed outcome with a receipt.

use callbook_tests::book::{echo, with};
use callbook_tests::provider::{Asked, COST, Form, Provider, Say};
use callbook_tests::world::World;
use serde_json::{Value, json};

use crate::agent::{agent, children, deployment, receipt};

const NOTHING: &str = "PROVEN_ATTEMPT_NO_MATERIAL_RESULT";

fn never_done(_: usize, _: &Asked) -> Say {
    Say::call("invoke", json!({"key": "ECHO", "body": "again"}))
}

/// What an agent with this target ends with, how often the provider was asked, and its receipt.
async fn end(world: &World, provider: &Provider, target: &str) -> (String, usize, Value) {
    let before = provider.upstream.count();
    let row = with(agent("HELPER", "Help."), &json!({ "target": target }));
    if world.put("HELPER", &row).await.status == 404 {
        world.create(&row).await;
    }
    let answer = world.invoke("HELPER", "x").await;
    let code = answer.json()["error"]["code"].as_str().unwrap_or("ok").to_owned();
    (code, provider.upstream.count() - before, receipt(world, &answer.id()).await)
}

#[tokio::test]
async fn a_loop_a_price_and_tokens_have_their_ends() {
    let provider = Provider::start(Form::OpenaiChat, never_done).await;
    let (world, _secrets) = deployment(&provider, &[]).await;
    world.create(&echo("ECHO")).await;
    for (target, code, asked) in [
        ("lab-1?loop=3", "agent:loop_limit", 3),
        ("lab-1?cost=0.5&loop=100", "agent:cost_limit", 3),
        ("lab-1?cost=100&tokens=250&loop=100", "agent:token_limit", 3),
        ("lab-1", "agent:cost_limit", 5),
    ] {
        let (ended, times, receipt) = end(&world, &provider, target).await;
        assert_eq!((ended.as_str(), times), (code, asked), "{target}");
        assert_eq!((&receipt["status"], &receipt["waste"]), (&json!(NOTHING), &json!(true)), "{target}: {receipt}");
        let cost = receipt["cost_usd"].as_f64().unwrap();
        #[expect(clippy::cast_precision_loss, reason = "a handful")]
        let expected = COST * asked as f64;
        assert!((cost - expected).abs() < 1e-9, "{target}: {cost}");
    }
    let last = provider.asked().pop().unwrap();
    assert!(last.body["max_completion_tokens"].as_u64().unwrap() <= 8_192);
    for (target, why) in [
        ("lab-1?loop=0", "target: `loop` is a whole number from 1 to 100"),
        ("lab-1?temperature=1", "target: no option is named `temperature`"),
        ("", "target: an agent row names its model here"),
    ] {
        let row = with(agent("OTHER", "Help."), &json!({ "target": target }));
        let refused = world.post("/api/directory", &row).await;
        let told = (refused.status, refused.error());
        assert_eq!(told, (422, "registry_hygiene_refused: bad_template".to_owned()), "{}", refused.text);
        assert_eq!(refused.json()["message"], why);
    }
    world.stop().await;
}

#[tokio::test]
async fn agents_in_agents_add_up_and_stand_three_deep() {
    let provider = Provider::start(Form::OpenaiChat, |_, asked| match asked.messages.len() {
        1 => Say::call("invoke", json!({"key": "HELPER", "body": "deeper"})),
        _ => Say::text(asked.last()),
    })
    .await;
    let (world, _secrets) = deployment(&provider, &[]).await;
    let rich = json!({"target": "lab-1?cost=5"});
    world.create(&with(agent("HELPER", "Ask yourself."), &rich)).await;
    let answer = world.invoke("HELPER", "x").await;
    let told = answer.json();
    assert!(told["ok"] == true && told["result"].as_str().unwrap().contains("agent:depth_limit"), "{told}");
    assert_eq!(provider.upstream.count(), 6);
    let cost = |value: &Value| value["cost_usd"].as_f64().unwrap();
    assert!((told["cost"].as_f64().unwrap() - 6.0 * COST).abs() < 1e-9, "{told}");
    let mut of = answer.id();
    for depth in [3.0, 2.0, 1.0] {
        let whole = receipt(&world, &of).await;
        assert!((cost(&whole) - depth * 2.0 * COST).abs() < 1e-9, "{whole}");
        let inner = children(&world, &of).await.into_iter().find(|child| child["runner"] == "agent").unwrap();
        assert_eq!(inner["parent"], json!(of));
        of = inner["invocation_id"].as_str().unwrap().to_owned();
    }
    let refused = receipt(&world, &of).await;
    assert_eq!((&refused["error"]["code"], &refused["cost_usd"]), (&json!("agent:depth_limit"), &json!(0.0)));
    // what an inner agent takes is taken from the outer one's bounds
    let (code, times, _) = end(&world, &provider, "lab-1?cost=0.3").await;
    assert_eq!((code.as_str(), times), ("agent:cost_limit", 2));
    world.stop().await;
}

#[tokio::test]
async fn a_provider_that_fails_is_a_typed_outcome_with_a_receipt() {
    for form in [Form::OpenaiChat, Form::AnthropicMessages] {
        for (said, code, asked) in [
            (Say::Broken, "agent:http:fetch", 1),
            (Say::Status(429, Some("0")), "agent:http:429", 3),
            (Say::Status(429, Some("3600")), "agent:http:429", 1),
            (Say::Status(529, None), "agent:http:529", 3),
            (Say::Status(500, None), "agent:http:500", 1),
            (Say::Status(401, None), "agent:http:401", 1),
            (Say::Raw("certainly! {"), "agent:malformed", 1),
            (Say::Raw("{\"choices\":[]}"), "agent:malformed", 1),
            (Say::Raw(""), "agent:malformed", 1),
            (Say::Refusal, "agent:refused", 1),
            (Say::text(" "), "agent:empty_answer", 1),
        ] {
            let scripted = said.clone();
            let provider = Provider::start(form, move |_, _| scripted.clone()).await;
            let (world, _secrets) = deployment(&provider, &[]).await;
            let (ended, times, receipt) = end(&world, &provider, "lab-1").await;
            assert_eq!((ended.as_str(), times), (code, asked), "{form:?} {said:?}");
            assert_eq!(receipt["status"], NOTHING, "{said:?}");
            let children = children(&world, receipt["invocation_id"].as_str().unwrap()).await;
            let [model] = &children[..] else { panic!("{children:?}") };
            assert_eq!((&model["runner"], &model["parent"]), (&json!("model"), &receipt["invocation_id"]));
            assert!(!model["request"].is_null(), "{model}");
            if !matches!(said, Say::Refusal | Say::Text(_)) {
                assert_eq!(model["error"]["code"], code, "{model}");
            }
            world.stop().await;
        }
    }
}

#[tokio::test]
async fn a_provider_that_limits_the_rate_is_asked_again_when_it_says_so() {
    let provider = Provider::start(Form::OpenaiChat, |at, _| match at {
        0 => Say::Status(429, Some("0")),
        1 => Say::Status(503, Some("0.1")),
        _ => Say::text("now"),
    })
    .await;
    let (world, _secrets) = deployment(&provider, &[]).await;
    world.create(&agent("HELPER", "Help.")).await;
    let answer = world.invoke("HELPER", "x").await;
    assert_eq!(answer.json()["result"], "now", "{}", answer.text);
    let children = children(&world, &answer.id()).await;
    let [model] = &children[..] else { panic!("{children:?}") };
    assert!(model["response"]["text"].as_str().unwrap().contains("\"tries\":3"), "{model}");
    world.stop().await;
}

#[tokio::test]
async fn a_model_that_nobody_has_and_a_key_that_is_missing_end_before_anything_is_sent() {
    let provider = Provider::start(Form::OpenaiChat, |_, _| Say::text("x")).await;
    let (world, secrets) = deployment(&provider, &[]).await;
    for (target, code) in [("grok-4.3", "agent:unknown_model"), ("gw:other/lab-1", "agent:unknown_model")] {
        let (ended, times, receipt) = end(&world, &provider, target).await;
        assert_eq!((ended.as_str(), times, &receipt["status"]), (code, 0, &json!(NOTHING)));
    }
    let (ended, times, _) = end(&world, &provider, "gw:lab/any-model").await;
    assert_eq!((ended.as_str(), times), ("ok", 1));
    secrets.lose("MODEL_KEY");
    let (ended, times, _) = end(&world, &provider, "lab-1").await;
    assert_eq!((ended.as_str(), times), ("auth:missing_secret", 0));
    world.stop().await;
}
