//! Secrets of a deployment: a folder with one file each, as orchestrators mount them.

use std::path::PathBuf;

use tempfile::TempDir;

use crate::world::Builder;

/// The folder, gone with this.
pub struct Secrets {
    folder: TempDir,
    origins: String,
}

impl Secrets {
    /// Secrets by name and value, all bound to one origin.
    pub fn bound_to(origin: &str, values: &[(&str, &str)]) -> Secrets {
        let bound: Vec<String> = values.iter().map(|(name, _)| format!("{name}={origin}")).collect();
        let secrets = Secrets { folder: tempfile::tempdir().unwrap(), origins: bound.join(",") };
        for (name, value) in values {
            secrets.rotate(name, value);
        }
        secrets
    }

    /// Writes another value; the next call uses it.
    pub fn rotate(&self, name: &str, value: &str) {
        std::fs::write(self.folder.path().join(name), value).unwrap();
    }

    /// Takes a value away.
    pub fn lose(&self, name: &str) {
        std::fs::remove_file(self.folder.path().join(name)).unwrap();
    }

    /// The folder.
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// `CALLBOOK_SECRET_ORIGINS`.
    pub fn origins(&self) -> String {
        self.origins.clone()
    }

    /// Gives them to a deployment.
    pub fn give(&self, builder: Builder) -> Builder {
        builder.set(|set| {
            set.secrets_dir = Some(self.folder());
            set.secret_origins = Some(self.origins());
        })
    }
}
