//! Render one row as a contract.

use callbook_domain::caller::Caller;
use callbook_domain::contract::{self, Rendered};
use callbook_domain::fault::{Fault, Reason, Result};

use crate::App;

/// How a contract is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Compact JSON.
    Json,
    /// The long form.
    Markdown,
    /// Types.
    TypeScript,
}

impl Format {
    fn media_type(self) -> &'static str {
        match self {
            Format::Json => "application/json",
            Format::Markdown => "text/markdown",
            Format::TypeScript => "text/x-typescript",
        }
    }
}

/// A contract, and what it was rendered from.
pub(crate) struct Contract {
    pub(crate) key: String,
    pub(crate) content: String,
    pub(crate) media_type: &'static str,
    pub(crate) contract_hash: String,
    pub(crate) text_hash: String,
    pub(crate) revision: i64,
    pub(crate) version: i64,
    pub(crate) stale: bool,
}

/// The contract of the row of this key, for this caller.
///
/// # Errors
/// `unknown_key`; what keeps the row from being called, where it no longer compiles.
pub(crate) async fn render(app: &App, caller: &Caller, key: &str, format: Format) -> Result<Contract> {
    app.callers.require_catalogue(caller)?;
    let look = app.look().await?;
    let entry = look.snapshot.get(key).filter(|entry| entry.row.definition.enabled && caller.sees(entry.key()));
    let entry = entry.ok_or_else(|| look.snapshot.unknown_key(caller, key))?;
    let (row, compiled) = (&entry.row, entry.compiled.as_ref().map_err(Clone::clone)?);
    let rendered = Rendered { row, compiled, caller };
    let content = match format {
        Format::Json => contract::compact(&rendered).to_string(),
        Format::Markdown => contract::markdown(&rendered),
        Format::TypeScript => contract::typescript(&row.definition, compiled).map_err(|error| {
            Fault::new(Reason::RegistryHygieneRefused, error.to_string())
                .detail("description_too_large")
                .fix("read it as JSON, or shorten the docstring or the schemas")
                .with("key", key)
        })?,
    };
    Ok(Contract {
        key: entry.key().to_string(),
        content,
        media_type: format.media_type(),
        contract_hash: row.contract_hash.clone(),
        text_hash: row.text_hash.clone(),
        revision: look.snapshot.revision,
        version: row.version,
        stale: look.stale,
    })
}
