//! Flows: steps that are calls of rows, what passes between them, where they stop, and the receipts of all of it.

use std::sync::{Arc, OnceLock};

use callbook_tests::book::{echo, flow, http, with};
use callbook_tests::caller::Line;
use callbook_tests::door::{Answer, Door, send};
use callbook_tests::issuer::Issuer;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use reqwest::Method;
use serde_json::{Value, json};

/// A row of a built-in function.
fn function(key: &str, target: &str, template: &str) -> Value {
    let content = format!("# WHAT: Use a function\n# EX: example\n{template}");
    json!({"key": key, "type": "fn", "target": target, "content": content})
}

/// The receipts of the calls that this one made, oldest first.
async fn steps(door: &Door, answer: &Answer) -> Vec<Value> {
    let listed = door.get(&format!("/api/invocations?parent={}", answer.id())).await.json();
    let mut steps = listed["invocations"].as_array().unwrap().clone();
    steps.reverse();
    steps
}

fn keys(steps: &[Value]) -> Vec<&str> {
    steps.iter().map(|step| step["key"].as_str().unwrap()).collect()
}

/// An upstream that gives its path back, or the status that stands in it.
async fn mirror() -> Upstream {
    Upstream::start(|seen| {
        let word = seen.target.rsplit('/').next().unwrap_or_default();
        match word.parse::<u16>() {
            Ok(status) => answered(status, &json!({"refused": status}).to_string()),
            Err(_) => answered(200, &json!({"path": word, "n": 1}).to_string().replace(":1}", ":9007199254740993}")),
        }
    })
    .await
}

async fn stage() -> (World, Upstream) {
    let upstream = mirror().await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&echo("SAY")).await;
    world.create(&function("UPPER", "upper", "[\"$1\"]")).await;
    world.create(&http("GET_IT", &format!("GET {}/get/$1", upstream.origin()), "$1=word", "")).await;
    (world, upstream)
}

