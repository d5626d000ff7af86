#![allow(missing_docs, clippy::all)]
use std::sync::Arc;
use std::time::{Duration, Instant};
use callbook_caller::Callers;
use callbook_domain::caller::Caller;
use callbook_domain::clock::Clock;
use callbook_domain::compile::Rules;
use callbook_domain::key::Key;
use callbook_ranking::Shelf;
use callbook_store::directory::Directory;
use callbook_store::write::{self, Import, Writer, Options};
use callbook_wire::resolver::v1::resolver_service_client::ResolverServiceClient;
use callbook_wire::resolver::v1::*;
use sqlx::postgres::PgConnectOptions;
use tonic::Request;

fn with_key<T>(m: T, key: &str) -> Request<T> { let mut r = Request::new(m); if !key.is_empty() { r.metadata_mut().insert("authorization", format!("Bearer {key}").parse().unwrap()); } r }

#[tokio::test(flavor = "multi_thread")]
async fn scratch() {
    let url = std::env::var("DATABASE_URL").unwrap();
    let base: PgConnectOptions = url.parse().unwrap();
    let name = format!("resolver_scratch_{}", std::process::id());
    let admin = sqlx::PgPool::connect_with(base.clone()).await.unwrap();
    sqlx::query(sqlx::AssertSqlSafe(format!("create database {name}"))).execute(&admin).await.unwrap();
    let local = tokio::task::LocalSet::new(); let options = base.database(&name); let result = local.run_until(async { tokio::task::spawn_local(run(options)).await }).await;
    sqlx::query(sqlx::AssertSqlSafe(format!("drop database {name} with (force)"))).execute(&admin).await.unwrap();
    result.unwrap();
}

