//! What every Callbook process needs around its work: settings, keys, telemetry, health, shutdown, and the one
//! place where a [`callbook_domain::fault::Fault`] becomes a gRPC status or an HTTP body.
//!
//! Nothing here knows a service, a table or a protobuf message of ours.

pub mod settings;

pub mod key_file;

pub mod status;

pub mod grpc;

pub mod problem;

pub mod telemetry;

pub mod metrics;

pub mod health;

pub mod admin;

pub mod listen;

pub mod shutdown;
