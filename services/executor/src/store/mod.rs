//! The executor's SQL.

pub mod approval;
pub mod breaker;
pub mod commit;
pub mod denied;
pub mod finish;
pub mod kv;
pub mod liveness;
pub mod progress;
pub mod read;
pub mod receipt;
pub mod stopped;
pub mod uses;
pub mod watch;
