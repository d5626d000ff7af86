//! Secrets by name: where each may go, and its value at this moment. Values are read again on every use, so a rotation
//! takes effect on the next call, and are never kept, printed or compared here.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use secrecy::SecretString;

use super::address::Origin;

/// What one secret is bound to. Plain data, read from `callbook.toml` or `CALLBOOK_SECRET_ORIGINS` by the settings.
#[derive(Clone, Debug, Default)]
pub struct Binding {
    /// The name that rows use.
    pub name: String,
    /// Where it may be sent; none means nowhere.
    pub origins: Vec<Origin>,
    /// Beginnings of the keys that may use it; none means every key.
    pub keys: Vec<String>,
    /// The file that holds the value. When set, it is the only source.
    pub value_file: Option<PathBuf>,
}

/// All bindings of a process, and where values come from.
#[derive(Clone, Debug, Default)]
pub struct Bindings {
    /// One for each secret.
    pub secrets: Vec<Binding>,
    /// `CALLBOOK_SECRETS_DIR`: one file for each secret, called as the secret. Asked before the environment.
    pub directory: Option<PathBuf>,
}

impl Bindings {
    /// Reads `CALLBOOK_SECRET_ORIGINS`: `NAME=origin` with commas between; a name may repeat.
    pub fn parse_origins(list: &str) -> Result<Vec<Binding>, String> {
        let mut found: BTreeMap<&str, Vec<Origin>> = BTreeMap::new();
        for part in list.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, origin) =
                part.split_once('=').ok_or_else(|| format!("`{part}` is not of the form NAME=scheme://host:port"))?;
            found.entry(name.trim()).or_default().push(origin.trim().parse()?);
        }
        let bind = |(name, origins): (&str, _)| Binding { name: name.to_owned(), origins, ..Binding::default() };
        Ok(found.into_iter().map(bind).collect())
    }
}

/// A secret that has no value now: `ERR:auth:missing_secret:<NAME>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Its name, as the row says it.
    pub name: String,
    /// What was looked for and not found; never a value.
    pub why: &'static str,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "secret {}: {}", self.name, self.why)
    }
}

impl std::error::Error for Missing {}

/// The secrets of a process. Holds no value.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    bindings: BTreeMap<String, Binding>,
    directory: Option<PathBuf>,
}

impl Secrets {
    /// Takes the bindings. Refuses a name that is not `^[A-Za-z_][A-Za-z0-9_]{0,127}$` (it becomes a file name) and a
    /// name that is bound twice.
    pub fn new(bindings: Bindings) -> Result<Self, String> {
        let mut by_name = BTreeMap::new();
        for binding in bindings.secrets {
            if !is_name(&binding.name) {
                return Err(format!("`{}` is not a name of a secret", binding.name.escape_debug()));
            }
            if let Some(twice) = by_name.insert(binding.name.clone(), binding) {
                return Err(format!("the secret {} is bound twice", twice.name));
            }
        }
        Ok(Secrets { bindings: by_name, directory: bindings.directory })
    }

    /// Whether a row of this key may send the secret to this origin. The error is a sentence that says what is not bound.
    pub fn binding_allows(&self, name: &str, origin: &Origin, key: &str) -> Result<(), String> {
        let Some(binding) = self.bindings.get(name) else {
            return Err(format!("the secret {} is bound to no origin", name.escape_debug()));
        };
        if !binding.origins.contains(origin) {
            return Err(format!("the secret {name} is not bound to {origin}"));
        }
        if !binding.keys.is_empty() && !binding.keys.iter().any(|prefix| key.starts_with(prefix.as_str())) {
            return Err(format!("the secret {name} is not bound to the key {}", key.escape_debug()));
        }
        Ok(())
    }

    /// The value at this moment, without final line breaks. Only a bound secret has one, so a row cannot read any other
    /// variable of the environment by its name.
    pub fn value(&self, name: &str) -> Result<SecretString, Missing> {
        let missing = |why| Missing { name: name.to_owned(), why };
        let binding = self.bindings.get(name).ok_or(missing("it is bound to no origin"))?;
        let text = match (&binding.value_file, self.directory.as_ref().map(|directory| directory.join(name))) {
            (Some(file), _) => fs::read_to_string(file).map_err(|_| missing("its file cannot be read"))?,
            (None, Some(file)) if file.exists() => {
                fs::read_to_string(file).map_err(|_| missing("its file cannot be read"))?
            }
            (None, _) => env::var(name).map_err(|_| missing("no file and no variable holds it"))?,
        };
        match text.trim_end_matches(['\r', '\n']) {
            "" => Err(missing("its value is empty")),
            value => Ok(SecretString::from(value)),
        }
    }

