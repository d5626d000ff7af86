//! The four rows that the seed prints, one of each type, over HTTP and over gRPC, with the owner's key and with a token.
//! One upstream stands for all of theirs.

use callbook_tests::caller::{Line, request};
use callbook_tests::door::send;
use callbook_tests::issuer::Issuer;
use callbook_tests::secrets::Secrets;
use callbook_tests::upstream::{Seen, Upstream, json as answered};
use callbook_tests::world::{World, owned};
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use reqwest::Method;
use serde_json::{Value, json};

/// The value of the secret that two of the rows name.
const GROK: &str = "sk-of-the-models-0123456789";
/// What the model says.
const SAID: &str = "You are warmly welcome. [REPLY]it is \"done\" > now[/REPLY]";

fn answer(seen: &Seen) -> Value {
    match seen.target.as_str() {
        "/v1/models" => json!({"object": "list", "data": [{"id": "grok-4.3"}]}),
        "/v1/chat/completions" => json!({
            "object": "chat.completion",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10},
        }),
        _ => json!({"queued": true}),
    }
}

/// The rows as they are printed, their upstream's address apart, and the two that the flow reaches.
fn rows(origin: &str) -> [Value; 6] {
    let now = "# Return the current time from the build clock in Pacific time (America/Los_Angeles).\n\
               # WHEN_TO_USE: any object or model that needs the current date or time.\n# ARGS: none\n\
               # EX: [NOW][/NOW]\n# OUTPUT: { now, today, time, zone, iso } — Pacific-offset ISO; today is the Pacific calendar date.";
    let models = "# WHAT: List every model on the xAI API. No args\n# WHEN_TO_USE: you need to grok models\n\
                  # ARGS: see content\n# EX: [GROK_MODELS][/GROK_MODELS]\n# List every model on the xAI API. No args.";
    let agent = "You are a friendly peptide concierge (LAB TEST v1). One warm sentence,\n\
                 then end with [REPLY]your text[/REPLY].";
    let finish = "# Phase C of the inbound turn: given the full agent output text in $1, extract the\n\
                  # LAST [REPLY], send via blooio to $2, return the send result.\n\
                  # $1=agent output text. $2=recipient phone.\nLAST_REPLY_OF: $1\n> SEND_BY_CHANNEL: blooio|$2|$PREV";
    let sends = "# WHAT: Send a text by a channel\n# ARGS: $1=channel | $2=to | $3=text\n\
                 {\"channel\":\"$1\",\"to\":\"$2\",\"text\":\"$3\"}";
    let reply = "# WHAT: The last reply of a text\n# ARGS: $1=text\n# EX: [REPLY]a[/REPLY]\n[\"$1\"]";
    [
        json!({"key": "NOW", "type": "fn", "target": "now", "category": "time", "content": now}),
        json!({"key": "GROK_MODELS", "type": "http", "category": "grok", "auth": "bearer:GROK_API_KEY",
               "target": format!("GET {origin}/v1/models"), "content": models}),
        json!({"key": "PROMPT_LAB_AGENT", "type": "agent", "target": "grok-4.3", "auth": "bearer:GROK_API_KEY", "content": agent}),
        json!({"key": "LAST_REPLY_OF", "type": "fn", "target": "last_reply_of", "content": reply}),
        json!({"key": "SEND_BY_CHANNEL", "type": "http", "target": format!("POST {origin}/send"), "content": sends}),
        json!({"key": "BLOOIO_FINISH", "type": "flow", "content": finish}),
    ]
}

async fn stage() -> (World, Upstream, Secrets) {
    let upstream = Upstream::start(|seen| answered(200, &answer(seen).to_string())).await;
    let origin = upstream.origin();
    let secrets = Secrets::bound_to(&origin, &[("GROK_API_KEY", GROK)]);
    let provider =
        format!("[providers.xai]\nbase_url = \"{origin}/v1\"\nform = \"openai-chat\"\nmodels = [\"grok*\"]\n");
    let world = secrets.give(World::with().allow(std::slice::from_ref(&origin)).toml(&provider));
    let world = world.set(|set| set.timezone = Some("America/Los_Angeles".to_owned())).start().await;
    for row in rows(&origin) {
        world.create(&row).await;
    }
    (world, upstream, secrets)
}

/// A row, what it is called with, and whether its result is what the seed says.
type Tried = (&'static str, String, fn(&str) -> bool);

fn calls() -> [Tried; 4] {
    let offset = |text: &str| text.contains("\"zone\":\"America/Los_Angeles\"") && text.contains("-0");
    [
        ("NOW", String::new(), offset),
        ("GROK_MODELS", String::new(), |text| text.contains(r#""id":"grok-4.3""#)),
        ("PROMPT_LAB_AGENT", "hello".to_owned(), |text| text.contains("[REPLY]it is")),
        ("BLOOIO_FINISH", format!("{SAID}|+43 1"), |text| text.contains(r#""queued":true"#)),
    ]
}

#[tokio::test]
async fn the_four_rows_of_the_seed_work_over_http_and_grpc_with_a_key_and_with_a_token() {
    let (world, upstream, _secrets) = stage().await;
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let mut claims = issuer.claims(&calls().map(|(key, _, _)| key));
    claims["cap"]["effect"] = "write".into();
    claims["cap"]["uses"] = 100.into();
    let token = issuer.root(&claims).await;
    let mut executor = ExecutorServiceClient::new(world.channel().await);
    for (key, body, is_right) in calls() {
        let by_key = world.invoke(key, &body).await;
        let call = world.cap(&token, None, Method::POST, "/api/dispatch").json(&json!({"key": key, "body": body}));
        let by_token = send(call).await;
        for answer in [by_key, by_token] {
            let told = answer.json();
            let result = told["result"].as_str().unwrap_or_default();
            assert!(told["ok"] == true && is_right(result), "{key}: {}", answer.text);
        }
        let over_grpc = executor.invoke(owned(request(key, &body))).await.unwrap().into_inner().answer.unwrap();
        let with_token = line.call(&token, key, &body).await.unwrap();
        for answer in [over_grpc, with_token] {
            assert!(answer.ok && is_right(&answer.result), "{key}: {answer:?}");
        }
    }
    let seen = upstream.seen();
    let of = |target: &str| seen.iter().filter(|one| one.target == target).collect::<Vec<_>>();
    assert!(of("/v1/models").iter().all(|one| one.headers["authorization"] == format!("Bearer {GROK}").as_str()));
    assert_eq!((of("/v1/models").len(), of("/v1/chat/completions").len(), of("/send").len()), (4, 4, 4));
    let sent = r#"{"channel":"blooio","to":"+43 1","text":"it is \"done\" > now"}"#;
    assert!(of("/send").iter().all(|one| one.body == sent), "{:?}", of("/send")[0].body);
    let asked: Value = serde_json::from_slice(&of("/v1/chat/completions")[0].body).unwrap();
    let system = asked["messages"][0]["content"].as_str().unwrap();
    assert!(asked["model"] == "grok-4.3" && system.starts_with("You are a friendly peptide concierge"), "{asked}");

    // the flow's right is its own: its steps are not the token's
    for step in ["LAST_REPLY_OF", "SEND_BY_CHANNEL"] {
        assert_eq!(line.call(&token, step, "a|b|c").await.unwrap_err(), "scope_mismatch", "{step}");
    }
    world.stop().await;
}
