//! Who may read the receipts of calls with tokens, and what they say of the token. No text of a token is anywhere.

use callbook_runtime::grpc::from_status;
use callbook_tests::book::{echo, flow};
use callbook_tests::caller::{Line, with_token};
use callbook_tests::dump::dump;
use callbook_tests::issuer::{Aim, Holder, Issuer, payload};
use callbook_tests::token::{jti, proof_for_receipt};
use callbook_tests::world::World;
use callbook_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use callbook_wire::receipt::v1::{GetReceiptRequest, GetStatsRequest, ListInvocationsRequest, Receipt};
use tonic::transport::Channel;

async fn receipt(channel: &Channel, token: &str, proof: Option<&str>, id: &str) -> Result<Receipt, String> {
    let request = with_token(token, proof, GetReceiptRequest { invocation_id: id.to_owned() });
    let answer = ReceiptServiceClient::new(channel.clone()).get_receipt(request).await;
    answer.map(|answer| answer.into_inner().receipt.unwrap()).map_err(|status| from_status(&status).error_text())
}

async fn listed(channel: &Channel, token: &str) -> Vec<String> {
    let request = with_token(token, None, ListInvocationsRequest::default());
    let answer = ReceiptServiceClient::new(channel.clone()).list_invocations(request).await.unwrap().into_inner();
    answer.invocations.into_iter().map(|summary| summary.invocation_id).collect()
}

async fn counted(channel: &Channel, token: &str) -> u64 {
    let request = with_token(token, None, GetStatsRequest::default());
    let answer = ReceiptServiceClient::new(channel.clone()).get_stats(request).await.unwrap().into_inner();
    answer.total.unwrap().count
}

