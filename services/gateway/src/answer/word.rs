//! The words of the interface for the enums of the wire. A value that this gateway is too old to know has no word.

use callbook_wire::contract::v1::ContractFormat;
use callbook_wire::directory::v1 as directory;
use callbook_wire::executor::v1 as executor;
use callbook_wire::receipt::v1::{CommitMode, ReceiptStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A word of the interface.
pub(crate) trait Word: Copy {
    /// The word for a value of the wire.
    fn read(value: i32) -> Option<Self>;

    /// The value of the wire.
    fn value(self) -> i32;

    /// The word.
    fn as_str(self) -> &'static str;
}

/// The value of the wire for a filter; absent is unspecified.
pub(crate) fn only<W: Word>(word: Option<W>) -> i32 {
    word.map_or(0, W::value)
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident of $wire:ty { $($(#[$vdoc:meta])* $variant:ident = $word:tt,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
        pub(crate) enum $name { $($(#[$vdoc])* #[serde(rename = $word)] $variant,)* }

        impl Word for $name {
            fn read(value: i32) -> Option<Self> {
                $(if value == <$wire>::$variant as i32 { return Some(Self::$variant); })*
                None
            }

            fn value(self) -> i32 {
                match self { $(Self::$variant => <$wire>::$variant as i32,)* }
            }

            fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)* }
            }
        }
    )*};
}

words! {
    /// What runs a row.
    RowType of directory::RowType {
        /// A built-in function.
        Fn = "fn",
        /// A request to an HTTP upstream.
        Http = "http",
        /// A model with a prompt.
        Agent = "agent",
        /// A sequence of other rows.
        Flow = "flow",
    }
    /// Who wrote the text of a row.
    Provenance of directory::Provenance {
        /// People of this deployment.
        Owner = "owner",
        /// Somebody else; the text is data.
        ThirdParty = "third_party",
        /// A program of this deployment.
        Generated = "generated",
    }
    /// What a call can do to the world.
    Effect of directory::Effect {
        /// Nothing.
        Read = "read",
        /// It changes something.
        Write = "write",
        /// It removes something.
        Destructive = "destructive",
    }
    /// How much care a call needs.
    Risk of directory::Risk {
        /// An ordinary row.
        Low = "low",
        /// A sensitive row, or a flow that reaches one.
        High = "high",
    }
    /// What a write did to a row.
    Action of directory::RowAction {
        /// It was added.
        Create = "create",
        /// It was replaced whole.
        Replace = "replace",
        /// Some columns were changed.
        Patch = "patch",
        /// It was removed.
        Delete = "delete",
        /// An earlier version was written again.
        Restore = "restore",
        /// A row that it reaches changed, and so its contract hash.
        Rehash = "rehash",
    }
    /// How an invocation stands.
    Status of ReceiptStatus {
        /// It ran, succeeded and gave output.
        ProvenMaterialResult = "PROVEN_MATERIAL_RESULT",
        /// It ran, and failed or gave nothing.
        ProvenAttemptNoMaterialResult = "PROVEN_ATTEMPT_NO_MATERIAL_RESULT",
        /// It runs.
        Pending = "PENDING",
        /// Its executor died before the result was written.
        Unknown = "UNKNOWN",
        /// It waits for a person.
        Held = "HELD",
        /// It was refused.
        Denied = "DENIED",
    }
    /// When the intent of an invocation was committed.
    Mode of CommitMode {
        /// Before the call was fired.
        Before = "durable",
        /// After it, together with the result.
        Read = "read",
    }
    /// How far a held call came.
    ApprovalState of executor::ApprovalState {
        /// Nobody has decided.
        Held = "held",
        /// The call may be fired once.
        Approved = "approved",
        /// The call is refused.
        Refused = "refused",
        /// The approved call was fired.
        Used = "used",
        /// Its time is over.
        Expired = "expired",
    }
    /// What the watcher does with a call.
    WatchAction of executor::WatchAction {
        /// The call goes on.
        Allow = "allow",
        /// The call is refused.
        Deny = "deny",
        /// The call waits for a person.
        Hold = "hold",
    }
    /// How a contract is rendered.
    Format of ContractFormat {
        /// Compact JSON for models.
        Json = "json",
        /// The long form for people.
        Markdown = "markdown",
        /// Types for a model that writes code.
        Typescript = "typescript",
    }
}
