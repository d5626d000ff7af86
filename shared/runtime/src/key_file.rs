//! The keys that a deployment needs: set by the operator, or made and kept in the data directory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use data_encoding::BASE64URL_NOPAD;
use secrecy::{ExposeSecret, SecretString};

use crate::settings::Settings;

/// The shortest key that a file may hold, in bytes; the settings know the same bound.
const SHORTEST: usize = 16;
/// More than any key; a larger file is something else.
const LONGEST: u64 = 4096;

/// A key and where it comes from.
#[derive(Clone, Debug)]
pub struct Key {
    /// The key.
    pub secret: SecretString,
    /// Whether this start made it, so that somebody should be told where it is.
    pub just_made: bool,
}

/// Why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// Neither set nor a directory to keep one in.
    #[error("setting `{setting}`: must be set where there is no data directory")]
    NoPlace {
        /// The setting.
        setting: &'static str,
    },
    /// Others can read the file.
    #[error("{} can be read by others than its owner; run `chmod 600` on it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// Not a key.
    #[error("{} holds no key of at least {SHORTEST} bytes in one line", path.display())]
    NotAKey {
        /// The file.
        path: PathBuf,
    },
    /// The file or its directory cannot be used.
    #[error("{} cannot be read or made ({source}); set `{setting}` instead, or another data directory", path.display())]
    Unusable {
        /// The setting that makes the file unnecessary.
        setting: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The owner key: the setting `CALLBOOK_OWNER_KEY`, else `<data-dir>/owner.key`, made at the first start.
///
/// # Errors
/// One sentence that says what to do.
pub fn owner_key(settings: &Settings) -> Result<Key, KeyError> {
    key("owner_key", "owner.key", settings.owner_key.as_ref(), settings.data_dir.as_deref())
}

/// The MAC key for cursors and request state: `CALLBOOK_INTERNAL_KEY`, else `<data-dir>/internal.key`.
///
/// # Errors
/// One sentence that says what to do.
pub fn internal_key(settings: &Settings) -> Result<Key, KeyError> {
    key("internal_key", "internal.key", settings.internal_key.as_ref(), settings.data_dir.as_deref())
}

/// The same for a process that only seals what its own clients carry, and makes no file: nothing where neither the
/// setting nor the file is there.
///
/// # Errors
/// One sentence that says what to do.
pub fn internal_key_here(settings: &Settings) -> Result<Option<SecretString>, KeyError> {
    if let Some(set) = &settings.internal_key {
        return Ok(Some(set.clone()));
    }
    let Some(path) = settings.data_dir.as_deref().map(|dir| dir.join("internal.key")) else { return Ok(None) };
    read(&path, |source| KeyError::Unusable { setting: "internal_key", path: path.clone(), source })
}

/// The key that signs tokens, where the operator gives it: the setting `CALLBOOK_ISSUER_KEY`, else the file
/// `<data-dir>/issuer.key`, which is never made. What it says is not looked at.
///
/// # Errors
/// One sentence that says what to do.
pub fn issuer_key(settings: &Settings) -> Result<Option<SecretString>, KeyError> {
    if let Some(set) = &settings.issuer_key {
        return Ok(Some(set.clone()));
    }
    let Some(path) = settings.data_dir.as_deref().map(|dir| dir.join("issuer.key")) else { return Ok(None) };
    Ok(content(&path, |source| unusable(&path, source))?.map(SecretString::from))
}

/// The private keys that sign tokens: one file each in `<data-dir>/issuer`, mode 0600, named by the key.
#[derive(Clone, Debug)]
pub struct KeyFolder(PathBuf);

impl KeyFolder {
    /// The folder of this data directory; nothing is made yet.
    pub fn of(data_dir: &Path) -> KeyFolder {
        KeyFolder(data_dir.join("issuer"))
    }

    /// The key of this name, if its file is here.
    ///
    /// # Errors
    /// One sentence that says what to do.
    pub fn read(&self, name: &str) -> Result<Option<SecretString>, KeyError> {
        let path = self.path(name);
        read(&path, |source| unusable(&path, source))
    }

    /// Keeps a key under its name. The file is there whole or not at all; one that is there stays.
    ///
    /// # Errors
    /// One sentence that says what to do.
    pub fn keep(&self, name: &str, key: &SecretString) -> Result<(), KeyError> {
        let path = self.path(name);
        make(&path, key.expose_secret()).map(drop).map_err(|source| unusable(&path, source))
    }

    /// Forgets a key.
    ///
    /// # Errors
    /// One sentence that says what to do.
    pub fn forget(&self, name: &str) -> Result<(), KeyError> {
        let path = self.path(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(&path, error)),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(format!("{name}.key"))
    }
}

fn unusable(path: &Path, source: io::Error) -> KeyError {
    KeyError::Unusable { setting: "issuer_key", path: path.to_owned(), source }
}

fn key(
    setting: &'static str,
    file: &str,
    set: Option<&SecretString>,
    data_dir: Option<&Path>,
) -> Result<Key, KeyError> {
    if let Some(secret) = set {
        return Ok(Key { secret: secret.clone(), just_made: false });
    }
    let path = data_dir.ok_or(KeyError::NoPlace { setting })?.join(file);
    let unusable = |source| KeyError::Unusable { setting, path: path.clone(), source };
    if let Some(secret) = read(&path, unusable)? {
        return Ok(Key { secret, just_made: false });
    }
    let just_made = random(32).and_then(|secret| make(&path, &secret)).map_err(unusable)?;
    let secret = read(&path, unusable)?.ok_or_else(|| unusable(io::ErrorKind::NotFound.into()))?;
    Ok(Key { secret, just_made })
}

fn read(path: &Path, unusable: impl Fn(io::Error) -> KeyError) -> Result<Option<SecretString>, KeyError> {
    let Some(text) = content(path, unusable)? else { return Ok(None) };
    let key = text.trim_end_matches(['\n', '\r']);
    if key.len() < SHORTEST || key.contains(['\n', '\r']) {
        return Err(KeyError::NotAKey { path: path.to_owned() });
    }
    Ok(Some(SecretString::from(key)))
}

/// The text of a file that nobody else can read; nothing where there is none.
fn content(path: &Path, unusable: impl Fn(io::Error) -> KeyError) -> Result<Option<String>, KeyError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(error)),
    };
    let mode = file.metadata().map_err(&unusable)?.permissions().mode();
    if mode & 0o077 != 0 {
        return Err(KeyError::Exposed { path: path.to_owned() });
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text).map_err(unusable)?;
    Ok(Some(text))
}

