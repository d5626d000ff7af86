//! The moves that a caller can make with a row. The server decides all the same; this only saves a try.

use super::Rendered;
use crate::caller::{Caller, May};
use crate::compile::Plan;
use crate::row::{Risk, word_enum};

word_enum! {
    /// A move.
    Move {
        /// Read the contract.
        Contract = "contract",
        /// See that a call happened.
        Confirm = "confirm",
        /// Run the row.
        Invoke = "invoke",
        /// Build the call and run nothing.
        Shape = "shape",
        /// Read the receipt of a call.
        Receipt = "receipt",
        /// Run a corrected call, linked to the one that failed.
        Repair = "repair",
        /// Run a call again.
        Replay = "replay",
        /// Change the row.
        Edit = "edit",
        /// Check the row and shape its example.
        Check = "check",
        /// Read its versions.
        History = "history",
    }
}

impl Move {
    /// Where the move is made: method, address and what the body holds.
    pub fn address(self, key: &str) -> String {
        match self {
            Move::Contract => format!("GET /api/dispatch?key={key}"),
            Move::Confirm => "GET /api/dispatch?confirm=<invocation_id>".to_owned(),
            Move::Invoke => "POST /api/dispatch".to_owned(),
            Move::Shape => format!("POST /api/dispatch {{\"key\":\"{key}\",…,\"shape\":true}}"),
            Move::Receipt => "GET /api/dispatch?receipt=<invocation_id>".to_owned(),
            Move::Repair => format!("POST /api/dispatch {{\"key\":\"{key}\",…,\"repairs\":\"<invocation_id>\"}}"),
            Move::Replay => "POST /api/dispatch {\"replay\":\"<invocation_id>\"}".to_owned(),
            Move::Edit => format!("PATCH /api/directory/{key}"),
            Move::Check => format!("GET /api/directory/{key}/test"),
            Move::History => format!("GET /api/directory/{key}/history"),
        }
    }
}

/// Whether the caller may call the row: its grants cover it, or its token does and has no pin or ceiling against it. The
/// watcher may still hold the call.
pub(super) fn may_invoke(rendered: &Rendered<'_>) -> bool {
    let is_callable = !matches!(rendered.compiled.plan, Plan::Block);
    let (row, key) = (rendered.row, &rendered.definition().key);
    let covers = match rendered.caller {
        Caller::Holder(holder) => holder.chain.check_row(key, &row.contract_hash, row.risk, row.effect).is_ok(),
        caller @ (Caller::Owner | Caller::Principal(_) | Caller::Anonymous) => caller.may(May::Invoke, Some(key)),
    };
    is_callable && covers
}

/// Whether a person is asked before a call of this caller runs, where no rule of the watcher says otherwise.
pub(super) fn waits_for_a_person(rendered: &Rendered<'_>) -> bool {
    match rendered.caller {
        Caller::Owner => false,
        Caller::Holder(holder) => holder.chain.owner_gate() || rendered.row.risk == Risk::High,
        Caller::Principal(_) | Caller::Anonymous => rendered.row.risk == Risk::High,
    }
}

/// What this caller can do, in the order of a walk.
pub fn moves(rendered: &Rendered<'_>) -> Vec<Move> {
    let key = Some(&rendered.definition().key);
    let invokes = may_invoke(rendered);
    let reads = invokes || rendered.caller.may(May::ReadReceipts, key) || rendered.caller.may(May::Invoke, key);
    let edits = rendered.caller.may(May::Edit, key);
    let can = |each: Move| match each {
        Move::Contract | Move::Confirm => true,
        Move::Invoke | Move::Shape | Move::Repair | Move::Replay => invokes,
        Move::Receipt => reads,
        Move::Edit | Move::Check | Move::History => edits,
    };
    Move::ALL.iter().copied().filter(|each| can(*each)).collect()
}
