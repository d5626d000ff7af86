//! The keys that sign: made once, kept, rotated, shared, given.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use callbook_caller::Deployment;
use callbook_domain::caller::Caller;
use callbook_domain::fault::Reason;
use callbook_domain::token::PrivateKey;
use callbook_gate::signing::Source;
use callbook_wire::gate::v1 as wire;
use callbook_wire::gate::v1::KeyState;
use sqlx::PgPool;
use tempfile::{TempDir, tempdir};

use crate::common::{Gate, OWNER, answered, keys, of, with_key};

async fn published(gate: &mut Gate) -> Vec<(String, KeyState)> {
    let found = gate.client.get_keys(wire::GetKeysRequest {}).await.unwrap().into_inner().keys;
    found.into_iter().map(|key| (key.kid.clone(), key.state())).collect()
}

fn files(folder: &TempDir) -> Vec<PathBuf> {
    let found = std::fs::read_dir(folder.path().join("issuer")).unwrap();
    let mut found: Vec<PathBuf> = found.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

async fn rotated(gate: &mut Gate) -> Vec<(String, KeyState)> {
    let answer = gate.client.rotate_key(with_key(OWNER, wire::RotateKeyRequest {})).await.unwrap().into_inner();
    answer.keys.into_iter().map(|key| (key.kid.clone(), key.state())).collect()
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn keys_are_made_once_kept_to_their_owner_and_found_again(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut first = Gate::keeping(pool.clone(), &folder).await;
    let (text, _) = first.minted(of(keys(&["ALONE"]))).await;
    let before = published(&mut first).await;
    assert_eq!(before.iter().map(|(_, state)| *state).collect::<Vec<_>>(), [KeyState::Active, KeyState::Next]);
    for file in files(&folder) {
        let mode = std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{}", file.display());
    }
    let mut again = Gate::keeping(pool.clone(), &folder).await;
    assert_eq!((published(&mut again).await, files(&folder).len()), (before, 2));
    let (other, _) = again.minted(of(keys(&["ALONE"]))).await;
    for token in [text, other] {
        assert!(matches!(first.seen(&format!("Cap {token}")).await.unwrap(), Caller::Holder(_)));
    }
    let elsewhere = tempdir().unwrap();
    let mut without = Gate::keeping(pool, &elsewhere).await;
    let refused = without.mint(OWNER, of(keys(&["ALONE"]))).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::ServiceUnavailable);
    assert!(refused.message().contains("private part"), "{refused}");
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_rotation_believes_the_last_key_until_its_last_token_has_ended(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut gate = Gate::keeping(pool.clone(), &folder).await;
    let before = published(&mut gate).await;
    let (old, _) = gate.minted(wire::MintTokenRequest { ttl_seconds: Some(600), ..of(keys(&["ALONE"])) }).await;
    let old = format!("Cap {old}");
    let after = rotated(&mut gate).await;
    let wanted = [(before[1].0.clone(), KeyState::Active), (before[0].0.clone(), KeyState::Retiring)];
    assert!(wanted.iter().all(|key| after.contains(key)) && after.len() == 3, "{after:?}");
    let (new, _) = gate.minted(wire::MintTokenRequest { ttl_seconds: Some(3_600), ..of(keys(&["ALONE"])) }).await;
    let new = format!("Cap {new}");
    for token in [&old, &new] {
        assert!(gate.seen(token).await.is_ok());
    }
    let gone = folder.path().join("issuer").join(format!("{}.key", before[0].0));
    assert!(!gone.exists() && files(&folder).len() == 2, "a key that signs no more is forgotten");

    gate.clock.advance(std::time::Duration::from_secs(601));
    assert!(!published(&mut gate).await.iter().any(|(kid, _)| *kid == before[0].0));
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    assert_eq!(gate.seen(&old).await.unwrap_err().error_text(), "kid_unknown");
    assert!(gate.seen(&new).await.is_ok());
    rotated(&mut gate).await;
    let states = "select state from issuer_key order by created_at, state";
    let mut states: Vec<String> = sqlx::query_scalar(states).fetch_all(&pool).await.unwrap();
    states.sort();
    assert_eq!(states, ["active", "gone", "next", "retiring"]);
    let stranger = gate.client.rotate_key(wire::RotateKeyRequest {}).await.unwrap_err();
    assert_eq!(stranger.code(), tonic::Code::Unauthenticated);
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn a_gate_that_lost_its_keys_goes_on_after_one_rotation(pool: PgPool) {
    let (folder, empty) = (tempdir().unwrap(), tempdir().unwrap());
    Gate::keeping(pool.clone(), &folder).await;
    let mut gate = Gate::keeping(pool, &empty).await;
    assert!(gate.mint(OWNER, of(keys(&["ALONE"]))).await.is_err());
    rotated(&mut gate).await;
    let (token, _) = gate.minted(of(keys(&["ALONE"]))).await;
    assert!(gate.seen(&format!("Cap {token}")).await.is_ok());
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn two_gates_with_one_folder_sign_with_one_key_through_a_rotation(pool: PgPool) {
    let folder = tempdir().unwrap();
    let mut one = Gate::keeping(pool.clone(), &folder).await;
    let mut two = Gate::keeping(pool, &folder).await;
    assert_eq!(published(&mut one).await, published(&mut two).await);
    rotated(&mut one).await;
    let [first, second] = [one.minted(of(keys(&["ALONE"]))).await, two.minted(of(keys(&["ALONE"]))).await];
    let kid = |text: &str| callbook_domain::token::parse(text).unwrap()[0].peek().unwrap().header.kid;
    assert_eq!(kid(&first.0), kid(&second.0));
}

#[sqlx::test(migrations = "../../shared/store/migrations")]
async fn the_operators_key_signs_alone_and_another_one_takes_its_place_at_a_start(pool: PgPool) {
    let given = |seed| Source::Given(Arc::new(PrivateKey::from_seed(&[seed; 32])));
    let mut gate = Gate::open(pool.clone(), given(1), Deployment::default()).await;
    let kid = PrivateKey::from_seed(&[1; 32]).public().thumbprint();
    assert_eq!(published(&mut gate).await, [(kid.clone(), KeyState::Active)]);
    let (old, _) = gate.minted(of(keys(&["ALONE"]))).await;
    let refused = gate.client.rotate_key(with_key(OWNER, wire::RotateKeyRequest {})).await;
    assert_eq!(answered(refused).unwrap_err().reason(), Reason::InvalidRequest);
    let mut next = Gate::open(pool.clone(), given(2), Deployment::default()).await;
    let (new, _) = next.minted(of(keys(&["ALONE"]))).await;
    for token in [old, new] {
        assert!(next.seen(&format!("Cap {token}")).await.is_ok());
    }
    let refused = gate.mint(OWNER, of(keys(&["ALONE"]))).await.unwrap_err();
    assert_eq!(refused.reason(), Reason::ServiceUnavailable, "the key of a gate that was not started again");
    let mut nowhere = Gate::nowhere(pool).await;
    assert_eq!(nowhere.mint(OWNER, of(keys(&["ALONE"]))).await.unwrap_err().reason(), Reason::ServiceUnavailable);
}
