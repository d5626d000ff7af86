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

/// Whether the caller's grants cover a call of the row. A sensitive row is the owner's to call.
pub(super) fn may_invoke(rendered: &Rendered<'_>) -> bool {
    let is_callable = !matches!(rendered.compiled.plan, Plan::Block);
    let passes_gate = rendered.row.risk == Risk::Low || *rendered.caller == Caller::Owner;
    is_callable && passes_gate && rendered.caller.may(May::Invoke, Some(&rendered.definition().key))
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
