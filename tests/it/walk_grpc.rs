//! The five printed steps over gRPC, with the clients that the proto files give.

use callbook_tests::upstream::Upstream;
use callbook_tests::world::{OWNER, World};
use callbook_wire::contract::v1 as contract;
use callbook_wire::contract::v1::contract_service_client::ContractServiceClient;
use callbook_wire::directory::v1 as directory;
use callbook_wire::directory::v1::directory_service_client::DirectoryServiceClient;
use callbook_wire::executor::v1 as executor;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::receipt::v1 as receipt;
use callbook_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use callbook_wire::resolver::v1 as resolver;
use callbook_wire::resolver::v1::resolver_service_client::ResolverServiceClient;
use serde_json::{Value, json};
use tonic::transport::Channel;
use tonic::{Code, Request};

fn owned<T>(message: T) -> Request<T> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("x-terminal-key", OWNER.parse().unwrap());
    request
}

async fn channel(world: &World) -> Channel {
    Channel::from_shared(world.grpc.clone()).unwrap().connect().await.unwrap()
}

#[tokio::test]
async fn a_capability_is_created_asked_for_called_and_proven_over_grpc() {
    let upstream = Upstream::weather().await;
    let world = World::with().allow(&[upstream.origin()]).start().await;
    let channel = channel(&world).await;
    let key = "ZZ_TEST_TEMPERATURE".to_owned();
    let row = json!({"key": key, "type": "http", "examples": "[\"37.77|-122.42\"]", "enabled": 1,
        "target": format!("GET {}/v1/forecast?latitude=$1&longitude=$2&current=temperature_2m", upstream.origin()),
        "content": "# WHAT: Current temperature at a latitude and longitude.\n# ARGS: $1=latitude | $2=longitude"});

    let mut book = DirectoryServiceClient::new(channel.clone());
    let create = directory::CreateRowRequest { row_json: row.to_string().into(), allow_lookalike: false };
    assert_eq!(book.create_row(create.clone()).await.unwrap_err().code(), Code::Unauthenticated);
    let written = book.create_row(owned(create)).await.unwrap().into_inner().write.unwrap();
    assert_eq!((written.key.as_str(), written.version), ("ZZ_TEST_TEMPERATURE", 1));

    let question = "current temperature at a latitude and longitude".to_owned();
    let asked = ResolverServiceClient::new(channel.clone())
        .ask(resolver::AskRequest { question, ..resolver::AskRequest::default() })
        .await
        .unwrap()
        .into_inner();
    assert_eq!(asked.best.unwrap().summary.unwrap().key, key);

    let read = contract::GetContractRequest { key: key.clone(), format: 0 };
    let read = ContractServiceClient::new(channel.clone()).get_contract(read).await.unwrap().into_inner();
    let shown: Value = serde_json::from_slice(&read.content).unwrap();
    assert_eq!(shown["arguments"][1]["name"], "longitude", "{shown}");

    let form = Some(executor::arguments::Form::Body("37.77|-122.42".to_owned()));
    let arguments = Some(executor::Arguments { form });
    let invoke = executor::InvokeRequest { key: key.clone(), arguments, ..Default::default() };
    let answer =
        ExecutorServiceClient::new(channel.clone()).invoke(owned(invoke)).await.unwrap().into_inner().answer.unwrap();
    assert!(answer.ok && answer.ran && answer.result.starts_with("HTTP 200:{"), "{answer:?}");
    assert!(String::from_utf8_lossy(&answer.output).contains("\"temperature_2m\":15.7"), "{answer:?}");
    let proof = answer.proof.unwrap();
    assert_eq!(proof.contract_hash, read.contract_hash);

    let delete = directory::DeleteRowRequest { key: key.clone(), if_match: None };
    assert_eq!(book.delete_row(owned(delete)).await.unwrap().into_inner().deleted, 1);
    let mut receipts = ReceiptServiceClient::new(channel);
    let confirm = receipt::ConfirmRequest { invocation_id: proof.invocation_id.clone() };
    let confirmed = receipts.confirm(confirm).await.unwrap().into_inner();
    assert!(confirmed.confirmed && confirmed.status() == receipt::ReceiptStatus::ProvenMaterialResult, "{confirmed:?}");
    let full = owned(receipt::GetReceiptRequest { invocation_id: proof.invocation_id });
    let full = receipts.get_receipt(full).await.unwrap().into_inner().receipt.unwrap();
    assert_eq!((full.actor.as_str(), full.upstream_status), ("owner:terminal-key", Some(200)));
    let again = contract::GetContractRequest { key, format: 0 };
    let gone = ContractServiceClient::new(self::channel(&world).await).get_contract(again).await.unwrap_err();
    assert_eq!(gone.code(), Code::NotFound);
    world.stop().await;
}

#[tokio::test]
async fn a_refusal_over_grpc_carries_its_reason() {
    let world = World::start().await;
    let mut book = DirectoryServiceClient::new(channel(&world).await);
    let row = json!({"key": "ROW", "type": "fn", "target": "echo", "content": ""}).to_string();
    let create = directory::CreateRowRequest { row_json: row.into(), allow_lookalike: false };
    let refused = book.create_row(owned(create)).await.unwrap_err();
    let fault = callbook_runtime::grpc::from_status(&refused);
    assert_eq!(
        (refused.code(), fault.error_text()),
        (Code::InvalidArgument, "registry_hygiene_refused: missing_description".to_owned())
    );
    assert!(fault.metadata().contains(&("key", "ROW".to_owned())), "{fault:?}");
    let stale = directory::DeleteRowRequest { key: "ROW".to_owned(), if_match: Some(3) };
    assert_eq!(book.delete_row(owned(stale)).await.unwrap_err().code(), Code::FailedPrecondition);
    world.stop().await;
}

#[tokio::test]
async fn changes_are_streamed_to_whoever_watches() {
    let world = World::start().await;
    let mut resolver = ResolverServiceClient::new(channel(&world).await);
    world.create(&callbook_tests::book::echo("BEFORE")).await;
    let watch = resolver::WatchChangesRequest { since_revision: Some(0) };
    let mut changes = resolver.watch_changes(owned(watch)).await.unwrap().into_inner();
    world.create(&callbook_tests::book::echo("AFTER")).await;
    world.delete("BEFORE").await;
    let (mut changed, mut removed) = (Vec::new(), Vec::new());
    let reading = async {
        while removed.is_empty() {
            let change = changes.message().await.unwrap().unwrap();
            changed.extend(change.changed_keys);
            removed.extend(change.removed_keys);
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), reading).await.unwrap();
    assert!(changed.contains(&"AFTER".to_owned()), "{changed:?}");
    assert_eq!(removed, ["BEFORE"]);
    drop(changes);
    world.stop().await;
}
