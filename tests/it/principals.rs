//! Principals: let in by the owner, held to their grants, and gone the moment that the owner says so.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use callbook_tests::book;
use callbook_tests::door::{Answer, Door, send};
use callbook_tests::upstream::{Upstream, json as answered};
use callbook_tests::world::World;
use futures::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

async fn call(door: &Door, key: &str, row: &str, body: &str) -> Answer {
    send(door.bearer(key, Method::POST, "/api/dispatch").json(&json!({"key": row, "body": body}))).await
}

async fn rows(world: &World) {
    for key in ["TEAM_ECHO", "OTHER_ECHO"] {
        world.create(&book::echo(key)).await;
    }
    let schema = json!({"type": "object", "properties": {"text": {"type": "string"}}});
    let sensitive = json!({"sensitive": true, "input_schema": schema});
    world.create(&book::with(book::echo("TEAM_SECRET"), &sensitive)).await;
}

#[tokio::test]
async fn a_key_is_shown_once_and_lists_show_grants_and_no_key() {
    let world = World::start().await;
    let grants = json!([{"may": "invoke", "prefix": "TEAM_"}, {"may": "read_receipts", "prefix": ""}]);
    let made = world.post("/api/principals", &json!({"name": "team.1", "grants": grants})).await;
    let key = made.json()["api_key"].as_str().unwrap().to_owned();
    assert_eq!((made.status, &made.json()["grants"]), (201, &grants), "{}", made.text);
    assert!(key.starts_with("cbk_") && key.len() > 40);
    let listed = world.get("/api/principals").await;
    let principals = listed.json()["principals"].as_array().unwrap().clone();
    assert_eq!((principals.len(), &principals[0]["name"], &principals[0]["grants"]), (1, &json!("team.1"), &grants));
    assert!(!listed.text.contains(&key[4..]) && !listed.text.contains("hash"), "{}", listed.text);
    let again = world.post("/api/principals", &json!({"name": "team.1", "grants": []})).await;
    assert_eq!((again.status, again.error().as_str()), (409, "already_exists"), "{}", again.text);
    for bad in
        [json!({"name": ""}), json!({"name": "a b"}), json!({"name": "x", "grants": [{"may": "fly"}]}), json!({})]
    {
        assert_eq!(world.post("/api/principals", &bad).await.status, 400, "{bad}");
    }
    let revoked = send(world.owner(Method::DELETE, "/api/principals/team.1")).await.json();
    assert_eq!((&revoked["ok"], &revoked["revoked"]), (&json!(true), &json!(1)), "{revoked}");
    let again = world.post("/api/principals/team.1/revoke", &json!({})).await.json();
    assert_eq!(again["revoked"], 0, "{again}");
    assert_eq!(world.get("/api/principals").await.json()["principals"], json!([]));
    let all = world.get("/api/principals?include_revoked=true").await.json();
    assert!(all["principals"][0]["revoked_at"].is_string(), "{all}");
    assert_eq!(send(world.owner(Method::DELETE, "/api/principals/nobody")).await.status, 404);
    world.stop().await;
}

#[tokio::test]
async fn a_principal_calls_what_its_grants_cover_and_learns_nothing_of_the_rest() {
    let world = World::start().await;
    rows(&world).await;
    let team = world.principal("team", &json!([{"may": "invoke", "prefix": "TEAM_"}])).await;
    assert_eq!(call(&world, &team, "TEAM_ECHO", "a").await.json()["ok"], true);
    for hidden in ["OTHER_ECHO", "NOT_THERE"] {
        let refused = call(&world, &team, hidden, "a").await;
        assert_eq!((refused.status, refused.error().as_str()), (403, "forbidden"), "{}", refused.text);
        assert_eq!(refused.json()["needs"], format!("invoke:{hidden}"));
    }
    let sensitive = call(&world, &team, "TEAM_SECRET", "a").await;
    assert_eq!(
        (sensitive.status, &sensitive.json()["held"]["reason"]),
        (202, &json!("sensitive")),
        "{}",
        sensitive.text
    );
    let unknown = call(&world, &team, "TEAM_ECH0", "a").await;
    assert_eq!(unknown.error(), "unknown_key");
    assert!(!unknown.text.contains("OTHER"), "{}", unknown.text);
    let asked = send(world.bearer(&team, Method::GET, "/api/dispatch?ask=give%20back%20what%20came")).await;
    assert!(asked.text.contains("TEAM_ECHO") && !asked.text.contains("OTHER_ECHO"), "{}", asked.text);
    let contract = send(world.bearer(&team, Method::GET, "/api/dispatch?key=OTHER_ECHO")).await;
    assert_eq!((contract.status, contract.error().as_str()), (404, "unknown_key"), "{}", contract.text);
    for (method, path) in [(Method::POST, "/api/directory"), (Method::PUT, "/api/directory/TEAM_NEW")] {
        let refused = send(world.bearer(&team, method, path).json(&book::echo("TEAM_NEW"))).await;
        assert_eq!((refused.status, &refused.json()["needs"]), (403, &json!("edit:TEAM_NEW")), "{}", refused.text);
    }
    let principals = send(world.bearer(&team, Method::GET, "/api/principals")).await;
    assert_eq!((principals.status, &principals.json()["needs"]), (403, &json!("owner")), "{}", principals.text);
    world.stop().await;
}

