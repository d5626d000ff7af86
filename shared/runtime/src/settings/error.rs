//! What can be wrong with a setting.

use std::path::PathBuf;

/// A setting that was refused, in one sentence.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingsError {
    /// A value that does not do. `name` is the setting's name in `callbook.toml`; its variable is `CALLBOOK_` and
    /// the name in capitals.
    #[error("setting `{name}`: {problem}")]
    Refused {
        /// The setting.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A file that cannot be read or understood.
    #[error("settings file {}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
}

impl SettingsError {
    /// A refused value.
    pub(super) fn refused(name: impl Into<String>, problem: impl Into<String>) -> Self {
        SettingsError::Refused { name: name.into(), problem: problem.into() }
    }
}
