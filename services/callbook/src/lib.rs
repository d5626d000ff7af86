//! The one binary: all roles in one process, chosen roles, and the client commands.

pub mod cluster;
pub mod node;
pub mod sample;

mod rpc;