#[tokio::test]
async fn values_pass_from_step_to_step_as_they_are_and_are_never_split_again() {
    let (world, _upstream) = stage().await;
    world.create(&function("AS_IS", "echo", "[$1]")).await;
    world.create(&function("JOIN", "echo", "[\"$1\",\"$2\"]")).await;
    for (key, steps, body, output) in [
        (
            "OBJECT",
            "GET_IT: $1 => ALL > JSON: $.n > MERGE: n=$PREV, all=$ALL",
            "w",
            r#"{"n":9007199254740993,"all":{"path":"w","n":9007199254740993}}"#,
        ),
        ("WHOLE", "AS_IS: $1", r#"{"v":1.10}"#, r#"{"v":1.10}"#),
        (
            "LIST",
            r#"{ SAY: $1 | GET_IT: ["$1"] | AS_IS: [1e2] } => LIST > AS_IS: $LIST"#,
            "w",
            r#"["w",{"path":"w","n":9007199254740993},1e2]"#,
        ),
        ("ELEMENTS", r#"{ AS_IS: [[1,2.50,"three"]] } > JSON: $[0] > EACH: AS_IS: $PREV"#, "", r#"[1,2.50,"three"]"#),
    ] {
        world.create(&flow(key, steps)).await;
        let answer = world.invoke(key, body).await;
        assert!(answer.text.contains(&format!(r#""output":{output},"#)), "{steps}: {}", answer.text);
    }
    world.create(&flow("PIPES", "SAY: $1 > JOIN: $PREV|$1")).await;
    let answer = world.call("PIPES", &json!(["a|b"])).await.json();
    assert_eq!(answer["result"], "a|b|a|b", "{answer}");
    world.stop().await;
}

#[tokio::test]
async fn a_step_that_fails_stops_the_flow_and_names_itself_and_what_ran_keeps_its_receipt() {
    let (world, upstream) = stage().await;
    world.create(&flow("BREAKS", "SAY: $1 > GET_IT: 503 > SAY: never")).await;
    world.create(&flow("OUTER", "SAY: x > BREAKS: $1")).await;
    let answer = world.invoke("BREAKS", "a").await;
    let error = &answer.json()["error"];
    assert_eq!((answer.status, &answer.json()["ok"], &answer.json()["ran"]), (200, &json!(false), &json!(true)));
    assert_eq!(
        error,
        &json!({"code": "http:503", "message": "part 2, `GET_IT: 503`: the upstream answered 503", "upstream_status": 503,
            "retryable": true, "where": "GET_IT"})
    );
    assert_eq!(answer.json()["result"], "ERR:http:503:{\"refused\":503}");
    let ran = steps(&world, &answer).await;
    assert_eq!(keys(&ran), ["SAY", "GET_IT"]);
    let statuses: Vec<&Value> = ran.iter().map(|step| &step["status"]).collect();
    assert_eq!(statuses, ["PROVEN_MATERIAL_RESULT", "PROVEN_ATTEMPT_NO_MATERIAL_RESULT"]);
    let receipt = world.get(&format!("/api/dispatch?receipt={}", answer.id())).await.json();
    let mut children: Vec<&str> = receipt["children"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    children.sort_unstable();
    assert_eq!(children, ran.iter().map(|step| step["invocation_id"].as_str().unwrap()).collect::<Vec<_>>());

    let outer = world.invoke("OUTER", "a").await.json();
    assert_eq!(outer["error"]["where"], "BREAKS > GET_IT", "{outer}");
    // a flow that may have written is not called safe to repeat
    world.create(&http("PUT_IT", &format!("PUT {}/put/$1", upstream.origin()), "$1=word", "")).await;
    world.create(&flow("WRITES", "PUT_IT: $1 > GET_IT: 503")).await;
    assert_eq!(world.invoke("WRITES", "a").await.json()["error"]["retryable"], false);

    world.create(&flow("REFUSED", "SAY: $1 > NOBODY: $PREV")).await;
    let refused = world.invoke("REFUSED", "a").await.json();
    assert_eq!((&refused["error"]["code"], &refused["error"]["where"]), (&json!("unknown_key"), &json!("NOBODY")));
    world.create(&flow("LACKS", "GET_IT:")).await;
    let lacks = world.invoke("LACKS", "").await.json();
    assert_eq!(lacks["error"]["code"], "missing_argument:$1", "{lacks}");
    world.stop().await;
}

#[tokio::test]
async fn a_branch_that_fails_fails_its_block_and_the_others_end_by_themselves() {
    let (world, upstream) = stage().await;
    world.create(&flow("BLOCK", "{ GET_IT: 404 | GET_IT: [\"$1\"] | SAY: x } => ALL > SAY: $ALL")).await;
    let answer = world.invoke("BLOCK", "fine").await;
    let error = &answer.json()["error"];
    assert_eq!((&error["code"], &error["where"]), (&json!("http:404"), &json!("GET_IT")), "{}", answer.text);
    assert_eq!(upstream.count(), 2);
    let ended = steps(&world, &answer).await;
    let material = ended.iter().filter(|step| step["status"] == "PROVEN_MATERIAL_RESULT").count();
    assert_eq!((ended.len(), material), (3, 2), "{ended:?}");
    world.stop().await;
}

#[tokio::test]
async fn a_condition_goes_by_the_outcome_and_never_by_text() {
    let (world, upstream) = stage().await;
    world.create(&flow("GO", "?: GET_IT: $1 > SAY: fine | UPPER: $PREV")).await;
    assert_eq!(world.invoke("GO", "word").await.json()["result"], "fine");
    assert_eq!(world.invoke("GO", "404").await.json()["result"], "ERR:HTTP:404:{\"REFUSED\":404}");
    world.create(&flow("WORDS", "?: SAY: $1 > SAY: fine | SAY: failed")).await;
    assert_eq!(world.invoke("WORDS", "ERR:http:500:no").await.json()["result"], "fine", "words decide nothing");
    world.create(&flow("ELSE", "?: GET_IT: $1 > SAY: fine > MERGE: given=$PREV")).await;
    assert_eq!(world.invoke("ELSE", "500").await.json()["output"], json!({"given": null}));
    assert_eq!(upstream.count(), 3);
    world.stop().await;
}

#[tokio::test]
async fn a_step_whose_row_moved_since_the_flow_was_admitted_is_not_run() {
    let door: Arc<OnceLock<Door>> = Arc::default();
    let edits = door.clone();
    let upstream = Upstream::thinking(move |_| {
        let door = edits.get().cloned();
        async move {
            if let Some(door) = door {
                door.change("SECOND", &json!({"timeout_ms": 1234})).await;
            }
            answered(200, "{}")
        }
    })
    .await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    world.create(&http("FIRST", &format!("POST {}/first", upstream.origin()), "none", "")).await;
    world.create(&echo("SECOND")).await;
    world.create(&flow("FLOW", "?: FIRST: > SECOND: $1 | SECOND: $1")).await;
    world.create(&flow("GUARDED", "FIRST: > ?: SECOND: $1 > SECOND: yes | UPPER: no")).await;
    assert_eq!(world.invoke("FLOW", "a").await.json()["ok"], true);
    assert!(door.set((*world).clone()).is_ok());
    for key in ["FLOW", "GUARDED"] {
        let answer = world.invoke(key, "a").await;
        let error = &answer.json()["error"];
        assert_eq!((&error["code"], &error["where"]), (&json!("row_moved"), &json!("SECOND")), "{}", answer.text);
        assert_eq!(keys(&steps(&world, &answer).await), ["FIRST"], "what moved was not run in any form");
        world.change("SECOND", &json!({"timeout_ms": 4321})).await;
    }
    world.stop().await;
}

#[tokio::test]
async fn written_steps_run_by_the_flows_authority_within_its_risk_and_effect() {
    let (world, upstream) = stage().await;
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    world.create(&with(echo("SECRET_STEP"), &json!({"sensitive": true, "input_schema": schema}))).await;
    world.create(&http("PUT_IT", &format!("PUT {}/put/$1", upstream.origin()), "$1=word", "")).await;
    world.create(&flow("TEAM.PLAIN", "SAY: $1 > UPPER: $PREV")).await;
    world.create(&flow("TEAM.RISKY", "SAY: $1 > SECRET_STEP: $PREV")).await;
    world.create(&flow("TEAM.EACH", "GET_IT: $1 > JSON: $[*] > EACH: SECRET_STEP: $PREV")).await;
    world.create(&flow("TEAM.WRITES", "?: SAY: $1 > SAY: x | PUT_IT: y")).await;
    world.create(&flow("TEAM.DEEP", "TEAM.RISKY: $1")).await;
    let key = world.principal("team", &json!([{"may": "invoke", "prefix": "TEAM."}])).await;
    let call = |row: &'static str| {
        let request = world.bearer(&key, Method::POST, "/api/dispatch");
        send(request.json(&json!({"key": row, "body": "a"})))
    };
    let plain = call("TEAM.PLAIN").await;
    assert_eq!((plain.status, &plain.json()["result"]), (200, &json!("A")), "{}", plain.text);
    assert_eq!(call("SAY").await.status, 403, "its steps are not its caller's");
    for risky in ["TEAM.RISKY", "TEAM.EACH", "TEAM.DEEP"] {
        let held = call(risky).await;
        assert_eq!((held.status, &held.json()["ran"]), (202, &json!(false)), "{risky}: {}", held.text);
    }
    let (issuer, line) = (Issuer::of(&world).await, Line::to(&world).await);
    let token = issuer.bearer(&["TEAM.PLAIN", "TEAM.RISKY", "TEAM.EACH", "TEAM.WRITES", "TEAM.DEEP"]).await;
    assert!(line.call(&token, "TEAM.PLAIN", "a").await.unwrap().ok);
    for risky in ["TEAM.RISKY", "TEAM.EACH", "TEAM.DEEP"] {
        assert_eq!(line.call(&token, risky, "a").await.unwrap_err(), "risk_ceiling:low<row:high", "{risky}");
    }
    assert_eq!(line.call(&token, "TEAM.WRITES", "a").await.unwrap_err(), "effect_ceiling:read<row:write");
    assert_eq!(line.call(&token, "SAY", "a").await.unwrap_err(), "scope_mismatch");
    assert_eq!(upstream.count(), 0);
    world.stop().await;
}

#[tokio::test]
async fn a_wide_nested_flow_stops_at_its_budget_and_a_deep_one_too() {
    let (world, _upstream) = stage().await;
    let wide = |row: &str| format!("{{ {} }}", vec![format!("{row}: [\"$1\"]"); 16].join(" | "));
    world.create(&flow("WIDE_1", &wide("SAY"))).await;
    world.create(&flow("WIDE_2", &wide("WIDE_1"))).await;
    world.create(&flow("WIDE_3", &wide("WIDE_2"))).await;
    let answer = world.invoke("WIDE_3", "a").await;
    let error = &answer.json()["error"];
    assert_eq!((answer.status, &error["code"]), (200, &json!("budget_exhausted:calls")), "{}", answer.text);
    let listed = world.get("/api/invocations?limit=500").await.json();
    let made = listed["invocations"].as_array().unwrap().len();
    assert!((2..=65).contains(&made), "{made} calls grew from one");

    world.create(&flow("DEEP_1", "SAY: $1")).await;
    for n in 2..=9 {
        world.create(&flow(&format!("DEEP_{n}"), &format!("DEEP_{}: $1", n - 1))).await;
    }
    assert_eq!(world.invoke("DEEP_8", "a").await.json()["result"], "a");
    let deep = world.invoke("DEEP_9", "a").await.json();
    assert_eq!(deep["error"]["code"], "budget_exhausted:depth", "{deep}");
    let bomb = world.post("/api/directory", &flow("BOMB", "GET_IT: $1 > JSON: $[*] > EACH: BOMB: $PREV")).await;
    assert_eq!((bomb.status, bomb.error().as_str()), (422, "registry_hygiene_refused: cycle"), "{}", bomb.text);
    world.stop().await;
}

#[tokio::test]
async fn a_flow_keeps_the_time_of_its_row() {
    let slow = Upstream::slow(std::time::Duration::from_secs(5), |_| answered(200, "{}")).await;
    let world = World::with().allow(&[slow.origin()]).start().await;
    world.create(&http("SLOW", &format!("GET {}/slow", slow.origin()), "none", "")).await;
    world.create(&with(flow("FLOW", "SLOW: > SLOW:"), &json!({"timeout_ms": 800}))).await;
    let (began, answer) = (std::time::Instant::now(), world.invoke("FLOW", "").await);
    let error = &answer.json()["error"];
    assert!(began.elapsed() < std::time::Duration::from_secs(3), "it took {:?}", began.elapsed());
    assert_eq!((&error["code"], &error["where"]), (&json!("http:timeout"), &json!("SLOW")), "{}", answer.text);
    assert_eq!(slow.count(), 1);
    world.stop().await;
}

#[tokio::test]
async fn a_shape_of_a_flow_shows_what_each_step_would_do_and_runs_nothing() {
    let (world, upstream) = stage().await;
    world.create(&flow("INNER", "UPPER: $1")).await;
    world.create(&flow("FLOW", "GET_IT: $1 => X > { SAY: $X | INNER: [\"b\"] | NOBODY: } > JSON: $[0]")).await;
    let shaped = world.post("/api/dispatch", &json!({"key": "FLOW", "body": "w", "shape": true})).await;
    let steps = shaped.json()["plan"]["steps"].clone();
    let at =
        |n: usize, fields: &[&str]| -> Vec<Value> { fields.iter().map(|field| steps[n][*field].clone()).collect() };
    assert_eq!(
        at(0, &["part", "key", "type", "effect", "risk", "arguments", "verdict", "method"]),
        [
            json!(1),
            json!("GET_IT"),
            json!("http"),
            json!("read"),
            json!("low"),
            json!(["w"]),
            json!("allowed"),
            json!("GET")
        ],
        "{}",
        shaped.text
    );
    assert_eq!(steps[0]["url"], json!(format!("{}/get/w", upstream.origin())));
    assert_eq!(
        at(1, &["part", "key", "arguments", "verdict"]),
        [json!(2), json!("SAY"), json!([{"later": "$X"}]), Value::Null]
    );
    let inner = &steps[2]["plan"]["steps"][0];
    assert_eq!((&inner["key"], &inner["plan"]), (&json!("UPPER"), &json!({"function": "upper", "arguments": ["b"]})));
    assert_eq!(at(3, &["key", "verdict"]), [json!("NOBODY"), json!("unknown_key")]);
    assert_eq!(at(4, &["part", "step", "key"]), [json!(3), json!("JSON: $[0]"), Value::Null]);
    assert_eq!((upstream.count(), world.get("/api/invocations").await.json()["invocations"].clone()), (0, json!([])));
    world.stop().await;
}
