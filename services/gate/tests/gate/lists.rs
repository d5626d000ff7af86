//! Issued tokens in pages, and that their text is nowhere.

use callbook_domain::fault::Reason;
use callbook_wire::gate::v1 as wire;
use callbook_wire::gate::v1::revoke_token_request::What;
use sqlx::{PgPool, Row as _};
use tempfile::tempdir;

use crate::common::{Gate, OWNER, answered, keys, of, with_key};

async fn listed(gate: &mut Gate, key: &str, asked: wire::ListTokensRequest) -> wire::ListTokensResponse {
    gate.client.list_tokens(with_key(key, asked)).await.unwrap().into_inner()
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn tokens_are_listed_newest_first_each_once_and_without_their_text(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool.clone(), &folder).await;
    let (mut ids, mut texts) = (Vec::new(), Vec::new());
    for n in 0..5 {
        let subject = if n % 2 == 0 { "even" } else { "odd" };
        let (text, issued) =
            gate.minted(wire::MintTokenRequest { subject: subject.into(), ..of(keys(&["ALONE"])) }).await;
        ids.insert(0, issued.jti);
        texts.push(text);
        gate.clock.advance(std::time::Duration::from_secs(n % 3));
    }
    let mut found = Vec::new();
    let mut asked = wire::ListTokensRequest { page_size: 2, ..wire::ListTokensRequest::default() };
    loop {
        let page = listed(&mut gate, OWNER, asked.clone()).await;
        found.extend(page.tokens.into_iter().map(|token| token.jti));
        if page.next_page_token.is_empty() {
            break;
        }
        asked.page_token = page.next_page_token;
    }
    ids.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, ids);
    asked.subject = "even".into();
    let stale = answered(gate.client.list_tokens(with_key(OWNER, asked)).await).unwrap_err();
    assert_eq!(stale.reason(), Reason::CursorStale);
    let even = wire::ListTokensRequest { subject: "even".into(), ..wire::ListTokensRequest::default() };
    assert_eq!(listed(&mut gate, OWNER, even).await.tokens.len(), 3);

    gate.revoke(&format!("Bearer {OWNER}"), What::Jti(ids[0].clone())).await.unwrap();
    assert_eq!(listed(&mut gate, OWNER, wire::ListTokensRequest::default()).await.tokens.len(), 4);
    let all = wire::ListTokensRequest { include_ended: true, ..wire::ListTokensRequest::default() };
    let all = listed(&mut gate, OWNER, all).await.tokens;
    let revoked: Vec<&str> = all.iter().map(|token| token.revoked.as_str()).filter(|what| !what.is_empty()).collect();
    assert_eq!((all.len(), revoked), (5, vec![&*format!("jti:{}", ids[0])]));
    nowhere(&pool, &texts).await;
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_principal_lists_what_it_minted_and_a_holder_nothing(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool, &folder).await;
    let team = gate.principal("team", &[(wire::May::Mint, ""), (wire::May::Invoke, "")]).await;
    let (token, _) = gate.minted(of(keys(&["ALONE"]))).await;
    let own = gate.mint(&team, of(keys(&["TEAM_ECHO"]))).await.unwrap().issued.unwrap();
    let found = listed(&mut gate, &team, wire::ListTokensRequest::default()).await.tokens;
    assert_eq!(found.iter().map(|token| &token.jti).collect::<Vec<_>>(), [&own.jti]);
    let holder = gate.client.list_tokens(with_key(&token, wire::ListTokensRequest::default())).await;
    assert_eq!(answered(holder).unwrap_err().reason(), Reason::Forbidden);
}

/// No part of a token from which it could be put together again is in the database.
async fn nowhere(pool: &PgPool, texts: &[String]) {
    let tables: Vec<String> = sqlx::query_scalar("select tablename::text from pg_tables where schemaname = 'public'")
        .fetch_all(pool)
        .await
        .unwrap();
    assert!(tables.contains(&"token".to_owned()) && tables.contains(&"event".to_owned()));
    let mut looked = 0;
    for table in tables {
        let rows = sqlx::query(sqlx::AssertSqlSafe(format!("select t::text from {table} t"))).fetch_all(pool).await;
        for row in rows.unwrap() {
            looked += 1;
            let row: String = row.get(0);
            for part in texts.iter().flat_map(|text| text.split('.').skip(1)) {
                assert!(!row.contains(part), "{table} holds a part of a token");
            }
        }
    }
    assert!(looked > texts.len() * 2, "tokens and their events are there");
}
