//! A row as a contract: what a caller reads before it invokes. It holds data alone, and the moves that this caller can
//! make.
//!
//! Nothing here persuades. Words of third parties stand apart, with all that a reader would not see taken out.

mod argument;
mod compact;
mod example;
mod long;
mod moves;
mod schema;
#[cfg(test)]
mod tests;
mod trouble;
mod untrusted;

use crate::caller::Caller;
use crate::compile::Compiled;
use crate::describe::{self, Described, TooLarge};
use crate::row::{Definition, Provenance, Row};

pub use compact::{MAX_COMPACT, compact};
pub use example::example;
pub use long::markdown;
pub use moves::{Move, moves};
pub use untrusted::clean;

/// A row and whom it is rendered for.
#[derive(Clone, Copy, Debug)]
pub struct Rendered<'a> {
    /// The row as stored.
    pub row: &'a Row,
    /// The same, ready to run.
    pub compiled: &'a Compiled,
    /// Who reads.
    pub caller: &'a Caller,
}

impl Rendered<'_> {
    fn definition(&self) -> &Definition {
        &self.row.definition
    }

    fn key(&self) -> &str {
        self.definition().key.as_str()
    }

    /// Whether somebody else wrote the words.
    fn is_third_party(&self) -> bool {
        self.definition().provenance == Provenance::ThirdParty
    }
}

/// What [`describe::describe`] needs of a row.
pub fn described<'a>(definition: &'a Definition, compiled: &'a Compiled) -> Described<'a> {
    Described {
        key: &definition.key,
        docstring: &compiled.docstring,
        input_schema: compiled.signature.schema.as_deref().map(crate::schema::Schema::value),
        output_schema: compiled.output_schema.as_deref().map(crate::schema::Schema::value),
        argument_names: &compiled.signature.names,
        third_party: definition.provenance == Provenance::ThirdParty,
    }
}

/// The row as TypeScript, for a model that writes code.
///
/// # Errors
/// Where the text would be longer than [`describe::MAX_DESCRIPTION`].
pub fn typescript(definition: &Definition, compiled: &Compiled) -> Result<String, TooLarge> {
    describe::describe(&[described(definition, compiled)])
}
