//! The key that a command shows, and where it comes from.

use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use callbook_runtime::key_file::{self, KeyError};
use callbook_runtime::settings::{Overrides, Settings, SettingsError};
use reqwest::Url;
use secrecy::SecretString;

/// A key, or why there is none.
#[derive(Debug)]
pub struct Credential {
    /// The key.
    pub secret: Option<SecretString>,
    /// Where it comes from.
    pub source: Source,
}

/// Where a key comes from.
#[derive(Debug)]
pub enum Source {
    /// Nowhere: the caller is anonymous.
    None,
    /// `--key` or `CALLBOOK_KEY`.
    Given,
    /// The setting of the server on this machine, `CALLBOOK_OWNER_KEY`.
    Setting,
    /// The file of the server on this machine.
    File(PathBuf),
    /// There is one on this machine and it cannot be used.
    Unusable(String),
}

impl Credential {
    /// The key that was given. Without one, and only for a gateway on this machine, the owner's key of this user's data
    /// directory.
    pub fn find(given: Option<SecretString>, url: &Url) -> Self {
        match given {
            Some(secret) => Credential { secret: Some(secret), source: Source::Given },
            None if is_loopback(url) => match owner_key() {
                Ok(credential) => credential,
                Err(why) => Credential { secret: None, source: Source::Unusable(why) },
            },
            None => Credential { secret: None, source: Source::None },
        }
    }

    /// What to do where the server does not know the key.
    pub fn fix(&self) -> String {
        match &self.source {
            Source::None => "set CALLBOOK_KEY to an API key or the owner key".to_owned(),
            Source::Given => "the key in --key or CALLBOOK_KEY is not one of this server's, or was revoked".to_owned(),
            Source::Setting => "CALLBOOK_OWNER_KEY is not this server's owner key; set CALLBOOK_KEY".to_owned(),
            Source::File(path) => format!("{} is not this server's owner key; set CALLBOOK_KEY", path.display()),
            Source::Unusable(why) => format!("{why}; or set CALLBOOK_KEY"),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::None => f.write_str("none"),
            Source::Given => f.write_str("from --key or CALLBOOK_KEY"),
            Source::Setting => f.write_str("from CALLBOOK_OWNER_KEY"),
            Source::File(path) => write!(f, "from {}", path.display()),
            Source::Unusable(why) => write!(f, "none ({why})"),
        }
    }
}

/// Whether the gateway is on this machine, so that its files may be this user's.
pub fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

/// The owner's key as the server on this machine reads it. A key is never made here.
fn owner_key() -> Result<Credential, String> {
    let path = |name| std::env::var_os(name).map(PathBuf::from);
    let overrides = Overrides {
        config: path("CALLBOOK_CONFIG"),
        data_dir: path("CALLBOOK_DATA_DIR"),
        owner_key: std::env::var("CALLBOOK_OWNER_KEY").ok(),
        ..Overrides::default()
    };
    let settings = Settings::load(overrides).map_err(|error: SettingsError| error.to_string())?;
    let file = settings.data_dir.as_deref().map(|dir| dir.join("owner.key")).filter(|file| file.is_file());
    let source = match (&settings.owner_key, file) {
        (Some(_), _) => Source::Setting,
        (None, Some(file)) => Source::File(file),
        (None, None) => return Ok(Credential { secret: None, source: Source::None }),
    };
    let key = key_file::owner_key(&settings).map_err(|error: KeyError| error.to_string())?;
    Ok(Credential { secret: Some(key.secret), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        let is = |url: &str| is_loopback(&url.parse().unwrap());
        assert!(
            is("http://127.0.0.1:7700") && is("http://localhost/x") && is("https://[::1]:1") && is("http://127.9.9.9")
        );
        assert!(!is("http://localhost.example") && !is("http://10.0.0.1") && !is("http://127.0.0.1.example:7700"));
    }

    #[test]
    fn a_key_that_is_given_is_used_and_never_shown() {
        let url = "http://127.0.0.1:7700".parse().unwrap();
        let credential = Credential::find(Some(SecretString::from("cbk_secret_of_a_team")), &url);
        assert!(matches!(credential.source, Source::Given));
        let shown = format!("{credential:?} {} {}", credential.source, credential.fix());
        assert!(!shown.contains("secret_of"), "{shown}");
    }

    #[test]
    fn another_machine_never_gets_the_key_of_this_one() {
        let credential = Credential::find(None, &"https://book.example".parse().unwrap());
        assert!(credential.secret.is_none() && matches!(credential.source, Source::None));
    }
}
