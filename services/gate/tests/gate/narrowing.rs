//! Tokens that the gate narrows, and what a holder is told of its own.

use callbook_domain::caller::{Caller, Counter};
use callbook_domain::fault::{Reason, Result};
use callbook_domain::token::{Digest, PrivateKey, parse};
use callbook_wire::gate::v1 as wire;
use callbook_wire::gate::v1::revoke_token_request::What;
use sqlx::PgPool;
use tempfile::tempdir;

use crate::common::{Gate, OWNER, answered, claims, held, keys, of, prefixes, with_key, with_token};

fn source() -> wire::MintTokenRequest {
    let scope = wire::TokenScope {
        pin: true,
        keys: vec!["TEAM_ECHO".into()],
        prefixes: vec!["TEAM_".into()],
        effect: Some("write".into()),
        uses: Some(5),
        ..wire::TokenScope::default()
    };
    wire::MintTokenRequest { subject: "agent:alice".into(), ttl_seconds: Some(600), ..of(scope) }
}

fn narrow(scope: wire::TokenScope) -> wire::NarrowTokenRequest {
    wire::NarrowTokenRequest { scope: Some(scope), ..wire::NarrowTokenRequest::default() }
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_narrowed_token_shares_the_counters_and_the_end_of_its_source(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool, &folder).await;
    let (text, above) = gate.minted(source()).await;
    let asked = narrow(wire::TokenScope { uses: Some(2), effect: Some("read".into()), ..keys(&["TEAM_ECHO"]) });
    let answer = gate.narrow(&text, asked).await.unwrap();
    let below = answer.issued.unwrap();
    let (parent, child) = (claims(&above), claims(&below));
    assert_eq!((below.source.as_str(), below.minted_by), (above.jti.as_str(), format!("cap:{}", above.jti)));
    assert_eq!((&child.sub, child.exp), (&parent.sub, parent.exp), "900 s would be longer than what is left");
    assert_eq!(child.cap.keys, parent.cap.keys, "the pin stays");
    let credential = format!("Cap {}", answer.token);
    let Caller::Holder(holder) = gate.seen(&credential).await.unwrap() else { panic!("a holder") };
    let link = |text: &str| parse(text).unwrap()[0].peek().unwrap().id.to_string();
    let mut wanted = vec![Counter { link: link(&text), limit: 5 }, Counter { link: link(&answer.token), limit: 2 }];
    wanted.sort();
    assert_eq!(holder.counters, wanted);
    assert!(holder.names.contains(&format!("jti:{}", above.jti)));

    let again = gate.narrow(&answer.token, narrow(wire::TokenScope::default())).await.unwrap();
    let Caller::Holder(third) = gate.seen(&format!("Cap {}", again.token)).await.unwrap() else { panic!("a holder") };
    assert_eq!((third.counters.len(), &third.cap().keys), (3, &child.cap.keys));
    assert_eq!(gate.revoke(&format!("Bearer {OWNER}"), What::Root(above.jti.clone())).await.unwrap(), 1);
    for token in [&text, &answer.token, &again.token] {
        assert_eq!(gate.refusal(&format!("Cap {token}")).await, format!("revoked:jti:{}", above.jti));
    }
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn nothing_can_be_widened(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool, &folder).await;
    let (text, _) = gate.minted(source()).await;
    let high = || Some("high".to_owned());
    let mut longer = narrow(keys(&["TEAM_ECHO"]));
    longer.ttl_seconds = Some(601);
    for (asked, wanted) in [
        (narrow(keys(&["ALONE"])), "widened:keys"),
        (narrow(keys(&["OF_NOBODY"])), "widened:keys"),
        (narrow(keys(&["TEAM_GONE"])), "unknown_key"),
        (narrow(prefixes(&["TEA"])), "widened:prefixes"),
        (narrow(wire::TokenScope { risk: high(), ..keys(&["TEAM_ECHO"]) }), "widened:risk"),
        (narrow(wire::TokenScope { effect: Some("destructive".into()), ..keys(&["TEAM_ECHO"]) }), "widened:effect"),
        (narrow(wire::TokenScope { uses: Some(6), ..keys(&["TEAM_ECHO"]) }), "widened:uses"),
        (wire::NarrowTokenRequest { url: true, ..narrow(keys(&["TEAM_ECHO"])) }, "widened:url"),
        (longer, "widened:exp"),
    ] {
        let refused = gate.narrow(&text, asked.clone()).await.expect_err(&format!("{asked:?}"));
        assert_eq!(refused.error_text(), wanted, "{asked:?}");
    }
    let (of_holder, _) = gate.minted(held(keys(&["TEAM_ECHO"]), &PrivateKey::from_seed(&[7; 32]))).await;
    let refused = gate.narrow(&of_holder, narrow(keys(&["TEAM_ECHO"]))).await.unwrap_err();
    assert_eq!(refused.error_text(), "widened:cnf");
    let owner = gate.client.narrow_token(with_key(OWNER, narrow(keys(&["TEAM_ECHO"])))).await;
    assert_eq!(answered(owner).unwrap_err().reason(), Reason::Forbidden);
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_holder_is_told_what_is_left_and_why_it_would_be_refused(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool.clone(), &folder).await;
    let (text, issued) = gate.minted(source()).await;
    let mut explained = async |key: &str| -> Result<wire::ExplainTokenResponse> {
        answered(gate.client.explain_token(with_token(&text, wire::ExplainTokenRequest { key: key.into() })).await)
    };
    let told = explained("").await.unwrap();
    assert_eq!((told.uses_left, told.needs_proof, told.verdict.as_str()), (Some(5), false, ""));
    assert_eq!(told.claims_json, std::slice::from_ref(&issued.claims_json));
    for (key, verdict) in
        [("TEAM_ECHO", "allowed"), ("ALONE", "scope_mismatch"), ("TEAM_GONE", "unknown_key"), ("a b", "scope_mismatch")]
    {
        assert_eq!(explained(key).await.unwrap().verdict, verdict, "{key}");
    }
    let link = parse(&text).unwrap()[0].peek().unwrap().id;
    let used = "insert into token_use (link, used) values ($1, 5)";
    sqlx::query(used).bind(link.to_string()).execute(&pool).await.unwrap();
    let told = explained("TEAM_ECHO").await.unwrap();
    assert_eq!((told.uses_left, told.verdict.as_str()), (Some(0), "token_exhausted"));

    let pinned = wire::TokenScope { pin: true, owner_gate: true, ..keys(&["TEAM_ECHO"]) };
    let (gated, _) = gate.minted(of(pinned)).await;
    let ask = |token: &str| with_token(token, wire::ExplainTokenRequest { key: "TEAM_ECHO".into() });
    assert_eq!(gate.client.explain_token(ask(&gated)).await.unwrap().into_inner().verdict, "held");
    let row = gate.directory.snapshot().get("TEAM_ECHO").unwrap().row.contract_hash.clone();
    let patch = serde_json::json!({"target": "base64_encode"});
    let writer = callbook_store::write::Writer {
        directory: gate.directory.clone(),
        clock: gate.clock.clone(),
        caller: Caller::Owner,
    };
    let key = "TEAM_ECHO".to_owned().try_into().unwrap();
    let patch = patch.as_object().unwrap();
    callbook_store::write::patch(&writer, &key, patch, Default::default()).await.unwrap();
    let now = gate.directory.fresh().await.unwrap().get("TEAM_ECHO").unwrap().row.contract_hash.clone();
    let verdict = gate.client.explain_token(ask(&gated)).await.unwrap().into_inner().verdict;
    assert_eq!(verdict, format!("contract_changed:{row}!={now}"));
    assert!(Digest::parse(&row).is_some());
    let owner = gate.client.explain_token(with_key(OWNER, wire::ExplainTokenRequest::default())).await;
    assert_eq!(answered(owner).unwrap_err().reason(), Reason::Forbidden);
}
