//! The public view of an invocation.

use callbook_wire::receipt::v1 as wire;
use serde::Serialize;
use utoipa::ToSchema;

use crate::answer::{Mode, Status, Word, moment, some};

/// What everybody may know of an invocation: no input, output, actor or address of an upstream.
#[derive(Serialize, ToSchema)]
pub(crate) struct Confirmation {
    /// Always true: the engine has it on record.
    pub(super) confirmed: bool,
    /// How it stands.
    pub(super) status: Option<Status>,
    /// `inv_` and 26 characters.
    pub(super) invocation_id: String,
    /// Key of the row, which may be deleted since.
    pub(super) key: String,
    /// Contract hash of the row that was run.
    pub(super) contract_hash: String,
    /// When the intent was committed.
    #[schema(format = DateTime)]
    pub(super) started_at: Option<String>,
    /// When the result was committed. Null: there is none.
    #[schema(format = DateTime)]
    pub(super) ended_at: Option<String>,
    /// Salted commitments of the bytes.
    pub(super) commitments: Commitments,
    /// Invocation that it corrects. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) repairs: Option<String>,
    /// Invocation that it runs again. Absent: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) replay_of: Option<String>,
    /// When its intent was committed.
    pub(super) mode: Option<Mode>,
}

/// Salted commitments, `c1:` and hex. Null: not made.
#[derive(Serialize, ToSchema)]
pub(crate) struct Commitments {
    /// Of the arguments.
    pub(super) input: Option<String>,
    /// Of the output.
    pub(super) output: Option<String>,
    /// Of the request as sent.
    pub(super) request: Option<String>,
    /// Of the response as received.
    pub(super) response: Option<String>,
}

impl Confirmation {
    pub(super) fn read(found: wire::ConfirmResponse) -> Self {
        Confirmation {
            confirmed: found.confirmed,
            status: Status::read(found.status),
            invocation_id: found.invocation_id,
            key: found.key,
            contract_hash: found.contract_hash,
            started_at: moment(found.started_at),
            ended_at: moment(found.ended_at),
            commitments: Commitments::read(found.commitments),
            repairs: some(found.repairs),
            replay_of: some(found.replay_of),
            mode: Mode::read(found.mode),
        }
    }
}

impl Commitments {
    pub(super) fn read(made: Option<wire::Commitments>) -> Self {
        let made = made.unwrap_or_default();
        Commitments {
            input: some(made.input),
            output: some(made.output),
            request: some(made.request),
            response: some(made.response),
        }
    }
}
