//! The exhaustive listing: whole, in order, and of one catalogue from the first page to the last.

use callbook_runtime::grpc::from_status;
use callbook_tests::book::{echo, saying, with};
use callbook_tests::world::{Answer, World, keyed, send};
use callbook_wire::resolver::v1 as resolver;
use callbook_wire::resolver::v1::resolver_service_client::ResolverServiceClient;
use reqwest::Method;
use serde_json::{Value, json};
use tonic::Code;

fn keys(page: &Value) -> Vec<&str> {
    page["results"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect()
}

async fn as_team(world: &World, team: &str, path: &str) -> Answer {
    send(world.bearer(team, Method::GET, path)).await
}

#[tokio::test]
async fn a_namespace_is_whole_segments_and_an_unknown_one_is_an_empty_page() {
    let world = World::start().await;
    for key in ["apps.bazaar.windows.open", "apps.bazaar.close", "apps.bazaarish", "solo", "APPS.x"] {
        world.create(&echo(key)).await;
    }
    for (namespace, expected) in [
        ("apps.bazaar", &["apps.bazaar.close", "apps.bazaar.windows.open"][..]),
        ("apps.bazaar.windows", &["apps.bazaar.windows.open"]),
        ("APPS", &["APPS.x"]),
        ("solo", &["solo"]),
        ("app", &[]),
        ("apps.", &[]),
        ("nowhere", &[]),
        ("%00", &[]),
        ("%E5%A4%A9", &[]),
    ] {
        let page = world.look(&format!("/api/directory:list?namespace={namespace}")).await;
        let told = page.json();
        assert_eq!((page.status, keys(&told)), (200, expected.to_vec()), "{namespace}: {}", page.text);
        assert_eq!((&told["total"], &told["next_cursor"]), (&json!(expected.len()), &Value::Null), "{namespace}");
        assert!(told["stamp"].as_str().unwrap().starts_with("sha256:"), "{told}");
    }
    let page = world.look("/api/directory:list?namespace=apps.bazaar&limit=1").await.json();
    let row = &page["results"][0];
    assert_eq!((&row["score"], &row["why"], &page["total"]), (&json!(0.0), &json!([]), &json!(2)), "{row}");
    for limit in ["51", "0", "-1", "x"] {
        let refused = world.look(&format!("/api/directory:list?limit={limit}")).await;
        assert_eq!(refused.status, 400, "{limit}: {}", refused.text);
    }
    world.stop().await;
}

#[tokio::test]
async fn what_a_narrowed_caller_does_not_see_is_neither_in_its_listing_nor_in_its_stamp() {
    let world = World::start().await;
    for key in ["TEAM_A", "TEAM_B", "TEAM_C", "OTHER_A"] {
        world.create(&echo(key)).await;
    }
    let team = world.principal("team", &json!([{"may": "invoke", "prefix": "TEAM_"}])).await;
    let page = as_team(&world, &team, "/api/directory:list?limit=2").await.json();
    assert_eq!((keys(&page), &page["total"]), (vec!["TEAM_A", "TEAM_B"], &json!(3)), "{page}");
    let stamp = as_team(&world, &team, "/api/directory:stamp").await.json();
    assert_eq!((&stamp["stamp"], &stamp["count"]), (&page["stamp"], &json!(3)));
    let all = world.get("/api/directory:stamp").await.json();
    assert!(all["stamp"] != stamp["stamp"] && all["count"] == 4, "{all}");
    assert_eq!(as_team(&world, &team, "/api/directory:list?namespace=OTHER_A").await.json()["total"], 0);

    let cursor = page["next_cursor"].as_str().unwrap();
    let next = format!("/api/directory:list?limit=2&cursor={cursor}");
    let others = world.get(&next).await;
    assert_eq!((others.status, others.error().as_str()), (409, "cursor_stale"), "{}", others.text);
    world.change("OTHER_A", &json!({"category": "elsewhere"})).await;
    world.create(&echo("OTHER_B")).await;
    assert_eq!(as_team(&world, &team, "/api/directory:stamp").await.json()["stamp"], stamp["stamp"]);
    assert_eq!(keys(&as_team(&world, &team, &next).await.json()), ["TEAM_C"]);
    world.change("TEAM_A", &json!({"category": "moved"})).await;
    let stale = as_team(&world, &team, &next).await;
    assert_eq!((stale.status, stale.error().as_str()), (409, "cursor_stale"), "{}", stale.text);
    world.stop().await;
}

#[tokio::test]
async fn a_cursor_belongs_to_its_filters() {
    let world = World::start().await;
    for n in 0..4 {
        world.create(&with(echo(&format!("a.r{n}")), &json!({"category": "c"}))).await;
    }
    let page = world.look("/api/directory:list?namespace=a&category=c&type=fn&limit=2").await.json();
    let cursor = page["next_cursor"].as_str().unwrap();
    for filters in ["namespace=a&category=c", "namespace=a&type=fn", "category=c&type=fn", "namespace=a.r1&category=c"]
    {
        let stale = world.look(&format!("/api/directory:list?{filters}&limit=2&cursor={cursor}")).await;
        assert_eq!((stale.status, stale.error().as_str()), (409, "cursor_stale"), "{filters}: {}", stale.text);
    }
    let next = format!("/api/directory:list?namespace=a&category=c&type=fn&limit=50&cursor={cursor}");
    assert_eq!(keys(&world.look(&next).await.json()), ["a.r2", "a.r3"], "the size of a page is no filter");
    let twisted: String = cursor.chars().rev().collect();
    for forged in [twisted.as_str(), &cursor[1..], "MA", "%00"] {
        let refused = world.look(&format!("/api/directory:list?limit=2&cursor={forged}")).await;
        assert_eq!((refused.status, refused.error().as_str()), (400, "cursor_invalid"), "{forged}: {}", refused.text);
    }
    world.stop().await;
}

#[tokio::test]
async fn the_listing_over_grpc_is_that_over_rest() {
    let world = World::start().await;
    for key in ["b", "a.c", "a-b.c", "Z.z", "a.b.c", "a_b.a", "a.B", "_x"] {
        world.create(&saying(key, "List me")).await;
    }
    let mut client = ResolverServiceClient::new(world.channel().await);
    let rest = world.look("/api/directory:list").await.json();
    let (mut listed, mut token) = (Vec::new(), String::new());
    loop {
        let asked = resolver::ListCapabilitiesRequest { page_size: 3, page_token: token, ..Default::default() };
        let page = client.list_capabilities(asked).await.unwrap().into_inner();
        assert_eq!((page.total, page.stamp.as_str()), (8, rest["stamp"].as_str().unwrap()));
        listed.extend(page.results.into_iter().map(|row| row.key));
        token = page.next_page_token;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(listed, keys(&rest));
    assert_eq!(listed, ["Z.z", "_x", "a.B", "a.b.c", "a.c", "a-b.c", "a_b.a", "b"]);
    let stamp = client.get_stamp(resolver::GetStampRequest {}).await.unwrap().into_inner();
    assert_eq!((stamp.stamp.as_str(), stamp.count), (rest["stamp"].as_str().unwrap(), 8));

    let first = resolver::ListCapabilitiesRequest { page_size: 3, ..Default::default() };
    let token = client.list_capabilities(first.clone()).await.unwrap().into_inner().next_page_token;
    world.create(&echo("c")).await;
    let next = resolver::ListCapabilitiesRequest { page_token: token, ..first.clone() };
    let stale = client.list_capabilities(next).await.unwrap_err();
    assert_eq!((stale.code(), from_status(&stale).error_text().as_str()), (Code::FailedPrecondition, "cursor_stale"));
    let many = resolver::ListCapabilitiesRequest { page_size: 51, ..first };
    assert_eq!(client.list_capabilities(many).await.unwrap_err().code(), Code::InvalidArgument);

    let team = world.principal("team", &json!([{"may": "invoke", "prefix": "a."}])).await;
    let own = client.get_stamp(keyed(&team, resolver::GetStampRequest {})).await.unwrap().into_inner();
    assert!(own.count == 3 && own.stamp != stamp.stamp, "{own:?}");
    world.stop().await;
}
