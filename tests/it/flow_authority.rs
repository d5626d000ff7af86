//! A flow's authority: whoever may call it may run its steps, so who writes steps must be able to run them, and what is
//! shown of a step is shown to those who see its row.

use callbook_tests::book::{echo, flow, http, with};
use callbook_tests::caller::{Line, with_token};
use callbook_tests::door::{Answer, send};
use callbook_tests::issuer::Issuer;
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::executor::v1::{Arguments, ShapeRequest, arguments::Form};
use reqwest::Method;
use serde_json::{Value, json};

async fn write(world: &World, key: &str, method: Method, path: &str, body: &Value) -> Answer {
    send(world.bearer(key, method, path).json(body)).await
}

#[tokio::test]
async fn who_writes_steps_must_be_able_to_run_them() {
    let world = World::start().await;
    for key in ["TEAM_SAY", "PAY_OUT"] {
        world.create(&echo(key)).await;
    }
    let grants = json!([{"may": "edit", "prefix": "TEAM_"}, {"may": "invoke", "prefix": "TEAM_"}]);
    let team = world.principal("team", &grants).await;
    let own = write(&world, &team, Method::POST, "/api/directory", &flow("TEAM_OWN", "TEAM_SAY: $1")).await;
    assert_eq!(own.status, 201, "{}", own.text);
    let needs = json!("invoke:PAY_OUT");
    let reaching = flow("TEAM_FLOW", "TEAM_SAY: $1 > PAY_OUT: $PREV");
    let content = json!({"content": reaching["content"]});
    for (method, path, body) in [
        (Method::POST, "/api/directory", &reaching),
        (Method::PUT, "/api/directory/TEAM_OWN", &reaching),
        (Method::PATCH, "/api/directory/TEAM_OWN", &content),
        (
            Method::PATCH,
            "/api/directory/TEAM_SAY",
            &json!({"type": "flow", "target": "", "examples": ["example"], "content": reaching["content"]}),
        ),
    ] {
        let mut body = body.clone();
        if let Some(key) = path.strip_prefix("/api/directory/").filter(|_| body.get("key").is_some()) {
            body["key"] = key.into();
        }
        let refused = write(&world, &team, method, path, &body).await;
        assert_eq!((refused.status, &refused.json()["needs"]), (403, &needs), "{path}: {}", refused.text);
    }
    let imported = write(&world, &team, Method::POST, "/api/directory:import", &json!([reaching])).await;
    assert!(imported.text.contains("forbidden") && imported.text.contains("PAY_OUT"), "{}", imported.text);
    assert_eq!(world.get("/api/directory/TEAM_FLOW").await.status, 404);

    world.create(&reaching).await;
    let words = json!({"examples": ["another example"], "content": format!("# NOTES: seldom\n{}", reaching["content"].as_str().unwrap())});
    let described = write(&world, &team, Method::PATCH, "/api/directory/TEAM_FLOW", &words).await;
    assert_eq!(described.status, 200, "its words are its editor's: {}", described.text);
    let other = json!({"content": reaching["content"].as_str().unwrap().replace("$PREV", "all of it")});
    let refused = write(&world, &team, Method::PATCH, "/api/directory/TEAM_FLOW", &other).await;
    assert_eq!((refused.status, &refused.json()["needs"]), (403, &needs), "{}", refused.text);
    let called = write(&world, &team, Method::POST, "/api/dispatch", &json!({"key": "TEAM_FLOW", "body": "a"})).await;
    assert_eq!((called.status, &called.json()["ok"]), (200, &json!(true)), "the owner lent it: {}", called.text);
    world.stop().await;
}

#[tokio::test]
async fn a_shape_tells_what_a_step_would_send_to_those_who_see_its_row() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let target = format!("GET {}/inner/$1", upstream.origin());
    world.create(&with(http("HIDDEN", &target, "$1=word", ""), &json!({}))).await;
    world.create(&flow("FLOW", "HIDDEN: $1")).await;
    let (issuer, mut executor) = (Issuer::of(&world).await, ExecutorServiceClient::new(world.channel().await));
    let mut plan = async |token: &str| {
        let arguments = Some(Arguments { form: Some(Form::Body("a".into())) });
        let request = ShapeRequest { key: "FLOW".into(), arguments };
        let shape = executor.shape(with_token(token, None, request)).await.unwrap().into_inner();
        String::from_utf8(shape.plan_json.unwrap().to_vec()).unwrap()
    };
    let narrow = plan(&issuer.bearer(&["FLOW"]).await).await;
    assert!(narrow.contains("HIDDEN") && !narrow.contains("/inner/"), "{narrow}");
    let wide = plan(&issuer.bearer(&["FLOW", "HIDDEN"]).await).await;
    assert!(wide.contains("/inner/a"), "{wide}");
    let line = Line::to(&world).await;
    assert!(line.call(&issuer.bearer(&["FLOW"]).await, "FLOW", "a").await.unwrap().ok);
    world.stop().await;
}
