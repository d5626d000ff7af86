//! Choosing: a flag or variable, else the file, else the default.

use std::path::PathBuf;
use std::time::Duration;

use callbook_domain::row::DEFAULT_POOL;
use callbook_domain::token::mint::LIFE_SECONDS;
use jiff::tz::TimeZone;
use secrecy::SecretString;

use super::{Catalogue, SettingsError};

/// The shortest key that is taken, in bytes.
const SHORTEST_KEY: usize = 16;

/// A text; an empty one counts as absent, as compose files write it.
pub(super) fn text(set: Option<String>, file: Option<String>, default: &str) -> String {
    set.filter(|text| !text.is_empty()).or(file).unwrap_or_else(|| default.to_owned())
}

/// A path; an empty one counts as absent.
pub(super) fn path(set: Option<PathBuf>, file: Option<PathBuf>) -> Option<PathBuf> {
    set.filter(|path| !path.as_os_str().is_empty()).or(file)
}

/// A list; the variable has commas where the file has a list.
pub(super) fn list(set: Option<String>, file: Option<Vec<String>>) -> Vec<String> {
    let set = set.map(|text| split(&text)).filter(|list| !list.is_empty());
    set.or(file).unwrap_or_default()
}

/// The parts between commas, trimmed, without empty ones.
pub(super) fn split(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

/// A switch; off unless something says otherwise.
pub(super) fn flag(name: &str, set: Option<String>, file: Option<bool>) -> Result<bool, SettingsError> {
    match set.as_deref().map(str::trim).unwrap_or_default().to_ascii_lowercase().as_str() {
        "" => Ok(file.unwrap_or(false)),
        "on" | "true" | "yes" | "1" => Ok(true),
        "off" | "false" | "no" | "0" => Ok(false),
        other => Err(SettingsError::refused(name, format!("`{other}` is neither on nor off"))),
    }
}

/// A whole number.
pub(super) fn number(name: &str, set: Option<String>, file: Option<u32>, default: u32) -> Result<u32, SettingsError> {
    match set.filter(|text| !text.trim().is_empty()) {
        None => Ok(file.unwrap_or(default)),
        Some(text) => {
            text.trim().parse().map_err(|_| SettingsError::refused(name, format!("`{text}` is not a whole number")))
        }
    }
}

pub(super) fn catalogue(set: Option<String>, file: Option<String>, local: bool) -> Result<Catalogue, SettingsError> {
    match text(set, file, if local { "public" } else { "private" }).as_str() {
        "public" => Ok(Catalogue::Public),
        "private" => Ok(Catalogue::Private),
        other => Err(SettingsError::refused("catalogue", format!("`{other}` is neither public nor private"))),
    }
}

pub(super) fn key(name: &str, set: Option<String>) -> Result<Option<SecretString>, SettingsError> {
    match set.filter(|key| !key.is_empty()) {
        Some(key) if key.len() < SHORTEST_KEY => {
            Err(SettingsError::refused(name, format!("must have at least {SHORTEST_KEY} bytes, has {}", key.len())))
        }
        key => Ok(key.map(SecretString::from)),
    }
}

/// The URL itself is never in the sentence: it may hold a password.
pub(super) fn database_url(set: Option<String>, file: Option<String>) -> Result<Option<SecretString>, SettingsError> {
    let url = text(set, file, "");
    if url.is_empty() {
        return Ok(None);
    }
    if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
        return Err(SettingsError::refused("database_url", "must start with postgres://"));
    }
    Ok(Some(SecretString::from(url)))
}

/// Absolute, so that a later change of the working directory moves nothing.
pub(super) fn data_dir(set: Option<PathBuf>, file: Option<PathBuf>) -> Result<Option<PathBuf>, SettingsError> {
    let given = path(set, file).or_else(default_data_dir);
    let absolute = given.map(std::path::absolute).transpose();
    absolute.map_err(|error| SettingsError::refused("data_dir", format!("is not a path ({error})")))
}

/// `/var/lib/callbook` as root, because Postgres does not run as root and cannot look into root's home; else where
/// the XDG base directory specification puts data.
pub(super) fn default_data_dir() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(PathBuf::from("/var/lib/callbook"));
    }
    let filled = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = filled("XDG_DATA_HOME").filter(|dir| dir.is_absolute());
    data.or_else(|| Some(filled("HOME")?.join(".local/share"))).map(|dir| dir.join("callbook"))
}

pub(super) fn pools(set: Option<String>, file: Option<Vec<String>>) -> Result<Vec<String>, SettingsError> {
    let pools = list(set, file);
    if pools.is_empty() {
        return Ok(vec![DEFAULT_POOL.to_owned()]);
    }
    pools.iter().try_for_each(|pool| pool_name("pools", pool))?;
    Ok(pools)
}

/// A pool's name stands in `pool=address`, so it has neither `=` nor a comma, and it is a label of metrics.
pub(super) fn pool_name(setting: &str, pool: &str) -> Result<(), SettingsError> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if pool.is_empty() || pool.len() > 64 || !pool.chars().all(fits) {
        let problem = format!("`{pool}` is not a pool name (1 to 64 of letters, digits, `_`, `-`, `.`)");
        return Err(SettingsError::refused(setting, problem));
    }
    Ok(())
}

/// A name that tokens carry.
pub(super) fn name(setting: &str, set: Option<String>, file: Option<String>) -> Result<String, SettingsError> {
    let name = text(set, file, "callbook");
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c.is_control()) || name.len() > 256 {
        return Err(SettingsError::refused(setting, "must be a name of 1 to 256 bytes without spaces"));
    }
    Ok(name)
}

pub(super) fn token_max(set: Option<String>, file: Option<u32>) -> Result<Duration, SettingsError> {
    let longest = *LIFE_SECONDS.end();
    let seconds = number("token_max_seconds", set, file, u32::try_from(longest).expect("seven days"))?;
    if !LIFE_SECONDS.contains(&i64::from(seconds)) {
        let problem = format!("must be {} to {longest} seconds", LIFE_SECONDS.start());
        return Err(SettingsError::refused("token_max_seconds", problem));
    }
    Ok(Duration::from_secs(seconds.into()))
}

pub(super) fn timezone(name: &str) -> Result<TimeZone, SettingsError> {
    TimeZone::get(name)
        .map_err(|_| SettingsError::refused("timezone", format!("`{name}` is not in this machine's time zone data")))
}