/// Makes the file whole or not at all: two first starts at the same time agree on one key, and the loser says `false`.
fn make(path: &Path, key: &str) -> io::Result<bool> {
    let dir = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let draft = path.with_extension(format!("{}.new", random(6)?));
    let written = write(&draft, key).and_then(|()| match std::fs::hard_link(&draft, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    });
    let _ = std::fs::remove_file(&draft);
    let just_made = written?;
    File::open(dir)?.sync_all()?;
    Ok(just_made)
}

fn write(draft: &Path, key: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    writeln!(file, "{key}")?;
    file.sync_all()
}

/// Random bytes in characters that survive a shell, a URL and a header; 32 bytes make 43 of them.
fn random(bytes: usize) -> io::Result<String> {
    let mut random = vec![0; bytes];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(BASE64URL_NOPAD.encode(&random))
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    fn owner(dir: &Path) -> Result<Key, KeyError> {
        key("owner_key", "owner.key", None, Some(dir))
    }

    #[test]
    fn the_first_start_makes_a_key_and_the_second_reads_it() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("a/b");
        let first = owner(&data).unwrap();
        let second = owner(&data).unwrap();
        assert!(first.just_made && !second.just_made);
        assert_eq!(first.secret.expose_secret(), second.secret.expose_secret());
        assert_eq!(first.secret.expose_secret().len(), 43);
        assert!(!format!("{first:?}").contains(first.secret.expose_secret()));
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&data.join("owner.key")), mode(&data)), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1, "no draft stays");
    }

    #[test]
    fn the_setting_wins_over_the_file_and_touches_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let set = SecretString::from("a key of the operator");
        let key = key("owner_key", "owner.key", Some(&set), Some(dir.path())).unwrap();
        assert_eq!(key.secret.expose_secret(), "a key of the operator");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn many_first_starts_at_once_agree_on_one_key() {
        let dir = tempfile::tempdir().unwrap();
        let keys: Vec<Key> = std::thread::scope(|scope| {
            let starts: Vec<_> = (0..8).map(|_| scope.spawn(|| owner(dir.path()).unwrap())).collect();
            starts.into_iter().map(|start| start.join().unwrap()).collect()
        });
        let first = keys[0].secret.expose_secret();
        assert!(keys.iter().all(|key| key.secret.expose_secret() == first));
        assert_eq!(keys.iter().filter(|key| key.just_made).count(), 1);
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("owner.key");
        std::fs::write(&path, "0123456789abcdef\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(owner(dir.path()), Err(KeyError::Exposed { .. })));
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(owner(dir.path()).unwrap().secret.expose_secret(), "0123456789abcdef");
        std::fs::write(&path, "short\n").unwrap();
        assert!(matches!(owner(dir.path()), Err(KeyError::NotAKey { .. })));
    }

    #[test]
    fn a_folder_keeps_keys_by_name_until_they_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let folder = KeyFolder::of(dir.path());
        assert!(folder.read("-a_kid").unwrap().is_none());
        folder.keep("-a_kid", &SecretString::from("the first key of this name")).unwrap();
        folder.keep("-a_kid", &SecretString::from("another key of this name")).unwrap();
        assert_eq!(folder.read("-a_kid").unwrap().unwrap().expose_secret(), "the first key of this name");
        let mode = |path: &str| std::fs::metadata(dir.path().join(path)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("issuer"), mode("issuer/-a_kid.key")), (0o700, 0o600));
        folder.forget("-a_kid").unwrap();
        folder.forget("-a_kid").unwrap();
        assert!(folder.read("-a_kid").unwrap().is_none());
    }

    #[test]
    fn the_operators_signing_key_is_a_setting_or_a_file_of_any_lines_and_is_never_made() {
        let dir = tempfile::tempdir().unwrap();
        let set = crate::settings::Overrides { data_dir: Some(dir.path().to_owned()), ..Default::default() };
        let load = |issuer_key: Option<&str>| {
            Settings::load(crate::settings::Overrides { issuer_key: issuer_key.map(str::to_owned), ..set.clone() })
                .unwrap()
        };
        assert!(issuer_key(&load(None)).unwrap().is_none());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        let path = dir.path().join("issuer.key");
        std::fs::write(&path, "-----BEGIN\nlines\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(issuer_key(&load(None)), Err(KeyError::Exposed { .. })));
        std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(issuer_key(&load(None)).unwrap().unwrap().expose_secret(), "-----BEGIN\nlines\n");
        let given = issuer_key(&load(Some("a key of the setting"))).unwrap().unwrap();
        assert_eq!(given.expose_secret(), "a key of the setting");
    }

    #[test]
    fn without_a_place_the_setting_is_asked_for() {
        let error = key("owner_key", "owner.key", None, None).unwrap_err();
        assert_eq!(error.to_string(), "setting `owner_key`: must be set where there is no data directory");
        let error = owner(Path::new("/proc/nowhere")).unwrap_err().to_string();
        assert!(error.contains("owner.key") && error.contains("`owner_key`"), "{error}");
    }
}