async fn run(options: PgConnectOptions) {
    callbook_store::pool::migrate(&options).await.unwrap();
    let pool = callbook_store::pool::connect(&options, 8);
    let shelf = Arc::new(Shelf::default());
    let directory = Directory::open(pool.clone(), Rules::default(), vec![callbook_resolver::follower(shelf.clone())]).await.unwrap();
    tokio::spawn(directory.clone().run(std::future::pending()));
    let clock = Clock::system();
    let callers = Arc::new(Callers::new("owner-key-0123456789", pool.clone(), clock.clone(), true));
    let hash = callbook_caller::hash("cbk_team");
    sqlx::query("insert into principal (id, name, key_hash, grants, created_at, created_by) values (gen_random_uuid(), 'team', $1, $2, now(), 'owner')")
        .bind(&hash[..]).bind(r#"[{"may":"invoke","prefix":"CALENDAR_"}]"#).execute(&pool).await.unwrap();
    let app = callbook_resolver::App::new(directory.clone(), callers, shelf.clone(), clock.clone(), b"internal-key-0123".to_vec());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let svc = callbook_resolver::services(app);
    tokio::spawn(tonic::transport::Server::builder().add_service(svc).serve_with_incoming(tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true))));
    let mut c = ResolverServiceClient::connect(format!("http://{at}")).await.unwrap();

    let mut watch = c.clone().watch_changes(WatchChangesRequest { since_revision: Some(0) }).await.unwrap().into_inner();
    let mut team_watch = c.clone().watch_changes(with_key(WatchChangesRequest { since_revision: None }, "cbk_team")).await.unwrap().into_inner();
    let s = c.get_stamp(GetStampRequest{}).await.unwrap().into_inner(); println!("empty {s:?}");
    let writer = Writer { directory: directory.clone(), clock, caller: Caller::Owner };
    let rows = std::fs::read("/work/shared/catalogue/rows.ndjson").unwrap();
    let t = Instant::now();
    let imported = write::import(&writer, rows, Import { allow_lookalike: true, ..Import::default() }).await.unwrap();
    println!("imported {} refused {:?} rev {} in {:?}", imported.created, imported.refused.iter().take(3).collect::<Vec<_>>(), imported.revision, t.elapsed());
    println!("index {}", shelf.len());
    println!("uncompiled {:?}", directory.snapshot().rows().iter().filter(|e| e.compiled.is_err()).map(|e| e.key().to_string()).collect::<Vec<_>>());
    let m = c.get_map(GetMapRequest::default()).await.unwrap().into_inner();
    if let Some(get_map_response::View::Book(b)) = m.view { println!("{:?} shelves {} {:?}", b.counts, b.shelves.len(), b.predicates); }
    let m = c.get_map(GetMapRequest { shelf: Some("calendar".into()), page_size: 3, ..Default::default() }).await.unwrap().into_inner(); println!("{m:?}");
    // list all
    let mut seen = Vec::new(); let mut token = String::new(); let mut first = String::new();
    let t = Instant::now();
    loop { let p = c.list_capabilities(ListCapabilitiesRequest { page_token: token.clone(), ..Default::default() }).await.unwrap().into_inner();
        seen.extend(p.results.iter().map(|m| m.key.clone())); token = p.next_page_token.clone(); if first.is_empty() { first = token.clone(); println!("{} {} {}", p.total, p.stamp, p.revision); println!("{:?}", p.results[0]); }
        if token.is_empty() { break } }
    println!("listed {} in {:?}", seen.len(), t.elapsed());
    let mut d = seen.clone(); d.sort(); d.dedup(); assert_eq!(d.len(), seen.len());
    let narrowed = c.list_capabilities(with_key(ListCapabilitiesRequest::default(), "cbk_team")).await.unwrap().into_inner();
    println!("team total {} {}", narrowed.total, narrowed.stamp);
    println!("{:?}", c.list_capabilities(with_key(ListCapabilitiesRequest { page_token: first.clone(), ..Default::default() }, "cbk_team")).await.unwrap_err().message());
    println!("{:?}", c.list_capabilities(ListCapabilitiesRequest { page_token: first.clone(), category: "mail".into(), ..Default::default() }).await.unwrap_err().code());
    println!("{:?}", c.list_capabilities(ListCapabilitiesRequest { page_size: 51, ..Default::default() }).await.unwrap_err().message());
    println!("{:?}", c.list_capabilities(with_key(ListCapabilitiesRequest::default(), "cbk_bad")).await.unwrap_err().code());
    let r = c.list_registry(ListRegistryRequest { page_size: 2, category: "mail".into(), ..Default::default() }).await.unwrap().into_inner(); println!("{r:?}");
    for q in ["what time is it", "", "zzqx blorf", "export calendar attendees", "CALENDAR_ATTENDEES_COUNT", "(:*&!'\\`\0"] {
        let t = Instant::now();
        let a = c.ask(AskRequest { question: q.into(), page_size: 3, ..Default::default() }).await.unwrap().into_inner();
        println!("{q:?} {:?} count {} hint {:?} next {}", t.elapsed(), a.count, a.hint, a.next_page_token);
        for m in &a.matches { println!("   {} {:.3} {:?} ex={:?}", m.key, m.score, m.why, m.example); }
        if let Some(b) = a.best { println!("   best {}", String::from_utf8_lossy(&b.contract_json)); }
    }
    let t = Instant::now();
    for _ in 0..200 { c.ask(AskRequest { question: "export calendar attendees".into(), ..Default::default() }).await.unwrap(); }
    println!("ask mean {:?}", t.elapsed()/200);
    let a = c.ask(AskRequest { question: "export attendees".into(), page_size: 3, ..Default::default() }).await.unwrap().into_inner();
    let b = c.ask(AskRequest { question: "export attendees".into(), page_size: 3, page_token: a.next_page_token.clone(), ..Default::default() }).await.unwrap().into_inner();
    println!("page 2: {:?} best {:?}", b.matches.iter().map(|m| &m.key).collect::<Vec<_>>(), b.best.is_some());
    println!("{:?}", c.ask(AskRequest { question: "x".into(), effect: 9, ..Default::default() }).await.unwrap_err().message());
    let a = c.ask(with_key(AskRequest { question: "send a mail".into(), ..Default::default() }, "cbk_team")).await.unwrap().into_inner();
    println!("team: {:?}", a.matches.iter().map(|m| &m.key).collect::<Vec<_>>());
    let f = c.search_rows(SearchRowsRequest { query: "attendees".into(), page_size: 2, ..Default::default() }).await.unwrap().into_inner(); println!("{f:?}");
    let f = c.list_categories(ListCategoriesRequest { page_size: 2, ..Default::default() }).await.unwrap().into_inner(); println!("{f:?}");
    let f = c.describe(DescribeRequest { keys: vec!["CALENDAR_ATTENDEES_CREATE".into()], ..Default::default() }).await.unwrap().into_inner(); println!("{f:?}");
    println!("{:?}", c.describe(DescribeRequest { keys: vec!["NOPE".into()], ..Default::default() }).await.unwrap_err().message());
    // changes
    let m = watch.message().await.unwrap().unwrap(); println!("watch {} changed {} removed {}", m.revision, m.changed_keys.len(), m.removed_keys.len());
    let m = team_watch.message().await.unwrap().unwrap(); println!("team watch {} changed {:?}", m.revision, m.changed_keys.len());
    let key = Key::parse("CALENDAR_ATTENDEES_COUNT").unwrap();
    let patch = serde_json::json!({"enabled": false}).as_object().unwrap().clone();
    write::patch(&writer, &key, &patch, Options::default()).await.unwrap();
    let m = tokio::time::timeout(Duration::from_secs(2), watch.message()).await.unwrap().unwrap().unwrap(); println!("watch {m:?}");
    println!("{:?}", c.list_capabilities(ListCapabilitiesRequest { page_token: first.clone(), ..Default::default() }).await.unwrap_err().message());
    write::recommend(&writer, "attendees", &Key::parse("BASE64_DECODE").unwrap(), false, "x").await.unwrap();
    let m = tokio::time::timeout(Duration::from_secs(2), watch.message()).await.unwrap().unwrap().unwrap(); println!("watch {m:?}");
    let a = c.ask(AskRequest { question: "attendees".into(), page_size: 3, ..Default::default() }).await.unwrap().into_inner();
    println!("{:?}", a.matches.iter().map(|m| (&m.key, &m.why)).collect::<Vec<_>>());
    write::delete(&writer, &key, Options::default()).await.unwrap();
    let m = tokio::time::timeout(Duration::from_secs(2), watch.message()).await.unwrap().unwrap().unwrap(); println!("watch {m:?}");
    write::delete(&writer, &Key::parse("BASE64_ENCODE").unwrap(), Options::default()).await.unwrap();
    let m = tokio::time::timeout(Duration::from_secs(2), watch.message()).await.unwrap().unwrap().unwrap(); println!("watch {m:?}");
    let mut again = c.clone().watch_changes(WatchChangesRequest { since_revision: Some(imported.revision) }).await.unwrap().into_inner();
    for _ in 0..4 { let m = again.message().await.unwrap().unwrap(); println!("again {} {:?} {:?}", m.revision, m.changed_keys, m.removed_keys); }
    sqlx::query("update principal set revoked_at = now()").execute(&pool).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    write::delete(&writer, &Key::parse("BASE64_DECODE").unwrap(), Options::default()).await.unwrap();
    loop { match team_watch.message().await { Ok(m) => println!("team {m:?}"), Err(e) => { println!("team end {:?}", e.code()); break } } }
}
