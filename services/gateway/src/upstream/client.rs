//! The generated clients, with room for the largest answer.

use callbook_wire::contract::v1::contract_service_client::ContractServiceClient;
use callbook_wire::directory::v1::directory_service_client::DirectoryServiceClient;
use callbook_wire::executor::v1::executor_service_client::ExecutorServiceClient;
use callbook_wire::gate::v1::gate_service_client::GateServiceClient;
use callbook_wire::receipt::v1::receipt_service_client::ReceiptServiceClient;
use callbook_wire::resolver::v1::resolver_service_client::ResolverServiceClient;
use tonic_health::pb::health_client::HealthClient;

use super::Wire;

/// The largest message that a service may send, in bytes: a page of history with every version at its bounds.
const MESSAGE_BYTES: usize = 128 * 1024 * 1024;

macro_rules! clients {
    ($($name:ident: $client:ident;)*) => {$(
        pub(crate) fn $name(wire: Wire) -> $client<Wire> {
            $client::new(wire).max_decoding_message_size(MESSAGE_BYTES)
        }
    )*};
}

clients! {
    resolver: ResolverServiceClient;
    contract: ContractServiceClient;
    directory: DirectoryServiceClient;
    gate: GateServiceClient;
    executor: ExecutorServiceClient;
    receipt: ReceiptServiceClient;
    health: HealthClient;
}

/// One method of one client, as [`super::Pool::read`] and [`super::Pool::write`] take it: `rpc!(resolver.ask)`.
macro_rules! rpc {
    ($client:ident . $method:ident) => {
        |wire, request| async move { $crate::upstream::$client(wire).$method(request).await }
    };
}
pub(crate) use rpc;
