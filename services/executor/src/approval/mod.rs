//! Calls that wait for a person: the watcher's rules, held calls, and what becomes of them.
//!
//! A held call is a row of `approval`, bound to caller, key, contract hash and argument hash. It has the id of the
//! invocation that it will be and no row of `invocation`: the commit point writes that one when the call is fired, and
//! takes the approval from `approved` to `used` in the same transaction. What the caller sent stands, with its salt, in
//! `approval` and not in `payload`, where the commit point puts the part `input` of the same invocation; retention takes
//! both away.

mod held;
mod rule;
mod passage;
mod watcher;
mod find;
mod list;
mod look;
mod decide;
mod govern;

pub use decide::decide;
pub use find::{of_invocation, wait};
pub use govern::{delete_rule, put_rule, rules};
pub use held::{Approval, State, id_text, parse_id};
pub use list::list;
pub use look::look;
pub use passage::{Passage, passage, verdict};
pub use rule::{Action, Rule, Verdict};
pub use watcher::Watcher;
