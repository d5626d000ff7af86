//! Principals through the gate's service, on a real Postgres.

use callbook_domain::caller::Caller;
use callbook_domain::fault::Reason;
use callbook_runtime::grpc::from_status;
use callbook_wire::gate::v1 as wire;
use sqlx::PgPool;

use crate::common::{Gate, OWNER, with_key};

fn create(name: &str) -> wire::CreatePrincipalRequest {
    let grants = vec![wire::Grant { may: wire::May::Invoke.into(), prefix: "GITHUB_".into() }];
    wire::CreatePrincipalRequest { name: name.into(), grants }
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_principal_is_let_in_by_its_key_until_it_is_ended(pool: PgPool) {
    let Gate { client: mut gate, callers, clock, .. } = Gate::nowhere(pool.clone()).await;
    let created = gate.create_principal(with_key(OWNER, create("team"))).await.unwrap().into_inner();
    let key = created.api_key;
    let identify = async |key: &str| callers.identify(with_key(key, ()).metadata().as_ref()).await;
    let Caller::Principal(principal) = identify(&key).await.unwrap() else { panic!("it is a principal") };
    assert_eq!((principal.name.as_str(), principal.grants[0].prefix.as_str()), ("team", "GITHUB_"));

    let end = || with_key(OWNER, wire::RevokePrincipalRequest { name: "team".into() });
    let ended = gate.revoke_principal(end()).await.unwrap().into_inner();
    assert_eq!((ended.revoked, ended.principal.unwrap().revoked_at.is_some()), (1, true));
    assert_eq!(gate.revoke_principal(end()).await.unwrap().into_inner().revoked, 0);
    clock.advance(std::time::Duration::from_secs(2));
    assert_eq!(identify(&key).await.unwrap_err().reason(), Reason::Unauthorized);

    let again = gate.create_principal(with_key(OWNER, create("team"))).await.unwrap_err();
    assert_eq!(from_status(&again).reason(), Reason::AlreadyExists, "a name is never used again");
    let kinds = "select kind from event where kind <> 'mutate' order by id";
    let kinds: Vec<String> = sqlx::query_scalar(kinds).fetch_all(&pool).await.unwrap();
    assert_eq!(kinds, ["mint", "revoke"]);
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn the_gate_is_the_owners(pool: PgPool) {
    let mut gate = Gate::nowhere(pool).await.client;
    let key = gate.create_principal(with_key(OWNER, create("team"))).await.unwrap().into_inner().api_key;
    let refused = gate.create_principal(with_key(&key, create("x"))).await.unwrap_err();
    assert_eq!(from_status(&refused).reason(), Reason::Forbidden);
    let refused = gate.create_principal(create("x")).await.unwrap_err();
    assert_eq!(from_status(&refused).reason(), Reason::Unauthorized);
    let refused =
        gate.revoke_principal(with_key(OWNER, wire::RevokePrincipalRequest { name: "no\0body".into() })).await;
    assert_eq!(from_status(&refused.unwrap_err()).reason(), Reason::NotFound);
    let mut request = create("x");
    request.grants[0].may = 0;
    let refused = gate.create_principal(with_key(OWNER, request)).await.unwrap_err();
    assert_eq!(from_status(&refused).reason(), Reason::InvalidRequest);
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn principals_are_listed_by_name_the_living_first_of_all(pool: PgPool) {
    let mut gate = Gate::nowhere(pool).await.client;
    for name in ["b", "a", "C"] {
        gate.create_principal(with_key(OWNER, create(name))).await.unwrap();
    }
    gate.revoke_principal(with_key(OWNER, wire::RevokePrincipalRequest { name: "a".into() })).await.unwrap();
    let mut list = async |include_revoked: bool, page_token: String| {
        let request = wire::ListPrincipalsRequest { include_revoked, page_size: 2, page_token };
        let page = gate.list_principals(with_key(OWNER, request)).await.unwrap().into_inner();
        (page.principals.into_iter().map(|each| each.name).collect::<Vec<_>>().join(","), page.next_page_token)
    };
    assert_eq!(list(false, String::new()).await, ("C,b".to_owned(), String::new()));
    let (first, token) = list(true, String::new()).await;
    assert_eq!((first.as_str(), list(true, token).await), ("C,a", ("b".to_owned(), String::new())));
}
