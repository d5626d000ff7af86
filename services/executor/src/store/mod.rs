//! The executor's SQL.

pub mod breaker;
pub mod commit;
pub mod finish;
pub mod kv;
pub mod liveness;
pub mod read;
pub mod receipt;
