//! The nouns of Callbook and their rules. Pure: no I/O, no async, no wire, no SQL.

pub mod key;
pub mod row;

pub mod docstring;
pub mod arguments;
pub mod schema;
pub mod template;
pub mod target;
pub mod auth;
pub mod secret;
pub mod flow;
pub mod function;
pub mod agent;
pub mod compile;
pub mod hygiene;
pub mod lookalike;
pub mod nearest;
pub mod hash;
pub mod canonical;
pub mod json;

pub mod contract;
pub mod describe;

pub mod caller;
pub mod token;
pub mod invocation;
pub mod outcome;
pub mod content;
pub mod event;

pub mod clock;
pub mod fault;
