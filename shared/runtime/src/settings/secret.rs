//! Which secret may go where. Values are not here: only executors hold them, and read them at each use.

use std::collections::BTreeMap;
use std::path::PathBuf;

use callbook_domain::secret::{Binding, Bindings};

use super::address::{origins, parse_origin};
use super::error::SettingsError;
use super::file::SecretTable;
use super::pick::split;

/// The file's bindings with those of `CALLBOOK_SECRET_ORIGINS` over them, and the files with values. A name in both
/// keeps its prefixes and its file, and takes the variable's origins.
pub(super) fn secrets(
    file: BTreeMap<String, SecretTable>,
    set: Option<String>,
) -> Result<(Bindings, BTreeMap<String, PathBuf>), SettingsError> {
    let mut bindings = BTreeMap::new();
    let mut files = BTreeMap::new();
    for (name, table) in file {
        let setting = format!("secrets.{name}");
        secret_name(&setting, &name)?;
        let origins = origins(&format!("{setting}.origins"), table.origins)?;
        if origins.is_empty() {
            return Err(SettingsError::refused(format!("{setting}.origins"), "must name at least one origin"));
        }
        files.extend(table.value_file.map(|path| (name.clone(), path)));
        bindings.insert(name, Binding { origins, keys: table.keys });
    }
    for (name, origins) in from_variable(&set.unwrap_or_default())? {
        let binding: &mut Binding = bindings.entry(name).or_default();
        binding.origins = origins;
    }
    Ok((Bindings(bindings), files))
}

/// `NAME=origin,NAME=origin`; a name may stand several times.
fn from_variable(text: &str) -> Result<BTreeMap<String, Vec<String>>, SettingsError> {
    const SETTING: &str = "secret_origins";
    let mut bindings: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for part in split(text) {
        let (name, origin) = part
            .split_once('=')
            .ok_or_else(|| SettingsError::refused(SETTING, format!("`{part}` is not NAME=scheme://host:port")))?;
        let name = name.trim();
        secret_name(SETTING, name)?;
        let origin = parse_origin(origin).map_err(|problem| SettingsError::refused(SETTING, problem))?;
        bindings.entry(name.to_owned()).or_default().push(origin);
    }
    Ok(bindings)
}

/// A name is also a file's and a variable's name. Callbook's own variables are no secrets of rows: a binding must
/// not be able to send the owner key to an upstream.
fn secret_name(setting: &str, name: &str) -> Result<(), SettingsError> {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if !starts || name.len() > 128 || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        let problem = format!("`{name}` is not a secret's name (letters, digits and `_`, no digit first)");
        return Err(SettingsError::refused(setting, problem));
    }
    if name.to_ascii_uppercase().starts_with("CALLBOOK_") || name.eq_ignore_ascii_case("DATABASE_URL") {
        return Err(SettingsError::refused(
            setting,
            format!("`{name}` is Callbook's own and may not be sent anywhere"),
        ));
    }
    Ok(())
}
