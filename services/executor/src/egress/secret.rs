//! Secrets by name: the value at this moment. Values are read again on every use, so a rotation takes effect on the next
//! call, and are never kept or printed here. Where a secret may go is `callbook_domain::secret`'s to say.

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::path::PathBuf;

use secrecy::SecretString;

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

/// Where the values of a process's secrets are. Holds no value.
#[derive(Clone, Debug, Default)]
pub struct Secrets {
    /// Every bound name, with the file that holds its value; such a file is then the only source.
    names: BTreeMap<String, Option<PathBuf>>,
    /// One file for each secret, called as the secret. Asked before the environment.
    directory: Option<PathBuf>,
}

impl Secrets {
    /// Takes the bound names. Refuses a name that is not `^[A-Za-z_][A-Za-z0-9_]{0,127}$`: it becomes a file name.
    pub fn new(names: BTreeMap<String, Option<PathBuf>>, directory: Option<PathBuf>) -> Result<Self, String> {
        match names.keys().find(|name| !callbook_domain::auth::is_secret_name(name)) {
            Some(name) => Err(format!("`{}` is not a name of a secret", name.escape_debug())),
            None => Ok(Secrets { names, directory }),
        }
    }

    /// The value at this moment, without final line breaks. Only a bound secret has one, so a row cannot read any other
    /// variable of the environment by its name.
    pub fn value(&self, name: &str) -> Result<SecretString, Missing> {
        let missing = |why| Missing { name: name.to_owned(), why };
        let own_file = self.names.get(name).ok_or(missing("it is bound to no origin"))?;
        let text = match (own_file, self.directory.as_ref().map(|directory| directory.join(name))) {
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
        self.names.keys().filter_map(|name| Some((name.clone(), self.value(name).ok()?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    fn secrets(names: &[(&str, Option<PathBuf>)], directory: Option<PathBuf>) -> Secrets {
        let names = names.iter().map(|(name, file)| ((*name).to_owned(), file.clone())).collect();
        Secrets::new(names, directory).unwrap()
    }

    fn shown(value: Result<SecretString, Missing>) -> Result<String, &'static str> {
        value.map(|value| value.expose_secret().to_owned()).map_err(|missing| missing.why)
    }

    #[test]
    fn a_value_is_read_again_on_each_use_and_loses_its_final_line_break() {
        let directory = tempfile::tempdir().unwrap();
        let all = secrets(&[("A", None)], Some(directory.path().to_owned()));
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
        let all = secrets(&[("A", Some(file.clone()))], Some(directory.path().to_owned()));
        assert_eq!(shown(all.value("A")), Err("its file cannot be read"));
        fs::write(&file, "from its file").unwrap();
        assert_eq!(shown(all.value("A")), Ok("from its file".to_owned()));
        fs::write(&file, b"\xff\xfe").unwrap();
        assert_eq!(shown(all.value("A")), Err("its file cannot be read"));
    }

    #[test]
    fn the_environment_gives_bound_names_only() {
        assert!(shown(secrets(&[("PATH", None)], None).value("PATH")).is_ok());
        assert_eq!(shown(secrets(&[("A", None)], None).value("PATH")), Err("it is bound to no origin"));
    }

    #[test]
    fn a_name_cannot_leave_its_directory() {
        for name in ["", "../A", "a/b", "1A", "A-B", ".", "Ä", "A\n", &"A".repeat(129)] {
            assert!(Secrets::new([(name.to_owned(), None)].into(), None).is_err(), "{name}");
        }
        assert!(Secrets::new([("A".repeat(128), None)].into(), None).is_ok());
    }
}