#[tokio::test]
async fn an_editor_writes_its_own_part_of_the_book() {
    let world = World::start().await;
    rows(&world).await;
    let editor = world.principal("editor", &json!([{"may": "edit", "prefix": "TEAM_"}])).await;
    let write = async |row: &Value| send(world.bearer(&editor, Method::POST, "/api/directory").json(row)).await;
    assert_eq!(write(&book::echo("TEAM_NEW")).await.status, 201);
    let other = write(&book::echo("OTHER_NEW")).await;
    assert_eq!((other.status, &other.json()["needs"]), (403, &json!("edit:OTHER_NEW")), "{}", other.text);
    let call = call(&world, &editor, "TEAM_NEW", "a").await;
    assert_eq!((call.status, &call.json()["needs"]), (403, &json!("invoke:TEAM_NEW")), "to write is not to call");
    let request = world.bearer(&editor, Method::PATCH, "/api/directory/TEAM_SECRET").json(&json!({"sensitive": false}));
    let lowered = send(request).await;
    assert_eq!(lowered.status, 403, "a gate is lowered by the owner or who may approve: {}", lowered.text);
    let history = world.get("/api/directory/TEAM_NEW/history").await;
    assert!(history.text.contains("principal:editor"), "{}", history.text);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn i6_once_a_revocation_is_acknowledged_nothing_passes_the_commit_point_anywhere() {
    let upstream = Upstream::start(|_| answered(200, "{}")).await;
    let first = World::with().allow(&[upstream.origin()]).start().await;
    let second = World::with().allow(&[upstream.origin()]).database(&first.database_url).start().await;
    first.create(&book::http("SEND", &format!("POST {}/$1", upstream.origin()), "$1=word", "")).await;
    for round in 0..4 {
        let key = first.principal(&format!("team-{round}"), &json!([{"may": "invoke"}])).await;
        let (revoked, stop, late) = (AtomicBool::new(false), AtomicBool::new(false), AtomicUsize::new(0));
        let callers = join_all((0..12).map(|n| {
            let (door, key, revoked, stop, late) = ([&first, &second][n % 2], &key, &revoked, &stop, &late);
            async move {
                while !stop.load(Ordering::SeqCst) {
                    let began_late = revoked.load(Ordering::SeqCst);
                    let answer = call(door, key, "SEND", if began_late { "late" } else { "early" }).await;
                    match (answer.status, began_late) {
                        (401, true) => drop(late.fetch_add(1, Ordering::SeqCst)),
                        (200 | 401, false) => {}
                        _ => panic!("late: {began_late}, {} {}", answer.status, answer.text),
                    }
                }
            }
        }));
        let revoke = async {
            tokio::time::sleep(std::time::Duration::from_millis(150)).await;
            send(first.owner(Method::DELETE, &format!("/api/principals/team-{round}"))).await;
            revoked.store(true, Ordering::SeqCst);
            // well inside of the second for which a key that was seen is believed
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
            stop.store(true, Ordering::SeqCst);
        };
        tokio::join!(callers, revoke);
        assert!(late.load(Ordering::SeqCst) > 0, "somebody tried");
    }
    let seen = upstream.seen();
    assert!(!seen.iter().any(|seen| seen.target == "/late") && seen.iter().any(|seen| seen.target == "/early"));
    first.stop().await;
    second.stop().await;
}

#[tokio::test]
async fn in_a_private_catalogue_strangers_read_nothing_and_receipts_stay_confirmed() {
    let private = |overrides: &mut callbook_runtime::settings::Overrides| overrides.catalogue = Some("private".into());
    let world = World::with().set(private).start().await;
    rows(&world).await;
    let team = world.principal("team", &json!([{"may": "invoke", "prefix": "TEAM_"}])).await;
    let id = world.invoke("TEAM_ECHO", "a").await.id();
    let reads = [
        "/api/dispatch?ask=give%20back",
        "/api/dispatch?key=TEAM_ECHO",
        "/api/dispatch?registry=1",
        "/api/dispatch?map=1",
        "/api/directory",
        "/api/directory/TEAM_ECHO",
        "/api/directory:list",
        "/api/directory:stamp",
        "/api/directory:categories",
        "/api/directory:search?q=echo",
        "/api/directory:describe?key=TEAM_ECHO",
    ];
    for path in reads {
        let refused = world.look(path).await;
        assert_eq!((refused.status, refused.error().as_str()), (401, "unauthorized"), "{path}: {}", refused.text);
        let own = send(world.bearer(&team, Method::GET, path)).await;
        assert_eq!(own.status, 200, "{path}: {}", own.text);
        assert!(!own.text.contains("OTHER_ECHO"), "{path} shows a row of others: {}", own.text);
    }
    for public in ["/api/dispatch", "/healthz", "/readyz", "/llms.txt", "/openapi.json", &format!("/receipt/{id}")] {
        assert_eq!(world.look(public).await.status, 200, "{public}");
    }
    assert_eq!(world.look(&format!("/api/dispatch?confirm={id}")).await.json()["confirmed"], true);
    world.stop().await;
}
