//! SQL of the gate.

pub(crate) mod key;
pub(crate) mod principal;
pub(crate) mod token;
