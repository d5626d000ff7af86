//! What is taken back, by whom, and what goes on.

use callbook_domain::fault::Reason;
use callbook_domain::token::{PrivateKey, mint, parse};
use callbook_wire::gate::v1 as wire;
use callbook_wire::gate::v1::revoke_token_request::What;
use sqlx::PgPool;
use tempfile::tempdir;
use uuid::Uuid;

use crate::common::{Gate, OWNER, held, keys, of, with_key};

fn owner() -> String {
    format!("Bearer {OWNER}")
}

/// A child of the token for another holder, its id chosen by the one who derives it.
fn derived(gate: &Gate, token: &str, by: &PrivateKey, to: &PrivateKey, jti: Uuid) -> String {
    let parent = parse(token).unwrap().last().unwrap().peek().unwrap();
    mint::derived(token, &mint::child(&parent, jti, gate.clock.now(), to.public()), by).unwrap()
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn the_owner_takes_back_by_any_name_and_the_rest_goes_on(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool, &folder).await;
    let [alice, bob] = [[1; 32], [2; 32]].map(|seed| PrivateKey::from_seed(&seed));
    let for_whom =
        |subject: &str, asked: wire::MintTokenRequest| wire::MintTokenRequest { subject: subject.into(), ..asked };
    let (one, issued) = gate.minted(for_whom("a", of(keys(&["TEAM_ECHO"])))).await;
    let (of_subject, _) = gate.minted(for_whom("b", of(keys(&["TEAM_ECHO"])))).await;
    let (of_alice, _) = gate.minted(for_whom("c", held(keys(&["TEAM_ECHO"]), &alice))).await;
    let child_id = callbook_domain::invocation::uuid_at(gate.clock.now());
    let of_bob = derived(&gate, &of_alice, &alice, &bob, child_id);
    let (last, _) = gate.minted(for_whom("d", of(keys(&["TEAM_ECHO"])))).await;
    let cap = |token: &str| format!("Cap {token}");
    for token in [&one, &of_subject, &of_alice, &of_bob, &last] {
        gate.seen(&cap(token)).await.unwrap();
    }
    let link = What::Jti(issued.jti.clone());
    assert_eq!(gate.revoke(&owner(), link.clone()).await.unwrap(), 1);
    assert_eq!(gate.revoke(&owner(), link).await.unwrap(), 0, "once is enough");
    assert_eq!(gate.revoke(&owner(), What::Subject("b".into())).await.unwrap(), 1);
    assert_eq!(gate.revoke(&owner(), What::Jti(child_id.to_string())).await.unwrap(), 1);
    assert_eq!(gate.refusal(&cap(&one)).await, format!("revoked:jti:{}", issued.jti));
    assert_eq!(gate.refusal(&cap(&of_subject)).await, "revoked:sub:b");
    assert_eq!(gate.refusal(&cap(&of_bob)).await, format!("revoked:jti:{child_id}"));
    assert_eq!(gate.refusal(&cap(&of_alice)).await, "taken", "what it was derived from goes on");
    let thumbprint = alice.public().thumbprint();
    assert_eq!(gate.revoke(&owner(), What::Holder(thumbprint.clone())).await.unwrap(), 1);
    assert_eq!(gate.refusal(&cap(&of_alice)).await, format!("revoked:holder:{thumbprint}"));
    assert_eq!(gate.refusal(&cap(&last)).await, "taken");

    for dead in [for_whom("b", of(keys(&["TEAM_ECHO"]))), held(keys(&["TEAM_ECHO"]), &alice)] {
        assert_eq!(gate.mint(OWNER, dead).await.unwrap_err().reason(), Reason::Revoked, "it would be dead at once");
    }
    let kid = gate.client.get_keys(wire::GetKeysRequest {}).await.unwrap().into_inner().keys[0].kid.clone();
    assert_eq!(gate.revoke(&owner(), What::Kid(kid.clone())).await.unwrap(), 1);
    assert_eq!(gate.refusal(&cap(&last)).await, format!("revoked:kid:{kid}"));
    for unknown in [What::Root(Uuid::nil().to_string()), What::Kid(bob.public().thumbprint())] {
        assert_eq!(gate.revoke(&owner(), unknown).await.unwrap_err().reason(), Reason::NotFound);
    }
    for bad in [What::Jti("x".into()), What::Holder("x".into()), What::Subject(String::new())] {
        assert_eq!(gate.revoke(&owner(), bad).await.unwrap_err().reason(), Reason::InvalidRequest);
    }
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_holder_takes_back_its_own_and_nobody_elses(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool, &folder).await;
    let [alice, bob] = [[1; 32], [2; 32]].map(|seed| PrivateKey::from_seed(&seed));
    let (victim, of_victim) = gate.minted(of(keys(&["TEAM_ECHO"]))).await;
    let (root, of_root) = gate.minted(held(keys(&["TEAM_ECHO"]), &alice)).await;
    // the attacker gives a link of its own the victim's id
    let child = derived(&gate, &root, &alice, &bob, of_victim.jti.parse().unwrap());
    let (as_child, as_victim) = (format!("Cap {child}"), format!("Cap {victim}"));
    for not_its_own in [
        What::Jti(of_root.jti.clone()),
        What::Root(of_root.jti.clone()),
        What::Root(of_victim.jti.clone()),
        What::Holder(bob.public().thumbprint()),
        What::Subject("owner".into()),
    ] {
        let refused = gate.revoke(&as_child, not_its_own.clone()).await.unwrap_err();
        assert_eq!(refused.reason(), Reason::Forbidden, "{not_its_own:?}");
    }
    assert_eq!(gate.revoke(&as_child, What::Jti(of_victim.jti.clone())).await.unwrap(), 1);
    assert!(gate.refusal(&as_child).await.starts_with("revoked:link:sha256:"));
    assert_eq!(gate.refusal(&as_victim).await, "taken");
    assert_eq!(gate.refusal(&format!("Cap {root}")).await, "taken");
    assert_eq!(gate.revoke(&as_victim, What::Root(of_victim.jti.clone())).await.unwrap(), 1);
    assert!(gate.refusal(&as_victim).await.starts_with("revoked:link:sha256:"));
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_principal_takes_back_what_it_minted_and_its_end_takes_back_all_of_it(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool.clone(), &folder).await;
    let grants = [(wire::May::Mint, ""), (wire::May::Invoke, "")];
    let (team, other) = (gate.principal("team", &grants).await, gate.principal("other", &grants).await);
    let mut minted = Vec::new();
    for key in [&team, &team, &other] {
        let answer = gate.mint(key, of(keys(&["TEAM_ECHO"]))).await.unwrap();
        minted.push((format!("Cap {}", answer.token), answer.issued.unwrap().jti, answer.token));
    }
    let narrowed = gate.narrow(&minted[1].2, wire::NarrowTokenRequest::default()).await.unwrap().token;
    let narrowed = format!("Cap {narrowed}");
    let as_team = format!("Bearer {team}");
    for not_its_own in
        [What::Jti(minted[2].1.clone()), What::Subject("team".into()), What::Root(Uuid::nil().to_string())]
    {
        let refused = gate.revoke(&as_team, not_its_own).await.unwrap_err();
        assert_eq!((refused.reason(), refused.metadata()[0].1.as_str()), (Reason::Forbidden, "owner"));
    }
    assert_eq!(gate.revoke(&as_team, What::Root(minted[0].1.clone())).await.unwrap(), 1);
    assert!(gate.refusal(&minted[0].0).await.starts_with("revoked:jti:"));
    gate.seen(&narrowed).await.unwrap();
    let end = wire::RevokePrincipalRequest { name: "team".into() };
    gate.client.revoke_principal(with_key(OWNER, end)).await.unwrap();
    let id: Uuid = sqlx::query_scalar("select id from principal where name = 'team'").fetch_one(&pool).await.unwrap();
    for token in [&minted[1].0, &narrowed] {
        assert_eq!(gate.refusal(token).await, format!("revoked:principal:{id}"));
    }
    assert_eq!(gate.refusal(&minted[2].0).await, "taken", "another principal's goes on");
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_root_without_a_record_is_refused(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool.clone(), &folder).await;
    let (token, issued) = gate.minted(of(keys(&["TEAM_ECHO"]))).await;
    sqlx::query("delete from token").execute(&pool).await.unwrap();
    assert_eq!(gate.refusal(&format!("Cap {token}")).await, format!("revoked:jti:{}", issued.jti));
}
