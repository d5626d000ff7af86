//! The product through its front door.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod layout;
mod walk;