#[tokio::test]
async fn a_receipt_is_for_the_token_that_made_the_call_and_for_its_ancestors() {
    let world = World::start().await;
    world.create(&echo("ROW")).await;
    let (issuer, line, channel) = (Issuer::of(&world).await, Line::to(&world).await, world.channel().await);
    let [own, next, other] = [(); 3].map(|()| Holder::new(&world.clock));
    let root = issuer.root(&issuer.claims_of(&own, &["ROW"])).await;
    let child = own.derive(&root, &next, |_| {});
    let grandchild = next.derive(&child, &other, |_| {});
    let sibling = own.derive(&root, &other, |_| {});
    // the id of a derived link is its holder's choice: this one takes that of its sibling
    let thief = own.derive(&root, &other, |claims| claims["jti"] = jti(&child).into());
    let strange = issuer.root(&issuer.claims_of(&other, &["ROW"])).await;
    let call = |token: String, who: &Holder| {
        let proof = who.proof(&Aim { token: &token, key: "ROW", sent: r#""secret""# });
        let line = line.clone();
        async move { line.prove(&token, &proof, "ROW", "secret").await.unwrap().proof.unwrap().invocation_id }
    };
    let of_child = call(child.clone(), &next).await;
    let of_grandchild = call(grandchild.clone(), &other).await;

    for (token, who, sees) in [
        (&root, &own, [true, true]),
        (&child, &next, [true, true]),
        (&grandchild, &other, [false, true]),
        (&sibling, &other, [false, true]),
        (&strange, &other, [false, false]),
    ] {
        for (id, sees) in [&of_child, &of_grandchild].into_iter().zip(sees) {
            let proof = proof_for_receipt(who, token, "ROW", id);
            let found = receipt(&channel, token, Some(&proof), id).await;
            match sees {
                true => assert_eq!(found.unwrap().input.as_deref(), Some(&br#"{"body":"secret"}"#[..])),
                false => assert_eq!(found.unwrap_err(), "unknown_invocation"),
            }
        }
    }
    assert_eq!(listed(&channel, &root).await, [of_grandchild.clone(), of_child.clone()]);
    assert_eq!(listed(&channel, &child).await, [of_grandchild.clone(), of_child.clone()]);
    assert!(listed(&channel, &strange).await.is_empty());
    assert_eq!((counted(&channel, &root).await, counted(&channel, &strange).await), (2, 0));
    let proof = proof_for_receipt(&other, &thief, "ROW", &of_child);
    assert_eq!(receipt(&channel, &thief, Some(&proof), &of_child).await.unwrap_err(), "unknown_invocation");
    world.stop().await;
}

#[tokio::test]
async fn a_full_receipt_needs_the_holders_proof_and_says_the_lineage() {
    let world = World::start().await;
    world.create(&echo("ROW")).await;
    let (issuer, line, channel) = (Issuer::of(&world).await, Line::to(&world).await, world.channel().await);
    let (own, next) = (Holder::new(&world.clock), Holder::new(&world.clock));
    let root = issuer.root(&issuer.claims_of(&own, &["ROW"])).await;
    let child = own.derive(&root, &next, |_| {});
    let proof = next.proof(&Aim { token: &child, key: "ROW", sent: r#""a""# });
    let id = line.prove(&child, &proof, "ROW", "a").await.unwrap().proof.unwrap().invocation_id;
    assert_eq!(receipt(&channel, &child, None, &id).await.unwrap_err(), "pop_required");
    assert_eq!(receipt(&channel, &child, Some(&proof), &id).await.unwrap_err(), "pop_invalid", "that was for the call");
    let other = proof_for_receipt(&next, &child, "ROW", "inv_00000000000000000000000000");
    assert_eq!(receipt(&channel, &child, Some(&other), &id).await.unwrap_err(), "pop_invalid");

    let full = receipt(&channel, &child, Some(&proof_for_receipt(&next, &child, "ROW", &id)), &id).await.unwrap();
    let (_, leaf) = child.split_once('~').unwrap();
    let ids = [payload(&root), payload(leaf)].map(|claims| claims["jti"].as_str().unwrap().to_owned());
    assert_eq!((&full.actor, &full.lineage[..]), (&format!("cap:{}", ids[1]), &ids[..]));
    for event in &full.events {
        let body: serde_json::Value = serde_json::from_slice(&event.body_json).unwrap();
        assert_eq!((&body["lineage"], &body["actor"]), (&serde_json::json!(ids), &full.actor.clone().into()));
    }
    let bearer = issuer.bearer(&["ROW"]).await;
    let id = line.call(&bearer, "ROW", "a").await.unwrap().proof.unwrap().invocation_id;
    assert!(receipt(&channel, &bearer, None, &id).await.is_ok(), "who holds a bearer token has nothing to prove");
    world.stop().await;
}

#[tokio::test]
async fn what_a_flow_called_is_hidden_from_a_holder_who_does_not_see_the_row() {
    let world = World::start().await;
    world.create(&echo("STEP")).await;
    world.create(&flow("FLOW", "STEP: $1")).await;
    let (issuer, line, channel) = (Issuer::of(&world).await, Line::to(&world).await, world.channel().await);
    let token = issuer.bearer(&["FLOW"]).await;
    let id = line.call(&token, "FLOW", "a").await.unwrap().proof.unwrap().invocation_id;
    assert_eq!(listed(&channel, &token).await, std::slice::from_ref(&id));
    let full = receipt(&channel, &token, None, &id).await.unwrap();
    assert!(full.children.is_empty(), "{:?}", full.children);
    let owners = world.get(&format!("/api/dispatch?receipt={id}")).await.json();
    let child = owners["children"][0].as_str().unwrap().to_owned();
    assert_eq!(receipt(&channel, &token, None, &child).await.unwrap_err(), "unknown_invocation");
    world.stop().await;
}

#[tokio::test]
async fn no_text_of_a_token_is_kept_anywhere() {
    let world = World::start().await;
    world.create(&echo("ROW")).await;
    let (issuer, line, channel) = (Issuer::of(&world).await, Line::to(&world).await, world.channel().await);
    let (own, next) = (Holder::new(&world.clock), Holder::new(&world.clock));
    let root = issuer.root(&issuer.claims_of(&own, &["ROW"])).await;
    let child = own.derive(&root, &next, |_| {});
    let proof = next.proof(&Aim { token: &child, key: "ROW", sent: r#""a""# });
    let answer = line.prove(&child, &proof, "ROW", "a").await.unwrap();
    let id = answer.proof.clone().unwrap().invocation_id;
    let told = format!(
        "{answer:?} {:?} {:?} {:?}",
        receipt(&channel, &child, Some(&proof_for_receipt(&next, &child, "ROW", &id)), &id).await.unwrap(),
        line.call(&child, "ROW", "a").await.unwrap_err(),
        line.call(&child, &child, "a").await.unwrap_err(),
    );
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let kept = [dump(&world.database_url).await, told.into_bytes()].concat();
    for text in [&root, &child, &proof] {
        for part in text.split(['.', '~']).filter(|part| part.len() > 60) {
            let found = kept.windows(part.len()).any(|window| window == part.as_bytes());
            assert!(!found, "a part of a token is kept: {part}");
        }
    }
    world.stop().await;
}