    /// Every value there is at this moment, with its name: what a redactor looks for.
    pub fn live_values(&self) -> Vec<(String, SecretString)> {
        self.bindings.keys().filter_map(|name| Some((name.clone(), self.value(name).ok()?))).collect()
    }
}

fn is_name(text: &str) -> bool {
    let mut bytes = text.bytes();
    let begins = bytes.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    begins && text.len() <= 128 && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn bound(name: &str) -> Binding {
        Binding { name: name.to_owned(), origins: vec!["https://api.x.ai".parse().unwrap()], ..Binding::default() }
    }

    fn secrets(secrets: Vec<Binding>, directory: Option<PathBuf>) -> Secrets {
        Secrets::new(Bindings { secrets, directory }).unwrap()
    }

    fn shown(value: Result<SecretString, Missing>) -> Result<String, &'static str> {
        value.map(|value| value.expose_secret().to_owned()).map_err(|missing| missing.why)
    }

    #[test]
    fn a_value_is_read_again_on_each_use_and_loses_its_final_line_break() {
        let directory = tempfile::tempdir().unwrap();
        let all = secrets(vec![bound("A")], Some(directory.path().to_owned()));
        assert_eq!(shown(all.value("A")), Err("no file and no variable holds it"));
        fs::write(directory.path().join("A"), " one \r\n\n").unwrap();
        assert_eq!(shown(all.value("A")), Ok(" one ".to_owned()));
        fs::write(directory.path().join("A"), "two").unwrap();
        assert_eq!(shown(all.value("A")), Ok("two".to_owned()));
        assert_eq!(all.live_values().len(), 1);
        fs::write(directory.path().join("A"), "\n").unwrap();
        assert_eq!(shown(all.value("A")), Err("its value is empty"));
        assert!(all.live_values().is_empty());
    }

    #[test]
    fn a_named_file_is_the_only_source() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("A"), "from the directory").unwrap();
        let file = directory.path().join("other");
        let binding = Binding { value_file: Some(file.clone()), ..bound("A") };
        let all = secrets(vec![binding], Some(directory.path().to_owned()));
        assert_eq!(shown(all.value("A")), Err("its file cannot be read"));
        fs::write(&file, "from its file").unwrap();
        assert_eq!(shown(all.value("A")), Ok("from its file".to_owned()));
        fs::write(&file, b"\xff\xfe").unwrap();
        assert_eq!(shown(all.value("A")), Err("its file cannot be read"));
    }

    #[test]
    fn the_environment_gives_bound_names_only() {
        assert!(shown(secrets(vec![bound("PATH")], None).value("PATH")).is_ok());
        assert_eq!(shown(secrets(vec![bound("A")], None).value("PATH")), Err("it is bound to no origin"));
    }

    #[test]
    fn a_name_cannot_leave_its_directory_and_cannot_be_bound_twice() {
        for name in ["", "../A", "a/b", "1A", "A-B", ".", "Ä", "A\n", &"A".repeat(129)] {
            assert!(Secrets::new(Bindings { secrets: vec![bound(name)], directory: None }).is_err(), "{name}");
        }
        assert!(Secrets::new(Bindings { secrets: vec![bound(&"A".repeat(128))], directory: None }).is_ok());
        assert!(Secrets::new(Bindings { secrets: vec![bound("A"), bound("A")], directory: None }).is_err());
    }

    #[test]
    fn a_secret_goes_only_where_it_is_bound() {
        let all = secrets(vec![Binding { keys: vec!["xai_".into()], ..bound("A") }, bound("B")], None);
        let (bound_to, other) = ("https://api.x.ai:443".parse().unwrap(), "https://api.x.ai:8443".parse().unwrap());
        assert_eq!(all.binding_allows("A", &bound_to, "xai_chat"), Ok(()));
        assert_eq!(all.binding_allows("B", &bound_to, "any"), Ok(()));
        assert!(all.binding_allows("A", &bound_to, "other").unwrap_err().contains("key"));
        assert!(all.binding_allows("A", &other, "xai_chat").unwrap_err().contains(":8443"));
        assert!(all.binding_allows("C", &bound_to, "any").unwrap_err().contains("no origin"));
    }

    #[test]
    fn bindings_can_be_written_in_one_line() {
        let read = Bindings::parse_origins("A=https://api.x.ai, B=http://127.0.0.1:1,A=https://x.ai,").unwrap();
        assert_eq!(read.iter().map(|b| (b.name.as_str(), b.origins.len())).collect::<Vec<_>>(), [("A", 2), ("B", 1)]);
        assert!(Bindings::parse_origins("A").is_err());
        assert!(Bindings::parse_origins("A=https://x.ai/path").is_err());
    }
}
